"""`keywright export` and `keywright import`: private files, plans first, results that scripts can read."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

import cli_spaces as spaces
from invoking import Invoke
from keywright import Secret, connect, gather
from keywright.testing import Raw, wait_until

KINDS = "cli_spaces:kinds"


@pytest.fixture
def url(redis_url: str) -> str:
    with connect(redis_url) as db:
        db.run(gather(*(spaces.Pets(f"p{n}").put(spaces.Cat("cat", n)) for n in range(30))))
        db.run(gather(spaces.Total().add(2), spaces.Session().set("ada"), spaces.Tokens().add(Secret("x"))))
    return redis_url


@pytest.fixture
def file(invoke: Invoke, url: str, tmp_path: Path) -> Path:
    path = tmp_path / "all.jsonl"
    done = invoke("export", KINDS, "--url", url, "--output", str(path))
    assert (done.exit_code, done.stdout) == (0, "")
    assert "32 keys exported" in done.stderr
    assert "left out: 1 keys: secrets" in done.stderr
    return path


def test_the_file_is_for_its_owner_only_and_replaced_as_a_whole(
    invoke: Invoke, url: str, file: Path, raw: Raw
) -> None:
    assert file.stat().st_mode & 0o777 == 0o600
    before = file.read_bytes()
    assert invoke("export", KINDS, "--url", "redis://127.0.0.1:1/0", "-o", str(file)).exit_code == 3
    assert file.read_bytes() == before
    raw("SET", "kinds:pet:p1", "no hash")
    done = invoke("export", KINDS, "--url", url, "-o", str(file))
    assert done.exit_code == 1
    assert "pet:<pet> #" in done.stderr
    assert len(file.read_bytes().splitlines()) == len(before.splitlines()) - 1
    assert [each.name for each in file.parent.iterdir()] == [file.name]


def test_an_import_shows_a_plan_and_writes_with_yes_only(
    invoke: Invoke, url: str, file: Path, raw: Raw
) -> None:
    for name in raw.names():
        raw("UNLINK", name)
    given = ("import", KINDS, str(file), "--url", url)
    done = invoke(*given)
    assert done.exit_code == 1
    assert "  pet:<pet>: 30 to be written" in done.stdout
    assert "Nothing was changed. Add --yes" in done.stdout
    assert raw.names() == set()
    done = invoke(*given, "--yes")
    assert done.exit_code == 0
    assert "32 keys written" in done.stdout
    assert "keywright audit" in done.stdout
    done = invoke(*given)
    assert (done.exit_code, "Nothing is to be done." in done.stdout) == (0, True)


def test_a_file_of_standard_output_is_read_from_standard_input(invoke: Invoke, url: str, raw: Raw) -> None:
    text = invoke("export", KINDS, "--url", url).stdout
    raw("UNLINK", "kinds:total")
    done = invoke("import", KINDS, "-", "--url", url, "--yes", stdin=text)
    assert (done.exit_code, raw("GET", "kinds:total")) == (0, b"2")


def test_a_key_with_another_content_stops_the_import_unless_it_is_replaced(
    invoke: Invoke, url: str, file: Path, raw: Raw
) -> None:
    raw("SET", "kinds:total", "7")
    raw("UNLINK", "kinds:pet:p1")
    given = ("import", KINDS, str(file), "--url", url, "--yes", "--format", "json")
    done = invoke(*given)
    found = json.loads(done.stdout)
    assert (done.exit_code, found["applied"], found["plan"]["different"]) == (1, False, {"total": 1})
    assert raw("EXISTS", "kinds:pet:p1") == 0
    done = invoke(*given, "--replace")
    assert (done.exit_code, json.loads(done.stdout)["result"]["written"]) == (0, 2)
    assert raw("GET", "kinds:total") == b"2"


def test_an_invalid_line_is_named_by_its_number(invoke: Invoke, url: str, file: Path, raw: Raw) -> None:
    raw("UNLINK", "kinds:total")
    lines = file.read_text().splitlines()
    place = next(number for number, line in enumerate(lines) if '"total"' in line)
    lines[place] = lines[place].replace('"stored":"2"', '"stored":"many"')
    file.write_text("\n".join(lines))
    done = invoke("import", KINDS, str(file), "--url", url, "--yes")
    assert done.exit_code == 1
    assert f"line {place + 1}: KW202" in done.stdout
    assert "many" not in done.stdout
    assert raw("EXISTS", "kinds:total") == 0


def test_a_file_that_is_missing_is_refused(invoke: Invoke, url: str) -> None:
    done = invoke("import", KINDS, "nowhere.jsonl", "--url", url)
    assert (done.exit_code, "cannot be read" in done.stderr) == (2, True)


def test_a_link_is_not_followed_to_a_file_of_others(invoke: Invoke, url: str, tmp_path: Path) -> None:
    (tmp_path / "victim").write_text("keep")
    (tmp_path / ".out.part").symlink_to(tmp_path / "victim")
    done = invoke("export", KINDS, "--url", url, "-o", str(tmp_path / "out"))
    assert (done.exit_code, "symbolic link" in done.stderr) == (2, True)
    assert (tmp_path / "victim").read_text() == "keep"


def test_a_killed_import_is_completed_by_running_it_again(
    invoke: Invoke, redis_url: str, raw: Raw, tmp_path: Path
) -> None:
    with connect(redis_url) as db:
        db.run(gather(*(spaces.Pets(f"p{n}").put(spaces.Cat("cat", n)) for n in range(1000))))
    before = {name: raw("HGETALL", name) for name in raw.names()}
    file = tmp_path / "all.jsonl"
    invoke("export", KINDS, "--url", redis_url, "-o", str(file))
    for name in before:
        raw("UNLINK", name)
    command = [sys.executable, "-m", "keywright", "import", KINDS, str(file), "--yes", "--max-rate", "50"]
    environment = {**os.environ, "REDIS_URL": redis_url}
    with subprocess.Popen(command, cwd=Path(__file__).parents[1], env=environment) as process:
        wait_until(lambda: bool(raw.names()), "the first keys are written")
        process.kill()
    assert 0 < len(raw.names()) < 1000
    done = invoke("import", KINDS, str(file), "--url", redis_url, "--yes", "--format", "json")
    found = json.loads(done.stdout)["result"]
    assert (done.exit_code, found["written"] + found["same"]) == (0, 1000)
    assert {name: raw("HGETALL", name) for name in raw.names()} == before
