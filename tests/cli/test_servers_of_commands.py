"""Every command that needs a server refuses to run without one, and starts none of its own."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import typer
from typer.main import get_command

from invoking import Invoke
from keywright import EmbeddedServer
from keywright.cli import app
from keywright.engine.embedded import living_pids

NO_SERVER = "--url redis://localhost:6379/0 or set REDIS_URL; or add --embedded DIR"

WITHOUT_SERVER = {
    "acl",
    "check",
    "completion",
    "diff",
    "docs",
    "generate",
    "explain",
    "gateway simulate",
    "init",  # only with --infer
    "meetup register",
    "meetup simulate",
    "openmod simulate",
    "registry migrate",  # its database is not Redis
    "tour",  # a private server, removed afterwards
    "up",  # an embedded server, deleted afterwards, unless --url is given
}
BROKERS = {
    "broker publish",
    "broker consume",
    "broker call",
    "broker dead list",
    "broker dead replay",
    "broker dead drop",
}
NEEDING = {
    "audit": ["registry"],
    "discord fetch": ["widgets"],
    "discord get": ["guild", "1"],
    "discord ingest": [],
    "discord purge": ["--prefix", "bot", "--layout", "drc"],
    "explore": ["registry"],
    "export": ["registry"],
    "gateway reset": [],
    "gateway run": [],
    "get": ["registry", "name"],
    "import": ["registry", __file__],
    "infer": [],
    "meetup attach": ["series", "1"],
    "meetup authorize": [],
    "meetup end": ["1"],
    "meetup invite": ["1"],
    "meetup link": ["1", "2"],
    "meetup readmit": ["1", "2"],
    "meetup remove": ["1", "2"],
    "meetup serve": [],
    "meetup show": ["event", "1"],
    "meetup sync": [],
    "meetup tokens": [],
    "meetup unlink": ["1"],
    "migrate": ["registry"],
    "openmod enforce": [],
    "openmod extracts": ["t3_1"],
    "openmod ingest": [],
    "openmod serve": [],
    "openmod show": ["t3_1"],
    "registry counts": ["a/b"],
    "registry drop": ["a/b"],
    "registry get": ["a/b"],
    "registry put": [],
    "registry serve": ["--port", "0"],
    "recover": ["registry"],
    "repair": ["registry"],
    "scan": ["registry"],
    "shell": ["registry"],
    "stats": ["registry"],
}
SETTINGS = {
    "DISCORD_TOKEN": "MTIz.abc.def",
    "DISCORD_GUILD": "1",
    "MEETUP_CLIENT_SECRET": "secret",
    "MEETUP_CLIENT_ID": "us",
    "MEETUP_GROUPS": "group",
    "MEETUP_ACCESS_TOKEN": "access",
    "MEETUP_REFRESH_TOKEN": "refresh",
    "PAGES_URL": "https://bot.example.org",
    "OPENMOD_SUBREDDIT": "sub",
    "OPENMOD_TARGET_SUBREDDIT": "target",
    "REDDIT_CLIENT_ID": "id",
    "REDDIT_CLIENT_SECRET": "secret",
    "REDDIT_USERNAME": "user",
    "REDDIT_PASSWORD": "password",
}
"""Everything that the services must be given, except a server."""


def commands() -> dict[str, Any]:
    program = get_command(app)
    return dict(_below(program, typer.Context(program), ""))


def _below(group: Any, context: typer.Context, path: str) -> Iterator[tuple[str, Any]]:
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        if hasattr(command, "list_commands"):
            yield from _below(command, context, f"{path}{name} ")
        else:
            yield f"{path}{name}", command


@pytest.fixture
def configured(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)  # no pyproject.toml above it names a server
    for name, value in SETTINGS.items():
        monkeypatch.setenv(name, value)


def test_every_command_is_known_to_need_a_server_or_not() -> None:
    assert set(commands()) == WITHOUT_SERVER | BROKERS | set(NEEDING)


@pytest.mark.parametrize("command", NEEDING)
@pytest.mark.usefixtures("configured")
def test_without_a_server_it_exits_with_2_and_says_what_to_pass(invoke: Invoke, command: str) -> None:
    repository = (
        '{"id": 1, "namespace_id": 1, "name": "b", "path": "a/b", "created_at": "2026-01-02T03:04:05Z"}'
    )
    given = repository if command == "registry put" else ""
    before = living_pids()
    done = invoke(*command.split(), *NEEDING[command], stdin=given)
    assert (done.exit_code, done.stdout) == (2, ""), done.output
    assert NO_SERVER in done.stderr
    assert living_pids() == before


@pytest.mark.parametrize("command", sorted(BROKERS))
@pytest.mark.usefixtures("configured")
def test_without_a_broker_it_exits_with_2(invoke: Invoke, command: str) -> None:
    done = invoke(*command.split(), "EVENT")
    assert done.exit_code == 2
    assert "--broker" in done.stderr


def test_a_folder_instead_of_a_server_is_offered_by_exactly_the_commands_that_need_one() -> None:
    offering = {
        path
        for path, command in commands().items()
        if any("--embedded" in parameter.opts for parameter in command.params)
    }
    assert offering == set(NEEDING)


@pytest.mark.parametrize("command", sorted([*NEEDING, *BROKERS]))
def test_help_promises_no_embedded_server_as_the_default(invoke: Invoke, command: str) -> None:
    shown = " ".join(invoke(*command.split(), "--help").output.split())
    assert "else an embedded" not in shown.lower()


@pytest.mark.usefixtures("configured")
def test_data_in_a_folder_is_there_for_the_next_command(invoke: Invoke, tmp_path: Path) -> None:
    folder, before = ("--embedded", str(tmp_path / "data")), living_pids()
    assert invoke("meetup", "link", "1", "2", *folder).stdout == "Linked.\n"
    assert json.loads(invoke("meetup", "show", "meetup-user", "1", *folder).stdout)["discord_user"] == "2"
    assert living_pids() == before


@pytest.mark.usefixtures("configured")
def test_a_folder_that_another_server_uses_is_refused(invoke: Invoke, tmp_path: Path) -> None:
    with EmbeddedServer(tmp_path / "data"):
        done = invoke("meetup", "link", "1", "2", "--embedded", str(tmp_path / "data"))
    assert done.exit_code == 3
    assert "another server already writes to" in done.stderr
