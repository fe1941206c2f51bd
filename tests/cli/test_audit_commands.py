"""`keywright audit`, `repair` and `stats` from the command line: output and exit codes."""

from __future__ import annotations

import json
import os
import pty
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
import redis
from typer.testing import Result

from audit_samples import SAMPLES
from invoking import invoke_keywright
from keywright.testing.damage import plant
from keywright.tools.audit import Checkpoint
from keywright.tools.audit.tally import Tally

DRC = SAMPLES["drc"]()


@pytest.fixture
def healthy(redis_url: str) -> str:
    with DRC.open(redis_url) as db:
        DRC.fill(db)
    return redis_url


@pytest.fixture
def damaged(healthy: str) -> str:
    with DRC.open(healthy) as db:
        plant(db, DRC.model.spaces, each=2)
    return healthy


@pytest.fixture
def client(redis_url: str) -> Iterator[Any]:
    with redis.Redis.from_url(redis_url) as found:
        yield found


def test_a_healthy_database_exits_with_0(healthy: str) -> None:
    done = _run("audit", "drc", "--url", healthy)
    assert done.exit_code == 0, done.output
    assert "drc is as declared." in done.stdout
    assert "messages:<message>" in done.stdout


def test_findings_exit_with_1_unless_they_are_not_to_fail_on(damaged: str) -> None:
    assert _run("audit", "drc", "--url", damaged).exit_code == 1
    assert _run("audit", "drc", "--url", damaged, "--fail-on", "plaintext").exit_code == 0
    assert _run("audit", "drc", "--url", damaged, "--fail-on", "unknown,dangling").exit_code == 1


def test_a_budget_fails_a_run(healthy: str) -> None:
    done = _run("audit", "drc", "--url", healthy, "--max-bytes", "messages:<message>=1KB")
    assert done.exit_code == 1
    assert "KW501" in done.stdout


@pytest.mark.parametrize(
    "arguments",
    [
        ("audit", "nothing"),
        ("audit", "drc", "--sample", "200%"),
        ("audit", "drc", "--fail-on", "everything"),
        ("audit", "drc", "--max-bytes", "much"),
        ("stats", "drc", "--watch", "--format", "json"),
    ],
)
def test_a_wrong_invocation_exits_with_2(redis_url: str, arguments: tuple[str, ...]) -> None:
    assert _run(*arguments, "--url", redis_url).exit_code == 2


@pytest.mark.parametrize("command", ["audit", "repair", "stats"])
def test_an_unreachable_server_exits_with_3(command: str) -> None:
    done = _run(command, "drc", "--url", "redis://127.0.0.1:1")
    assert done.exit_code == 3
    assert "cannot be reached" in done.stderr


def test_json_has_the_templates_and_the_findings(damaged: str) -> None:
    data = json.loads(_run("audit", "drc", "--url", damaged, "--format", "json").stdout)
    assert data["failed"]
    assert data["names"] > 500
    assert {"KW101", "KW201", "KW301"} <= set(data["counts"])
    assert {"template", "keys", "bytes", "share", "coverage"} <= set(data["templates"][0])


def test_sarif_names_a_rule_for_every_result(damaged: str) -> None:
    (run,) = json.loads(_run("audit", "drc", "--url", damaged, "--format", "sarif").stdout)["runs"]
    rules = {rule["id"] for rule in run["tool"]["driver"]["rules"]}
    assert {result["ruleId"] for result in run["results"]} == rules
    assert all(result["message"]["text"] for result in run["results"])


def test_junit_fails_the_cases_that_have_findings(damaged: str) -> None:
    text = _run("audit", "drc", "--url", damaged, "--format", "junit", "--fail-on", "KW301").stdout
    suite = ElementTree.fromstring(text)[0]  # our own output
    failed = [case.get("name", "")[:5] for case in suite if case.find("failure") is not None]
    assert failed == ["KW301"]
    assert suite.get("failures") == "1"


def test_junit_is_xml_whatever_the_names_hold(redis_url: str, client: Any) -> None:
    client.mset({"keywright:\ufffe\x00\x1b": "x", b"keywright:\xff\xed\xa0\x80": "x"})
    text = _run("audit", "drc", "--url", redis_url, "--format", "junit", "--show-ids").stdout
    failures = ElementTree.fromstring(text).findall(".//failure")  # our own output
    assert [failure.get("message") for failure in failures] == ["2 findings"]


@pytest.mark.parametrize("form", ["text", "html"])
def test_findings_that_are_not_listed_are_counted(redis_url: str, client: Any, form: str) -> None:
    client.mset({f"keywright:strange{n}": "x" for n in range(5)})
    done = _run("audit", "drc", "--url", redis_url, "--limit", "2", "--format", form)
    assert "… and 3 more" in done.stdout


def test_text_lists_as_many_findings_of_a_code_as_the_limit_allows(redis_url: str, client: Any) -> None:
    for number in range(25):
        client.set(f"keywright:v1json:stray:{number}", "x")
    for limit in (12, 25):
        done = _run("audit", "drc", "--url", redis_url, "--limit", str(limit), "--show-ids")
        listed = [line for line in done.stdout.splitlines() if line.startswith("  keywright:v1json:stray:")]
        assert len(listed) == limit


def test_html_is_one_page_that_escapes_names(redis_url: str, client: Any, tmp_path: Path) -> None:
    client.set("keywright:<script>alert(1)</script>", "x")
    path = tmp_path / "report.html"
    done = _run("audit", "drc", "--url", redis_url, "--format", "html", "--show-ids", "--output", str(path))
    assert done.exit_code == 1
    page = path.read_text()
    assert "&lt;script&gt;alert(1)" in page
    assert "<script" not in page
    assert "http" not in page.replace(redis_url, "")


def test_a_repair_only_shows_its_plan_without_yes(damaged: str, client: Any, tmp_path: Path) -> None:
    before = client.dbsize()
    saved = tmp_path / "plan"
    done = _run("repair", "drc", "--url", damaged, "--remove", "all", "--save", str(saved))
    assert done.exit_code == 1
    assert "Nothing was changed" in done.stdout
    assert client.dbsize() == before
    applied = _run(
        "repair", "drc", "--url", damaged, "--plan", str(saved), "--yes", "--undo-to", str(tmp_path / "undo")
    )
    assert applied.exit_code == 0, applied.output
    assert client.dbsize() < before


def test_a_repair_and_its_undo(damaged: str, client: Any, tmp_path: Path) -> None:
    undo, before = str(tmp_path / "undo"), client.dbsize()
    done = _run("repair", "drc", "--url", damaged, "--remove", "all", "--yes", "--undo-to", undo)
    assert done.exit_code == 0, done.output
    assert _run("audit", "drc", "--url", damaged).exit_code == 0
    assert "nothing to do" in _run("repair", "drc", "--url", damaged, "--yes", "--undo-to", undo).stdout
    assert _run("repair", "drc", "--url", damaged, "--undo", undo).exit_code == 2
    assert "restored" in _run("repair", "drc", "--url", damaged, "--undo", undo, "--yes").stdout
    assert client.dbsize() == before
    assert _run("audit", "drc", "--url", damaged).exit_code == 1


def test_a_plan_for_another_model_is_refused(damaged: str, client: Any, tmp_path: Path) -> None:
    saved, before = str(tmp_path / "plan"), client.dbsize()
    _run("repair", "drc", "--url", damaged, "--remove", "all", "--save", saved)
    for more in ((), ("--yes",)):
        done = _run("repair", "spectacles", "--url", damaged, "--plan", saved, *more)
        assert done.exit_code == 2
        assert "is a plan for drc, not for spectacles" in done.stderr
    assert client.dbsize() == before


@pytest.mark.parametrize(
    "arguments",
    [("audit", "drc", "--output"), ("audit", "drc", "--resume"), ("repair", "drc", "--save")],
    ids=" ".join,
)
def test_a_file_that_cannot_be_written_is_an_error_before_the_server_is_reached(
    arguments: tuple[str, ...], tmp_path: Path
) -> None:
    for path in (tmp_path, tmp_path / "nowhere" / "file"):
        done = _run(*arguments, str(path), "--url", "redis://127.0.0.1:1")
        assert done.exit_code == 2, done.output
        assert "cannot be written" in done.stderr


def test_nothing_is_removed_where_it_cannot_be_kept(redis_url: str, client: Any) -> None:
    client.set("keywright:strange", "x")
    done = _run("repair", "drc", "--url", redis_url, "--remove", "all", "--yes", "--undo-to", "/dev/full")
    assert done.exit_code == 2
    assert "/dev/full is not a regular file" in done.stderr
    assert client.exists("keywright:strange")


def test_progress_of_another_audit_is_not_gone_on_from(healthy: str, tmp_path: Path) -> None:
    path = tmp_path / "progress"
    Checkpoint.at(path, ["drc", "drc-private", "--sample 0.5"]).save("a node", 7, Tally())
    resume = ("audit", "drc", "--url", healthy, "--resume", str(path))
    done = _run(*resume)
    assert done.exit_code == 2
    assert "an audit of drc, drc-private, --sample 0.5" in done.stderr
    assert _run(*resume, "--sample", "50%", "--prefix", "other").exit_code == 2
    assert _run(*resume, "--sample", "50%", "--ignore", "x*").exit_code == 2
    assert _run(*resume, "--sample", "50%").exit_code == 0


def test_findings_that_a_repair_cannot_decide_are_listed(damaged: str, tmp_path: Path) -> None:
    done = _run("repair", "drc", "--url", damaged, "--yes", "--undo-to", str(tmp_path / "undo"))
    assert done.exit_code == 1
    assert "left: 20 of KW101" in done.stdout


def test_people_see_how_far_it_is_and_programs_do_not(healthy: str) -> None:
    with redis.Redis.from_url(healthy) as client:
        rate = str(client.dbsize())  # about a second, which is worth a bar
    command = [sys.executable, "-m", "keywright", "audit", "drc", "--url", healthy, "--max-rate", rate]
    quiet = subprocess.run(command, capture_output=True, timeout=60, check=True)
    assert quiet.stderr == b""
    terminal, theirs = pty.openpty()
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=theirs) as watched:
        os.close(theirs)
        seen = b"".join(iter(lambda: _from_terminal(terminal), b""))
        os.close(terminal)
        output, _ = watched.communicate(timeout=60)
    assert b"100%" in seen
    assert b"drc is as declared." in output


def _from_terminal(terminal: int) -> bytes:
    """Return what was written next; nothing once its program has ended."""
    try:
        return os.read(terminal, 100_000)
    except OSError:
        return b""


def test_stats_are_a_table_or_json(healthy: str) -> None:
    assert "messages:<message>" in _run("stats", "drc", "--url", healthy, "--once").stdout
    data = json.loads(_run("stats", "drc", "--url", healthy, "--format", "json").stdout)
    assert sum(count["keys"] for count in data["templates"]) == data["names"]


def _run(*arguments: str) -> Result:
    return invoke_keywright(*arguments)


def test_a_queue_with_one_dangling_item_loses_that_item_only(
    redis_url: str, client: Any, tmp_path: Path
) -> None:
    items = [b"j1", b"j2", b"j3", b"j4", b"j5"]
    client.rpush("g:v1:list:jobs", *items)
    client.mset({b"g:v1:plant:" + item: "a job" for item in items if item != b"j3"})
    found = _run("audit", "garden:garden", "--url", redis_url, "--show-ids")
    assert "queued leads to no Plant; entry j3; other side g:v1:plant:j3" in found.stdout
    undo = tmp_path / "undo"
    arguments = ("repair", "garden:garden", "--url", redis_url)
    shown = _run(*arguments, "--remove", "dangling", "--show-ids")
    assert "  remove-entry g:v1:list:jobs  (KW401: queued leads to no Plant)" in shown.stdout
    done = _run(*arguments, "--remove", "dangling", "--yes", "--undo-to", str(undo))
    assert "1 steps in 2 rounds: 1 remove-entry" in done.stdout
    assert client.lrange("g:v1:list:jobs", 0, -1) == [b"j1", b"j2", b"j4", b"j5"]
    assert _run(*arguments, "--undo", str(undo), "--yes").exit_code == 0
    assert client.lrange("g:v1:list:jobs", 0, -1) == items
