"""No stored name or value controls the terminal of someone who looks at it; programs get exact bytes."""

from __future__ import annotations

import json
import logging
import os
import pty
import re
import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path

import pytest
from typer.testing import Result

from invoking import Invoke
from keywright import connect
from keywright.cli.logs import log_to_stderr
from keywright.testing import Raw
from keywright.tools.terminal import printable
from keywright_openmod.service.schema import LocalPost, PublishedPost
from keywright_registry.cache import RepositoryCache
from keywright_registry.repository import Repository

HOSTILE = "evil\x1b[31m\x1b]0;pwned\x07\nKW999 forged\x9b2J\x7f\u202egpj.exe"
CONTROLS = re.compile("[\x00-\x09\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")
ROOT = Path(__file__).parents[2]


def is_harmless(done: Result) -> bool:
    text = done.stdout + done.stderr
    return "evil" in text and not CONTROLS.search(text) and "\nKW999" not in text


@pytest.fixture
def url(redis_url: str, raw: Raw) -> str:
    raw("SET", HOSTILE, "value")
    return redis_url


@pytest.mark.parametrize(
    ("character", "shown"),
    [("\x1b", r"\x1b"), ("\n", r"\n"), ("\x9b", r"\x9b"), ("\u202e", r"\u202e"), ("\udc80", r"\udc80")],
)
def test_control_characters_are_shown_as_escapes(character: str, shown: str) -> None:
    assert printable(f"a{character}b") == f"a{shown}b"


def test_letters_of_any_language_and_emoji_stay() -> None:
    text = "Zürich 東京 עברית 👩‍🚀"
    assert printable(text) == text


@pytest.mark.parametrize("command", ["audit", "repair"])
def test_names_of_findings_are_harmless(invoke: Invoke, url: str, command: str) -> None:
    more = ("--remove", "unknown") if command == "repair" else ()
    assert is_harmless(invoke(command, "registry", "--url", url, "--show-ids", *more))


def test_a_name_that_was_asked_for_is_harmless(invoke: Invoke, url: str) -> None:
    assert is_harmless(invoke("get", "registry", HOSTILE, "--url", url))


def test_errors_are_harmless(invoke: Invoke, url: str) -> None:
    for more in ((), ("--debug",)):
        assert is_harmless(invoke(*more, "docs", HOSTILE))


def test_paths_of_repositories_are_harmless(invoke: Invoke, redis_url: str) -> None:
    repository = {
        "id": 1,
        "namespace_id": 1,
        "name": "b",
        "path": HOSTILE,
        "created_at": "2026-01-02T03:04:05Z",
    }
    given = ("--url", redis_url)
    assert is_harmless(invoke("registry", "put", *given, stdin=json.dumps(repository)))
    assert is_harmless(invoke("registry", "drop", HOSTILE, *given))
    assert is_harmless(invoke("registry", "get", HOSTILE, *given))


def test_a_published_text_keeps_its_lines_and_nothing_else(invoke: Invoke, redis_url: str) -> None:
    with connect(redis_url) as db:
        db.run(LocalPost("t3_local1").put(PublishedPost("log", "title", HOSTILE)))
    done = invoke("openmod", "show", "t3_local1", "--url", redis_url)
    assert not CONTROLS.search(done.stdout)
    assert done.stdout.splitlines()[-1].startswith("KW999")


def test_rejected_packets_are_harmless(invoke: Invoke, redis_url: str, tmp_path: Path) -> None:
    packets = tmp_path / "packets.jsonl"
    packets.write_text(json.dumps({"op": 0, "t": "GUILD_CREATE", "s": 1, "d": {"id": HOSTILE}}))
    assert is_harmless(invoke("discord", "ingest", str(packets), "--url", redis_url))


def test_logs_are_harmless_and_keep_tracebacks(capsys: pytest.CaptureFixture[str]) -> None:
    log_to_stderr()
    try:
        raise ValueError(HOSTILE)
    except ValueError:
        logging.getLogger("keywright.service").exception("failed: %s", HOSTILE)
    text = capsys.readouterr().err
    assert not CONTROLS.search(text)
    assert r"failed: evil\x1b[31m" in text.splitlines()[0]
    assert "Traceback" in text.splitlines()[1]


def test_a_structured_log_has_an_object_on_each_line(capsys: pytest.CaptureFixture[str]) -> None:
    log_to_stderr(json=True)
    try:
        raise ValueError(HOSTILE)
    except ValueError:
        logging.getLogger("keywright.service").exception("failed: %s", HOSTILE)
    logging.getLogger("keywright.service").debug("not logged")
    text = capsys.readouterr().err
    assert not CONTROLS.search(text)
    (line,) = map(json.loads, text.splitlines())
    assert datetime.fromisoformat(line.pop("time")).tzinfo == UTC
    assert line.pop("exception").startswith("Traceback")
    assert line == {"level": "error", "logger": "keywright.service", "message": f"failed: {HOSTILE}"}


def test_warnings_of_other_packages_have_the_time_too(capsys: pytest.CaptureFixture[str]) -> None:
    log_to_stderr()
    logging.getLogger("psycopg.pool").warning("error connecting")
    logging.getLogger("psycopg.pool").info("not logged")
    assert re.fullmatch(r"[-\d]+ [:,\d]+ WARNING error connecting\n", capsys.readouterr().err)


@pytest.mark.parametrize("form", ["json", "sarif"])
def test_formats_for_programs_keep_names_exactly(invoke: Invoke, url: str, form: str) -> None:
    done = invoke("audit", "registry", "--url", url, "--show-ids", "--format", form)
    assert HOSTILE in _strings(json.loads(done.stdout))


def test_no_name_is_a_link_in_the_text_of_sarif(invoke: Invoke, redis_url: str, raw: Raw) -> None:
    raw("SET", "registry:[read this](https://evil.example)", "x")
    done = invoke("audit", "registry", "--url", redis_url, "--show-ids", "--format", "sarif")
    (result,) = json.loads(done.stdout)["runs"][0]["results"]
    assert r"\[read this\](https://evil.example)" in result["message"]["text"]
    (location,) = result["locations"][0]["logicalLocations"]
    assert location["fullyQualifiedName"] == "registry:[read this](https://evil.example)"


def _strings(data: object) -> set[str]:
    if isinstance(data, dict):
        return {text for value in data.values() for text in _strings(value)} | set(data)
    if isinstance(data, list):
        return {text for value in data for text in _strings(value)}
    return {data} if isinstance(data, str) else set()


def test_json_on_a_terminal_has_escapes_of_the_same_value(redis_url: str) -> None:
    repository = Repository(
        id=1, namespace_id=1, name="b", path=f"a/{HOSTILE}", created_at=datetime(2026, 1, 2, tzinfo=UTC)
    )
    with connect(redis_url) as db:
        db.run(RepositoryCache().set(repository))
    shown = _on_a_terminal("registry", "get", repository.path, "--url", redis_url)
    assert not CONTROLS.search(shown)
    assert json.loads(shown)["path"] == repository.path


def _on_a_terminal(*arguments: str) -> str:
    ours, theirs = pty.openpty()
    try:
        command = [sys.executable, "-m", "keywright", *arguments]
        environment = {**os.environ, "PYTHONIOENCODING": "utf-8"}
        subprocess.run(command, stdout=theirs, env=environment, check=True, cwd=ROOT)
        os.set_blocking(ours, False)
        return os.read(ours, 65536).decode().replace("\r\n", "\n")
    finally:
        os.close(ours)
        os.close(theirs)


def test_all_text_of_commands_is_printed_by_one_module() -> None:
    sources = [*ROOT.glob("src/keywright/**/*.py"), *ROOT.glob("systems/*/src/**/*.py")]
    printing = {
        path.name for path in sources if re.search(r"typer\.s?echo|std(out|err)\.write", path.read_text())
    }
    # `revisions` writes a lock file to its parent process, `__init__` reports that typer is not installed.
    assert printing == {"output.py", "revisions.py", "__init__.py"}
