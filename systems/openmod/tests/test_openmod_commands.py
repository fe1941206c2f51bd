"""`keywright openmod`: events in, extracts out, exit codes and error messages."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import httpx
import pytest
from typer.testing import CliRunner

from keywright import AsyncDatabase
from keywright.errors import KeywrightError
from keywright.testing import Raw
from keywright_openmod.commands.openmod import openmod
from keywright_openmod.schema import EnforcementSet
from keywright_openmod.simulator import RedditSimulator

from .reddit_service import ASYNCPRAW_WARNS, configured, environment, eventually, serving

AUTHOR = {"id": "t2_author", "name": "jane_doe"}
MODERATOR = {"id": "t2_mod", "name": "some_mod"}
POST = {
    "id": "t3_post",
    "title": "A title",
    "selftext": "Some text.",
    "url": "https://www.reddit.com/r/mysub/comments/post/a_title/",
    "permalink": "/r/mysub/comments/post/a_title/",
    "authorId": "t2_author",
    "createdAt": 1_700_000_000_000,
}
COMMENT = {
    "id": "t1_comment",
    "body": "A remark.",
    "author": "t2_author",
    "permalink": "/r/mysub/comments/post/a_title/comment/",
    "createdAt": 1_700_000_001_000,
}
SUBMIT = {"type": "PostSubmit", "post": POST, "author": AUTHOR, "subreddit": {"name": "mysub"}}
REMARK = {"type": "CommentSubmit", "comment": COMMENT, "author": AUTHOR, "post": POST}


def removal(**changed: Any) -> dict[str, Any]:
    return {
        "type": "ModAction",
        "action": "removelink",
        "actionedAt": "2023-11-14T22:13:30Z",
        "subreddit": {"name": "mysub", "id": "t5_sub"},
        "moderator": MODERATOR,
        "targetUser": AUTHOR,
        "targetPost": POST,
        "targetComment": {"id": "", "body": "", "permalink": ""},
    } | changed


class Ran:
    """The result of a command."""

    def __init__(self, code: int, output: str, errors: str) -> None:
        self.code = code
        self.output = output
        self.errors = errors

    @property
    def lines(self) -> list[dict[str, Any]]:
        return [json.loads(line) for line in self.output.splitlines()]


def run(*arguments: str, given: str = "") -> Ran:
    """Run the command in this process; an error has the exit code of `keywright`."""
    result = CliRunner().invoke(openmod, arguments, input=given)
    error = result.exception
    if isinstance(error, KeywrightError):
        return Ran(error.exit_code, result.stdout, result.stderr + str(error))
    if error is not None and not isinstance(error, SystemExit):
        raise error
    return Ran(result.exit_code, result.stdout, result.stderr)


def lines(*events: object) -> str:
    return "".join(f"{each if isinstance(each, str) else json.dumps(each)}\n" for each in events)


@pytest.fixture
def at(redis_url: str) -> str:
    return f"--url={redis_url}"


@pytest.fixture(autouse=True)
def _no_settings_of_the_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in os.environ:
        if name.startswith(("OPENMOD_", "REDDIT_")) or name == "REDIS_URL":
            monkeypatch.delenv(name)


def test_a_removal_becomes_an_extract_that_can_be_listed_and_shown(at: str) -> None:
    ran = run("ingest", at, given=lines(SUBMIT, removal()))
    assert (ran.code, [each["outcome"] for each in ran.lines]) == (0, ["recorded", "recorded"])
    extract = ran.lines[1]["extract"]
    assert ran.errors == "2 events: 2 recorded.\n"

    (listed,) = run("extracts", "t3_post", at).lines
    assert (listed["post"], listed["type"], listed["thing"]) == (extract, "removelink", "t3_post")
    assert listed["title"] == "u/some_mod removed a post from r/mysub"
    assert run("extracts", "t2_author", at).lines == [listed]
    assert run("extracts", "t3_other", at).lines == []

    shown = run("show", extract, at).output
    assert shown.startswith("u/some_mod removed a post from r/mysub\n\n")
    assert "Some text" in shown
    shown_json = json.loads(run("show", extract, "--json", at).output)
    assert shown_json["title"] == listed["title"]
    assert shown_json["extract"] == {
        "type": "removelink",
        "actor": "t2_mod",
        "target": "t2_author",
        "link": "t3_post",
    }


def test_the_same_events_again_change_nothing(at: str) -> None:
    events = lines(SUBMIT, REMARK, removal())
    first = run("ingest", at, given=events)
    again = run("ingest", at, given=events)
    assert [each["outcome"] for each in again.lines] == ["duplicate"] * 3
    assert len(run("extracts", "t3_post", at).lines) == 1
    assert first.lines[2]["extract"] == run("extracts", "t3_post", at).lines[0]["post"]


def test_a_deletion_by_the_author_redacts_and_one_by_a_moderator_does_not(at: str) -> None:
    extract = run("ingest", at, given=lines(SUBMIT, removal())).lines[1]["extract"]
    deletion = {"type": "PostDelete", "postId": "t3_post", "source": 3, "author": AUTHOR}
    (kept,) = run("ingest", at, given=lines(deletion)).lines
    assert kept["outcome"] == "left out"
    assert "Some text" in run("show", extract, at).output
    run("ingest", at, given=lines(deletion | {"source": 1}))
    shown = run("show", extract, at).output
    assert "Some text" not in shown
    assert "jane" not in shown
    assert run("extracts", "t2_author", at).lines == []


def test_an_update_is_shown(at: str) -> None:
    extract = run("ingest", at, given=lines(SUBMIT, removal())).lines[1]["extract"]
    update = {"type": "PostUpdate", "post": POST | {"selftext": "Other text."}, "author": AUTHOR}
    assert run("ingest", at, given=lines(update | {"previousBody": "Some text."})).code == 0
    assert "Other text" in run("show", extract, at).output


def test_an_action_with_bare_ids_uses_the_content_of_earlier_events(at: str) -> None:
    bare = removal(action="removecomment", targetPost={"id": "t3_post"}, targetComment={"id": "t1_comment"})
    extract = run("ingest", at, given=lines(REMARK, bare)).lines[1]["extract"]
    assert "A remark" in run("show", extract, at).output


def test_a_ban_is_listed_under_the_user(at: str) -> None:
    ban = removal(action="banuser", targetPost={"id": ""})
    extract = run("ingest", at, given=lines(ban)).lines[0]["extract"]
    (listed,) = run("extracts", "t2_author", at).lines
    assert (listed["post"], listed["thing"]) == (extract, "t2_author")
    assert json.loads(run("show", extract, "--json", at).output)["extract"]["type"] == "banuser"


def test_lines_that_cannot_be_recorded_are_reported_and_the_others_recorded(at: str) -> None:
    unheard = removal(action="removecomment", targetComment={"id": ""})
    ran = run("ingest", at, given=lines(SUBMIT, "{not json", '{"type": "Sing"}', "", unheard, removal()))
    assert ran.code == 1
    assert [each["line"] for each in ran.lines] == [1, 6]
    errors = ran.errors.splitlines()
    assert [each.partition(":")[0] for each in errors[:-1]] == ["line 2", "line 3", "line 5"]
    assert errors[-1] == "5 events: 2 recorded, 3 refused."


@pytest.mark.parametrize(
    "odd",
    [
        SUBMIT | {"author": {"id": 5, "name": None}, "post": {"id": "t3_odd"}},
        SUBMIT | {"author": "t2_author", "post": {"id": "t3_odd", "authorId": "nobody"}},
        SUBMIT | {"author": [], "post": {"id": "t3_odd", "createdAt": 1e300, "title": 7}},
        removal(actionedAt=10**30),
        removal(actionedAt=-(10**17)),
        removal(actionedAt=10**30, action="lock"),
        removal(actionedAt="0001-01-01T00:00:00+10:00"),
        removal(targetUser=None),
    ],
)
def test_odd_events_are_reported_by_line_and_never_crash(at: str, odd: dict[str, Any]) -> None:
    ran = run("ingest", at, given=lines(odd, SUBMIT))
    assert "recorded" in [each["outcome"] for each in ran.lines if each["line"] == 2]
    assert (ran.code == 1) == ("line 1" in ran.errors)


def test_people_without_ids_cannot_be_recorded_offline(at: str) -> None:
    ran = run("ingest", at, given=lines(removal(moderator={"name": "some_mod"})))
    assert ran.code == 1
    assert "line 1" in ran.errors
    assert "u/some_mod" in ran.errors


def test_settings_of_a_file_are_applied(at: str, tmp_path: Path) -> None:
    config = tmp_path / "openmod.toml"
    config.write_text("[settings]\ntargetSubredit = 'elsewhere'\nexcludedModerators = 'Some_Mod'\n")
    (left_out,) = run("ingest", at, "--config", str(config), given=lines(removal())).lines
    assert (left_out["outcome"], left_out["reason"]) == ("left out", "this moderator is excluded")


def test_events_are_read_from_a_file_and_a_missing_file_is_an_error(at: str, tmp_path: Path) -> None:
    events = tmp_path / "events.jsonl"
    events.write_text(lines(SUBMIT))
    assert run("ingest", str(events), at).code == 0
    missing = run("ingest", str(tmp_path / "none.jsonl"), at)
    assert missing.code == 2
    assert "none.jsonl" in missing.errors


def test_keys_go_under_a_prefix(at: str) -> None:
    run("ingest", at, "--prefix", "mine", given=lines(SUBMIT, removal()))
    assert run("extracts", "t3_post", at).lines == []
    assert len(run("extracts", "t3_post", at, "--prefix", "mine").lines) == 1


def test_show_exits_with_one_if_the_extract_does_not_exist(at: str) -> None:
    ran = run("show", "t3_none", at)
    assert (ran.code, ran.output) == (1, "")
    assert "t3_none" in ran.errors


@pytest.mark.parametrize("command", ["show", "extracts"])
def test_an_invalid_id_exits_with_two(at: str, command: str) -> None:
    assert run(command, "nothing", at).code == 2


@pytest.mark.parametrize("arguments", [("ingest",), ("show", "t3_x"), ("extracts", "t3_x")])
def test_an_unreachable_server_exits_with_three(arguments: tuple[str, ...], tmp_path: Path) -> None:
    ran = run(*arguments, f"--url=unix://{tmp_path}/none.sock", given=lines(SUBMIT))
    assert ran.code == 3


@pytest.mark.parametrize("command", ["serve", "enforce"])
def test_missing_configuration_is_an_error_that_names_the_variable(at: str, command: str) -> None:
    ran = run(command, at)
    assert ran.code == 2
    assert "OPENMOD_SUBREDDIT" in ran.errors


def test_events_go_to_the_server_and_the_prefix_of_the_configuration(
    redis_url: str, raw: Raw, tmp_path: Path
) -> None:
    config = tmp_path / "openmod.toml"
    config.write_text(f'[redis]\nurl = "{redis_url}"\nprefix = "ours"\n')
    assert run("ingest", "--config", str(config), given=lines(SUBMIT, removal())).code == 0
    names = raw.names()
    assert names
    assert all(name.startswith(b"ours") for name in names)


@ASYNCPRAW_WARNS
@pytest.mark.anyio
async def test_enforce_once_checks_accounts_that_are_due_and_prints_the_result(
    redis_url: str, reddit: RedditSimulator, db: AsyncDatabase
) -> None:
    def enforce(variables: dict[str, str]) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, "-m", "keywright", "openmod", "enforce", "--once"],
            env=dict(os.environ) | variables,
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )

    author = reddit.world.join("jane_doe")
    async with serving(configured(reddit, redis_url)):
        post = reddit.world.post(author, "mysub", "title", "text")
        reddit.world.moderate(reddit.moderator, "removelink", post, "mysub")
        await eventually(lambda: reddit.extracts, "an extract")
    variables = environment(reddit, redis_url)
    reddit.world.delete_account(author)
    due = dict.fromkeys([author.id, reddit.moderator.id], datetime(2020, 1, 1, tzinfo=UTC))
    await db.run(EnforcementSet().schedule_many(due))
    with reddit.faults.outage():
        down = await asyncio.to_thread(enforce, variables)
    assert (down.returncode, down.stdout) == (3, "")
    reddit.faults.fail("/api/editusertext", 500)
    undecided = await asyncio.to_thread(enforce, variables)
    assert undecided.stdout == "1 kept, 0 erased, 1 undecided.\n"
    assert undecided.returncode == 3
    await db.run(EnforcementSet().schedule(author.id, datetime(2020, 1, 1, tzinfo=UTC)))
    done = await asyncio.to_thread(enforce, variables)
    assert (done.returncode, done.stdout) == (0, "0 kept, 1 erased, 0 undecided.\n")
    assert "jane" not in reddit.bodies[0]


def test_the_simulator_prints_its_variables_and_stops_on_sigterm() -> None:
    with subprocess.Popen(
        [sys.executable, "-m", "keywright", "openmod", "simulate", "--rate", "50"],
        stdout=subprocess.PIPE,
        text=True,
        env=dict(os.environ) | {"PYTHONUNBUFFERED": "1"},
    ) as process:
        assert process.stdout is not None
        printed = [process.stdout.readline().removeprefix("export ").strip() for _ in range(8)]
        variables = dict(each.partition("=")[::2] for each in printed)
        assert httpx.get(f"{variables['REDDIT_OAUTH_URL']}/api/v1/me").status_code == 401
        process.send_signal(signal.SIGTERM)
        assert process.wait(30) == 0
