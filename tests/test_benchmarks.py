"""The harness of the benchmarks: ratios, targets, JSON lines, and the page that is made from them."""

from __future__ import annotations

import xml.etree.ElementTree as ElementTree
from pathlib import Path

import pytest
from benchmarks.__main__ import main
from benchmarks.batches import measure
from benchmarks.harness import BENCHMARKS
from benchmarks.lines import Line, Part, Run, json_line, read_lines, save_lines
from benchmarks.measuring import Effort, Figure, Point, Result, at_least, at_most
from benchmarks.notation import verdict
from benchmarks.page import FIGURES, ROOT, make, page_of
from benchmarks.prepacked import CALLS_MADE, PREPACKED

from keywright.testing import RedisServer

QUIET = Run(
    day="2026-11-18",
    commit="abc1234",
    quick=False,
    most_rounds=None,
    processor="A processor",
    cores=2,
    python="3.11.7",
    server="Redis 7.0.15",
    packages={"redis": "8.1.0"},
)


def rates(ours: list[float], theirs: list[float], **judged: object) -> Result:
    return Result.of("batches", "sync set: add (SADD)", "ops_per_second", ours, "redis-py", theirs, **judged)  # type: ignore[arg-type]


def part(load: float) -> Part:
    return Part(benchmark="batches", placement="freely", seconds=1.5, load_before=0.5, load_after=load)


def points() -> list[Line]:
    return [
        Point(
            growth="GUILD_CREATE",
            series=series,
            size=size,
            unit="microseconds",
            figure=Figure(cost * size, cost * size - 1, cost * size + 1),
        )
        for series, cost in (("keywright", 1), ("json & redis-py", 4))
        for size in (10, 1_000, 8_000)
    ]


def test_a_ratio_is_taken_round_by_round() -> None:
    """Round by round it is 4, 4 and 5. The ratio of the medians would be 10."""
    assert rates([400, 40, 50], [100, 10, 10]).ratio == Figure(4, 4, 5)


@pytest.mark.parametrize(
    ("result", "met"),
    [
        (rates([310], [100], target=at_least(3)), True),
        (rates([290], [100], target=at_least(3)), False),
        (rates([100], [290], target=at_most(3), limit=True), True),
        (rates([100], [310], target=at_most(3), limit=True), False),
        (Result.of("audit", "p99", "microseconds", [300], "alone", [100], at_most(2)), False),
        (Result.of("audit", "p99", "microseconds", [150], "alone", [100], at_most(2)), True),
        (rates([100], [100]), None),
    ],
)
def test_a_target_bounds_the_ratio_that_the_unit_means(result: Result, met: bool | None) -> None:
    assert result.met is met


def test_the_median_decides_and_a_round_below_the_target_is_mentioned() -> None:
    assert verdict(rates([320, 330, 280], [100, 100, 100], target=at_least(3))) == "met, not in every round"
    assert verdict(rates([290, 330, 280], [100, 100, 100], target=at_least(3))) == "**NOT MET**"


def test_the_page_shows_what_is_met_and_what_is_not(tmp_path: Path) -> None:
    lines: list[Line] = [
        QUIET,
        rates([400.0, 410.0], [100.0, 100.0], target=at_least(3)),
        Result.of(
            "batches",
            "sync set: add (SADD)",
            "ops_per_second",
            [400],
            PREPACKED,
            [1600],
            at_most(3),
            limit=True,
        ),
        part(1.0),
        *points(),
    ]
    (tmp_path / "docs").mkdir()
    save_lines(lines, tmp_path / "lines.jsonl")
    page = make(tmp_path / "lines.jsonl", tmp_path).read_text("utf-8")
    row = "| set: add (SADD) | 405 (400-410) | 4.05 (4.00-4.10) | 4.00 **NOT MET** |"
    assert row in page.replace("\N{EN DASH}", "-")
    assert "| [Batches of every kind](#batches-of-every-kind) | 2 | 1 | **1** |" in page
    assert "| 1,000 | 1,000 µs (999" in page
    assert "busy" not in page
    pictures = {each.name for each in (tmp_path / "docs/images/benchmarks").iterdir()}
    assert pictures == {"batches-redis-py.svg", "batches-limit.svg", "guild_create.svg"}
    for name in pictures:
        assert f"(images/benchmarks/{name})" in page
        assert ElementTree.parse(tmp_path / "docs/images/benchmarks" / name).getroot().tag.endswith("svg")


@pytest.mark.parametrize(
    ("ours", "limit", "listed"),
    [
        (200.0, 250.0, True),  # missed, and at most 2.5 times
        (200.0, 350.0, False),  # missed, but within reach
        (400.0, 250.0, False),  # met: the server works while calls are packed
    ],
)
def test_a_ratio_is_out_of_reach_if_the_calls_alone_take_too_long(
    ours: float, limit: float, listed: bool
) -> None:
    subject = "sync set: add (SADD)"
    alone = Result.of("batches", subject, "ops_per_second", [ours], CALLS_MADE, [limit], None, limit=True)
    page = page_of([QUIET, rates([ours], [100.0], target=at_least(3)), alone, part(1.0)])
    assert ("Out of reach" in page) is listed
    assert (f"| {subject} | redis-py | ≥ 3 | 2.00 | 2.50 |" in page) is listed


def test_a_run_on_a_busy_machine_is_marked() -> None:
    assert "The machine was busy with other work: load 0.5 to 9.5 on 2 cores." in page_of([QUIET, part(9.5)])


def test_lines_are_read_as_they_were_written() -> None:
    lines: list[Line] = [QUIET, rates([400.0], [100.0], target=at_least(3)), part(1.0), *points()]
    assert read_lines(map(json_line, lines)) == lines


def test_the_page_of_the_repository_is_made_from_its_lines(tmp_path: Path) -> None:
    (tmp_path / "docs").mkdir()
    make(FIGURES, tmp_path)
    made = {each.relative_to(tmp_path): each.read_text("utf-8") for each in tmp_path.rglob("*.*")}
    pictures = (ROOT / "docs/images/benchmarks").glob("*.svg")
    kept = {
        each.relative_to(ROOT): each.read_text("utf-8") for each in (ROOT / "docs/benchmarks.md", *pictures)
    }
    assert made == kept


def test_a_quick_run_measures_and_saves_its_lines(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    main(["latency", "--quick", "--json", str(tmp_path / "lines.jsonl")])
    lines = read_lines((tmp_path / "lines.jsonl").read_text("utf-8").splitlines())
    assert isinstance(lines[0], Run)
    assert isinstance(lines[-1], Part)
    assert lines[-1].failed is None
    beside = {(line.subject.split()[0], line.peer) for line in lines if isinstance(line, Result)}
    assert beside >= {("sync", "redis-py"), ("asyncio", "redis-py asyncio")}
    assert "-- latency:" in capsys.readouterr().out
    assert "## Single calls" in page_of(lines)


def test_a_batch_is_measured_beside_redis_py_and_its_limits() -> None:
    with RedisServer(tcp=True) as server:
        results = list(measure(server, Effort(most_rounds=1), ["bit fields"]))
    assert {result.subject.split(" (")[0] for result in results} == {
        f"{form} bit fields: {name}" for form in ("sync", "asyncio") for name in ("put", "get")
    }
    assert [result.peer for result in results if result.limit and result.target] == [PREPACKED] * 4


def test_every_benchmark_of_the_harness_has_a_module() -> None:
    modules = {path.stem for path in (ROOT / "benchmarks").glob("*.py")}
    assert {each.module for each in BENCHMARKS.values()} <= modules
