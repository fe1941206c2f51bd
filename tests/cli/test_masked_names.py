"""A masked name of an audit's report leads to its key again, and to no other."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import cli_spaces as spaces
from invoking import Invoke
from keywright import connect, gather
from keywright.testing import Raw
from keywright.tools.audit.findings import masked_name

KINDS = "cli_spaces:kinds"


@pytest.fixture
def report(invoke: Invoke, redis_url: str, raw: Raw, tmp_path: Path) -> Path:
    with connect(redis_url) as db:
        db.run(gather(*(spaces.Pets(f"p{n}").put(spaces.Cat("cat", n)) for n in range(300))))
    raw("HSET", "kinds:pet:p77", "lives", "many")
    raw("SET", "kinds:nobody:knows", "x")
    path = tmp_path / "audit.json"
    done = invoke("audit", KINDS, "--url", redis_url, "--format", "json", "--output", str(path))
    assert done.exit_code == 1
    assert "p77" not in path.read_text()
    return path


def masked(path: Path, code: str) -> Any:
    found = json.loads(path.read_text())["findings"]
    return next(each["key"] for each in found if each["code"] == code)


def test_a_finding_is_looked_up_by_its_masked_name_alone(
    invoke: Invoke, redis_url: str, report: Path, raw: Raw
) -> None:
    key = masked(report, "KW202")
    raw("HSET", "kinds:pet:p77", "lives", "9")
    for written in (key, key.rpartition(" ")[2], key.rpartition("#")[2]):
        done = invoke("get", written, "--in", str(report), "--url", redis_url)
        assert done.exit_code == 0, done.output
        assert json.loads(done.stdout) == {"kind": "cat", "lives": 9}
        assert "is kinds:pet:p77" in done.stderr


def test_the_largest_key_of_a_template_is_found_too(invoke: Invoke, redis_url: str, report: Path) -> None:
    (row,) = (each for each in json.loads(report.read_text())["templates"] if each["template"] == "pet:<pet>")
    done = invoke("get", KINDS, row["largest"], "--in", str(report), "--url", redis_url)
    assert json.loads(done.stdout)["kind"] == "cat"


def test_an_unknown_key_is_named(invoke: Invoke, redis_url: str, report: Path) -> None:
    done = invoke("get", masked(report, "KW101"), "--in", str(report), "--url", redis_url)
    assert "is kinds:nobody:knows" in done.stderr
    assert done.exit_code == 2


def test_a_key_that_was_removed_since_is_reported(
    invoke: Invoke, redis_url: str, report: Path, raw: Raw
) -> None:
    raw("UNLINK", "kinds:pet:p77")
    done = invoke("get", masked(report, "KW202"), "--in", str(report), "--url", redis_url)
    assert (done.exit_code, "removed since the audit" in done.stderr) == (1, True)


def test_names_with_the_same_digits_are_told_apart_by_the_template(
    invoke: Invoke, redis_url: str, report: Path, raw: Raw
) -> None:
    key = masked(report, "KW202")
    other = "kinds:order:45060109"  # found by trying names in their order
    assert masked_name("pet:<pet>", other.encode()) == key
    raw("HSET", other, "colour", "red")
    raw("HSET", "kinds:pet:p77", "lives", "9")
    done = invoke("get", key, "--in", str(report), "--url", redis_url)
    assert "is kinds:pet:p77" in done.stderr


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        (("#f1ec88",), "Add --in with the file of an audit"),
        (("#ffffff", "--in", "{report}"), "has no key that is masked as #ffffff"),
        (("nothing", "--in", "{report}"), "is not a masked name"),
        (("#f1ec88", "--in", __file__), "is not the report of an audit"),
        (("#f1ec88", "--in", "nowhere.json"), "cannot be read"),
    ],
)
def test_what_is_no_masked_name_of_the_report_is_refused(
    invoke: Invoke, redis_url: str, report: Path, arguments: tuple[str, ...], reason: str
) -> None:
    given = [each.replace("{report}", str(report)) for each in arguments]
    done = invoke("get", *given, "--url", redis_url)
    assert (done.exit_code, done.stdout) == (2, "")
    assert reason in done.stderr


def test_a_report_with_names_needs_no_search(
    invoke: Invoke, redis_url: str, report: Path, tmp_path: Path, raw: Raw
) -> None:
    key = masked(report, "KW202")
    shown = tmp_path / "shown.json"
    invoke("audit", KINDS, "--url", redis_url, "--format", "json", "--show-ids", "--output", str(shown))
    raw("HSET", "kinds:pet:p77", "lives", "9")
    done = invoke("get", key, "--in", str(shown), "--url", redis_url)
    assert json.loads(done.stdout)["lives"] == 9
