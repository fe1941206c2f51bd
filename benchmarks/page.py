"""`python -m benchmarks.page [FILE]`: make docs/benchmarks.md and its plots from the JSON lines of a run."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby
from pathlib import Path
from typing import NamedTuple

from benchmarks.lines import Line, Part, Run, read_lines
from benchmarks.measuring import Figure, Point, Result
from benchmarks.notation import NOT_MET, figure, ratio, target, verdict
from benchmarks.plot import Dot, Row, lines_plot, ratios_plot
from benchmarks.prepacked import CALLS_MADE

__all__ = ["FIGURES", "ROOT", "make", "page_of", "plots_of"]

ROOT = Path(__file__).parents[1]
FIGURES = ROOT / "benchmarks" / "figures.jsonl"
PAGE = Path("docs/benchmarks.md")
PICTURES = Path("images/benchmarks")

WORDS = {
    "latency": (
        "Single calls",
        "One typed GET of a JSON document of 250 bytes. Where client and server run decides the time, so each placement has a row.",
    ),
    "batches": (
        "Batches of every kind",
        "1,000 calls in one batch. Ratios to clients say how many times as fast Keywright is. Those to limits say how many times as long it takes.",
    ),
    "concurrency": (
        "Many calls at the same time",
        "Separate typed GETs in one event loop, which Keywright joins into round trips.",
    ),
    "bulk": ("Many values by name", "10,000 values with `get_many`."),
    "records": (
        "Records by name",
        "1,000 records with `get_many`. The peers read one at a time, so most of the ratio is round trips saved.",
    ),
    "cluster": ("Clusters", "1,000 calls in one batch, over three masters."),
    "discord": (
        "Discord cache",
        "A guild of 1,000 members, everyday events, messages with their authors and members, and memory for each entity.",
    ),
    "registry": (
        "Container registry",
        "Cached repositories: single lookups, a thousand at once, and against the database behind the cache.",
    ),
    "meetup": (
        "Meetup bot",
        "Events with their hosts and guests: first synchronisation, one without changes, and a full audit.",
    ),
    "messaging": ("Messaging", "Messages published until confirmed, and consumed until acknowledged."),
    "gateway": (
        "Gateway",
        "From a simulated Discord, through gateway, cache and Redis streams, to a worker. Four processes share the cores.",
    ),
    "audit": (
        "Audit",
        "A full audit: every name matched, every value read and decoded, every expiry checked. p99 is of another client's GET.",
    ),
    "rdb": ("Dumps", "A dump of a million keys, read without a server."),
    "jobs": (
        "Jobs of an audit",
        "The same audit by 1, 2 and 4 processes at full speed. Servers and processes share the cores of the machine.",
    ),
    "infer": ("Inference", "Inferred declarations beside the declared ones, and the speed on names alone."),
}
GROWTH = {
    "batch size": ("microseconds for a call", "calls in a batch"),
    "concurrency": ("microseconds for a call", "calls at the same time"),
    "GUILD_CREATE": ("microseconds for a member", "members of the guild"),
    "keyspace": ("seconds", "keys"),
    "cluster": ("microseconds for a call", "masters"),
}


class Plot(NamedTuple):
    """A picture: its file, what it shows, and the same as a table."""

    file: str
    title: str
    svg: str
    table: str = ""


def page_of(lines: Sequence[Line]) -> str:
    """Return the page as Markdown."""
    run = next(line for line in lines if isinstance(line, Run))
    results = [line for line in lines if isinstance(line, Result)]
    parts = [line for line in lines if isinstance(line, Part)]
    sections = [_head(run, parts), _targets(results)]
    sections += [_section(name, list(found)) for name, found in groupby(results, lambda each: each.benchmark)]
    grown = [plot for plot in plots_of(lines) if plot.table]
    if grown:
        sections.append("## Cost growth\n\nBoth axes are logarithmic; bars are the spread of the rounds.")
        sections += [f"### {plot.title}\n\n{_picture(plot)}\n\n{plot.table}" for plot in grown]
    sections.append(_parts(parts))
    return "\n\n".join(sections) + "\n"


def plots_of(lines: Sequence[Line]) -> list[Plot]:
    batches = [line for line in lines if isinstance(line, Result) and line.benchmark == "batches"]
    points = [line for line in lines if isinstance(line, Point)]
    plots = list(_batch_plots(batches))
    growths = dict.fromkeys(point.growth for point in points)
    return plots + [
        _growth_plot(each, [point for point in points if point.growth == each]) for each in growths
    ]


def make(figures: Path, root: Path) -> Path:
    """Write the page and its plots below a root. Return the page."""
    lines = read_lines(figures.read_text("utf-8").splitlines())
    page = root / PAGE
    pictures = page.parent / PICTURES
    pictures.mkdir(parents=True, exist_ok=True)
    for stale in pictures.glob("*.svg"):
        stale.unlink()
    for plot in plots_of(lines):
        (pictures / plot.file).write_text(plot.svg, "utf-8")
    page.write_text(page_of(lines), "utf-8")
    return page


def _head(run: Run, parts: Sequence[Part]) -> str:
    versions = ", ".join(f"{name} {found}" for name, found in run.packages.items())
    loads = [load for part in parts for load in (part.load_before, part.load_after)]
    kind = "A quick run" if run.quick else "One full run"
    if run.most_rounds is not None:
        kind += f" with at most {run.most_rounds} rounds of each comparison"
    text = (
        "<!-- Made by `python -m benchmarks.page` from benchmarks/figures.jsonl. Do not edit. -->\n"
        "# Benchmarks\n\n"
        "Keywright beside other clients, and beside the limit of the same work, measured in turns on one machine.\n\n"
        f"{kind}, {run.day}, commit `{run.commit}`: {run.processor}, {run.cores} cores, Python {run.python}, {run.server}; {versions}. "
        "A figure is the median of its rounds, with the lowest and the highest in brackets. A ratio is taken round by "
        "round. [How it is measured](../benchmarks/README.md); `make bench` measures again."
    )
    if loads and max(loads) > run.cores + 1:
        text += (
            f"\n\n> [!WARNING]\n> The machine was busy with other work: load {min(loads):.1f} to {max(loads):.1f} on {run.cores} "
            "cores. Times are longer than on a quiet machine, and the spread is wide. Ratios are of rounds that follow each other."
        )
    return text


def _targets(results: Sequence[Result]) -> str:
    rows = ["| benchmark | targets | met | not met |", "|---|---|---|---|"]
    judged = [each for each in results if each.met is not None]
    for name, group in groupby(judged, lambda each: each.benchmark):
        found = list(group)
        met = sum(bool(each.met) for each in found)
        missed = f"**{len(found) - met}**" if met < len(found) else "0"
        rows.append(f"| [{_title(name)}](#{_anchor(_title(name))}) | {len(found)} | {met} | {missed} |")
    return (
        "## Targets\n\nA ratio is Keywright's figure by the other: of calls a second more is better, of times and sizes less. That to a limit says how many times as long Keywright takes. A target is met if the median ratio meets it.\n\n"
        + "\n".join(rows)
    )


def _section(name: str, results: Sequence[Result]) -> str:
    head = f"## {_title(name)}\n\n{WORDS.get(name, ('', ''))[1]}".rstrip()
    if name == "batches":
        plots = "\n\n".join(_picture(plot) for plot in _batch_plots(results))
        tables = "\n\n".join(_pivoted(form, results) for form in ("sync", "asyncio"))
        return f"{head}\n\n{plots}\n\n{tables}\n\n{_out_of_reach(results)}".rstrip()
    return f"{head}\n\n{_table(results)}"


def _table(results: Iterable[Result]) -> str:
    rows = [
        "| subject | Keywright | beside | its figure | ratio | target | |",
        "|---|---|---|---|---|---|---|",
    ]
    for each in results:
        peer = f"{each.peer} (limit)" if each.limit else each.peer
        sides = f"{figure(each.ours, each.unit)} | {peer} | {figure(each.theirs, each.unit)}"
        rows.append(f"| {each.subject} | {sides} | {ratio(each)} | {target(each)} | {verdict(each)} |")
    # A header without words has none to read out.
    return "\n".join([rows[0].replace("target | |", "target | verdict |"), *rows[1:]])


def _pivoted(form: str, results: Sequence[Result]) -> str:
    """Return a table with a row for each subject and a column for each peer."""
    found = [each for each in results if each.subject.startswith(f"{form} ")]
    if not found:
        return ""
    peers = list(dict.fromkeys(each.peer for each in found))
    heads = [_column(next(each for each in found if each.peer == peer)) for peer in peers]
    rows = [f"| {form} | calls a second | {' | '.join(heads)} |", "|---" * (len(peers) + 2) + "|"]
    for subject, group in groupby(found, lambda each: each.subject):
        by_peer = {each.peer: each for each in group}
        ours = next(iter(by_peer.values())).ours
        cells = [_cell(by_peer.get(peer)) for peer in peers]
        rows.append(
            f"| {subject.removeprefix(form).strip()} | {figure(ours, 'count')} | {' | '.join(cells)} |"
        )
    return "\n".join(rows)


def _out_of_reach(results: Sequence[Result]) -> str:
    """Return the ratios to clients that miss their targets, and would even if only the calls were made."""
    limits = {each.subject: each.theirs.value for each in results if each.peer == CALLS_MADE}
    rows = []
    for each in results:
        if each.met is not False or each.limit or each.target is None or each.subject not in limits:
            continue
        most = limits[each.subject] / each.theirs.value
        if most < each.target.ratio:
            rows.append(f"| {each.subject} | {each.peer} | {target(each)} | {ratio(each)} | {most:.2f} |")
    if not rows:
        return ""
    return (
        f"Out of reach: these ratios would miss their targets even if a batch took no more time than {CALLS_MADE}: "
        "no call lowered, no command packed, no reply decoded.\n\n"
        "| subject | beside | target | ratio | at most |\n|---|---|---|---|---|\n" + "\n".join(rows)
    )


def _column(result: Result) -> str:
    bound = "" if result.target is None else f", {target(result)}"
    return f"{'times the limit' if result.limit else 'times as fast as'} {result.peer}{bound}"


def _cell(result: Result | None) -> str:
    if result is None:
        return "—"
    return f"{ratio(result)} {NOT_MET}" if result.met is False else ratio(result)


def _batch_plots(results: Sequence[Result]) -> Iterator[Plot]:
    for limit, file, title in (
        (False, "batches-redis-py.svg", "Batches of 1,000 calls: times as fast as redis-py"),
        (True, "batches-limit.svg", "Batches of 1,000 calls: times as long as prepacked bytes"),
    ):
        chosen = [each for each in results if each.target is not None and each.limit is limit]
        if not chosen:
            continue
        rows: dict[str, list[Dot]] = {}
        targets: dict[str, float] = {}
        for each in chosen:
            form, _, subject = each.subject.partition(" ")
            rows.setdefault(subject.partition(" (")[0], []).append(Dot(form, each.ratio))
            if each.target is not None:
                bound = "at least" if each.target.bound == "at least" else "at most"
                targets[
                    f"{form}: {bound} {each.target.ratio:g}"
                    if not limit
                    else f"{bound} {each.target.ratio:g}"
                ] = each.target.ratio
        listed = [Row(subject, dots) for subject, dots in rows.items()]
        yield Plot(file, title, ratios_plot(title, "ratio, logarithmic", listed, targets))


def _growth_plot(growth: str, points: Sequence[Point]) -> Plot:
    y_title, x_title = GROWTH[growth.partition(",")[0]]
    series: dict[str, list[tuple[int, Figure]]] = {}
    for point in points:
        series.setdefault(_named(point.series), []).append((point.size, point.figure))
    title = _capital(growth)
    svg = lines_plot(title, x_title, y_title, series)
    return Plot(f"{_anchor(growth)}.svg", title, svg, _growth_table(x_title, y_title, points))


def _growth_table(x_title: str, y_title: str, points: Sequence[Point]) -> str:
    names = list(dict.fromkeys(point.series for point in points))
    found = {(point.size, point.series): point for point in points}
    rows = [f"| {x_title} | {' | '.join(map(_named, names))} |", "|---" * (len(names) + 1) + "|"]
    for size in sorted({point.size for point in points}):
        cells = [figure(found[size, name].figure, found[size, name].unit) for name in names]
        rows.append(f"| {size:,} | {' | '.join(cells)} |")
    return f"In {y_title}:\n\n" + "\n".join(rows)


def _parts(parts: Sequence[Part]) -> str:
    rows = ["| benchmark | placement | seconds | load before | load after |", "|---|---|---|---|---|"]
    for part in parts:
        name = f"{part.benchmark}, failed: {part.failed}" if part.failed else part.benchmark
        rows.append(
            f"| {name} | {part.placement} | {part.seconds:.0f} | {part.load_before:.1f} | {part.load_after:.1f} |"
        )
    left_out = sorted({name for part in parts for name in part.left_out})
    note = f"\n\nNot installed, so left out: {', '.join(left_out)}." if left_out else ""
    return (
        "## The run\n\nLoad averages of one minute, before and after each benchmark.\n\n"
        + "\n".join(rows)
        + note
    )


def _picture(plot: Plot) -> str:
    return f"![{plot.title}]({PICTURES.as_posix()}/{plot.file})"


def _title(name: str) -> str:
    return WORDS.get(name, (_capital(name), ""))[0]


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:]


def _named(series: str) -> str:
    return "Keywright" if series == "keywright" else series


def _anchor(title: str) -> str:
    return re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-")


def main() -> None:
    figures = Path(sys.argv[1]) if len(sys.argv) > 1 else FIGURES
    print(make(figures, ROOT).relative_to(ROOT))


if __name__ == "__main__":
    main()
