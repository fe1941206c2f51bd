"""The whole bot: its tasks at work, its health, its commands, and a clean end."""

from __future__ import annotations

import socket
from datetime import timedelta
from pathlib import Path

import httpx
import pytest
from typer.testing import CliRunner, Result

from keywright import connect
from keywright.errors import UsageError
from keywright.testing import Raw, RedisServer, wait_until
from keywright_meetup import tokens
from keywright_meetup.account_links import link
from keywright_meetup.commands.meetup import meetup
from keywright_meetup.errors import RefusedChangeError
from keywright_meetup.schema import TaskLease
from keywright_meetup.service.bot import Bot, sync_once
from keywright_service.tasks import PeriodicTask

from ..meetup_bots import RunningBot, Surroundings

TOKEN = "a-long-random-token"
DETAILS = {"Authorization": f"Bearer {TOKEN}"}


def task_of(bot: RunningBot, name: str) -> PeriodicTask:
    (found,) = (each for each in bot.bot.tasks if each.name == name)
    return found


def test_the_bot_syncs_and_tells_its_health(around: Surroundings) -> None:
    around.announce()
    with RunningBot(around, MEETUP_HEALTH_TOKEN=TOKEN) as bot:
        wait_until(lambda: len(around.discord.guild.made_roles) == 2, "a channel with its roles")
        wait_until(
            lambda: all(each.health.last or each.name == "expiry" for each in bot.bot.tasks), "all tasks"
        )
        shown = httpx.get(f"{bot.url}/health").json()
        health = httpx.get(f"{bot.url}/health", headers=DETAILS).json()
        metrics = httpx.get(f"{bot.url}/metrics", headers=DETAILS).text
        assert httpx.get(f"{bot.url}/metrics").status_code == 401
        assert httpx.get(f"{bot.url}/ready").status_code == 200
    assert 'meetup_events_synced_total{change="added"} 1.0' in metrics
    assert 'service_task_ok{task="sync"} 1.0' in metrics
    assert shown == {"ok": True, "failing": [], "authorization_needed": False}
    assert health["ok"] is True
    assert {each["name"]: each["trouble"] for each in health["tasks"]} == dict.fromkeys(
        ("tokens", "sync", "cleaning", "expiry", "users", "commands")
    )
    assert len(around.discord.guild.text_channels) == 1


def test_without_a_health_token_metrics_are_not_on_the_public_pages(around: Surroundings) -> None:
    with RunningBot(around) as bot:
        assert httpx.get(f"{bot.url}/metrics").status_code == 404
        assert httpx.get(f"{bot.url}/ready").status_code == 200


def test_configured_tokens_are_stored_once(around: Surroundings) -> None:
    with connect(around.redis_url) as db:
        with RunningBot(around):
            wait_until(lambda: around.meetup.oauth.refreshes == 1, "tokens that are refreshed at once")
        first = db.run(tokens.organizer())
        with RunningBot(around) as second:
            wait_until(lambda: second.bot.tasks[0].health.last, "a look at the tokens")
        assert db.run(tokens.organizer()) == first
    assert around.meetup.oauth.refreshes == 1


def test_trouble_at_meetup_is_reported_and_does_not_end_the_bot(around: Surroundings) -> None:
    with around.meetup.faults.outage(400), RunningBot(around, MEETUP_HEALTH_TOKEN=TOKEN) as bot:

        def trouble() -> str:
            health = httpx.get(f"{bot.url}/health", headers=DETAILS)
            assert health.status_code == 200
            tasks = {each["name"]: each["trouble"] for each in health.json()["tasks"]}
            return str(tasks["tokens"] or "") if tasks["sync"] else ""

        assert "status 400" in wait_until(trouble, "trouble that is reported")
        shown = httpx.get(f"{bot.url}/health").json()
    assert {"tokens", "sync"} <= set(shown.pop("failing"))
    assert shown == {"ok": True, "authorization_needed": True}


def test_a_series_that_cannot_be_synced_is_reported_as_trouble(around: Surroundings) -> None:
    around.announce("One")
    around.announce("Two")
    body = '{"message": "Missing Permissions", "code": 50013}'
    around.discord.faults.fail("/channels", 403, method="POST", body=body)
    with RunningBot(around) as bot:
        wait_until(lambda: len(around.discord.guild.made_roles) == 2, "the other series")
        trouble = wait_until(lambda: task_of(bot, "sync").health.trouble, "trouble that is reported")
        assert "Manage Channels" in str(trouble)
        assert task_of(bot, "sync").due == around.clock() + timedelta(minutes=15)


def test_without_redis_it_is_unhealthy_and_well_again_with_it(
    around: Surroundings, keywright_server: RedisServer
) -> None:
    with RunningBot(around) as bot:
        assert httpx.get(f"{bot.url}/health").status_code == 200
        keywright_server.stop()
        wait_until(lambda: httpx.get(f"{bot.url}/health").status_code == 503, "503 without Redis")
        page = httpx.get(f"{bot.url}/link/abc")
        assert page.status_code == 503
        assert "Something went wrong on our side" in page.text
        keywright_server.start()
        wait_until(lambda: httpx.get(f"{bot.url}/health").status_code == 200, "200 with Redis")


def test_a_stop_frees_the_leases_and_the_port(around: Surroundings, redis_url: str) -> None:
    with RunningBot(around) as bot:
        address = bot.bot.address
        assert address is not None
    with connect(redis_url) as db:
        assert db.run(TaskLease("sync").holder()) is None
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        probe.bind(address)


def test_a_stop_does_not_wait_for_an_answer_that_does_not_come(around: Surroundings, redis_url: str) -> None:
    around.announce()
    around.discord.faults.fail("/users/@me", None)
    with RunningBot(around, grace=0.05):
        wait_until(lambda: around.discord.answered, "a question without an answer")
    with connect(redis_url) as db:
        assert db.run(TaskLease("sync").holder()) is None


@pytest.mark.anyio
async def test_a_port_that_is_taken_is_named(around: Surroundings) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        chosen = around.configuration(PAGES_ADDRESS=f"127.0.0.1:{port}")
        with pytest.raises(UsageError, match=rf"127\.0\.0\.1:{port} cannot be listened on.*pages\.address"):
            await Bot(chosen).run()


def test_two_bots_on_one_database_make_one_channel(around: Surroundings) -> None:
    around.announce()
    with RunningBot(around), RunningBot(around):
        wait_until(lambda: len(around.discord.guild.made_roles) == 2, "a channel with its roles")
    assert len(around.discord.guild.text_channels) == 1
    assert len(around.discord.guild.made_roles) == 2


@pytest.mark.anyio
async def test_one_sync_while_another_is_under_way_says_so(around: Surroundings) -> None:
    with connect(around.redis_url) as db:
        db.run(TaskLease("sync").acquire("another", tokens.REFRESH_HOLD))
    with pytest.raises(RefusedChangeError, match="is under way already"):
        await sync_once(around.configuration(), around.clock)


def invoked(around: Surroundings, *arguments: str) -> Result:
    environment = around.environment(PAGES_URL="https://bot.example.org")
    return CliRunner().invoke(meetup, arguments, env=environment)


def test_the_command_sync_prints_its_result(around: Surroundings) -> None:
    around.announce(days=20_000)  # the command has the real clock
    around.announce("[nameless]", days=20_000)
    result = invoked(around, "sync")
    assert result.exit_code == 1
    assert "Meetup: 2 events added, 0 changed, 0 removed, 0 unchanged." in result.stdout
    assert "Discord: 3 channels and roles made" in result.stdout
    assert "Put 2 to 80 letters before the first bracket." in result.stderr
    del around.meetup.world.events[max(around.meetup.world.events)]
    again = invoked(around, "sync")
    assert again.exit_code == 0
    assert "1 removed, 1 unchanged" in again.stdout


def test_the_command_invite_prints_a_link(around: Surroundings) -> None:
    someone = around.person("Gino")
    assert invoked(around, "invite", "5").stdout.startswith("https://bot.example.org/link/")
    with connect(around.redis_url) as db:
        db.run(link(someone.meetup, someone.discord))
    refused = invoked(around, "invite", str(someone.discord))
    assert refused.exit_code == 1
    assert "is linked to" in refused.stderr


@pytest.mark.parametrize("command", ["sync", "serve", "invite"])
def test_a_command_without_configuration_names_the_missing_setting(
    command: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("DISCORD_TOKEN", raising=False)
    error = CliRunner().invoke(meetup, [command, *(["5"] if command == "invite" else [])]).exception
    assert isinstance(error, UsageError)
    assert "DISCORD_TOKEN" in str(error)


@pytest.mark.parametrize("command", ["sync", "serve", "invite", "authorize"])
def test_a_bot_without_a_server_is_an_error(
    around: Surroundings, command: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """An embedded server was taken instead, and every channel made a second time on Discord."""
    monkeypatch.chdir(tmp_path)
    environment = around.environment(REDIS_URL="")
    arguments = [command, *(["5"] if command == "invite" else [])]
    refused = CliRunner().invoke(meetup, arguments, env=environment).exception
    assert isinstance(refused, UsageError)
    assert "no server is given" in str(refused)
    assert around.discord.answered == []


def test_the_templates_and_styles_are_part_of_the_package() -> None:
    import keywright_meetup.service as package

    assert package.__file__ is not None
    here = Path(package.__file__).parent
    assert {path.name for path in (here / "templates").iterdir()} == {
        "base.html",
        "confirm.html",
        "link.html",
        "outcome.html",
    }
    assert {path.name for path in (here / "static").iterdir()} == {"link.css", "link.svg"}


def test_a_daily_task_that_fails_is_tried_again_in_an_hour(around: Surroundings, raw: Raw) -> None:
    """Also where the bot was started a moment before it was due."""
    around.clock.advance(hours=18, minutes=29, seconds=59, milliseconds=999)
    raw("SET", "event_series", "stray")
    with RunningBot(around) as bot:
        around.clock.advance(milliseconds=1)
        wait_until(lambda: task_of(bot, "expiry").health.trouble, "trouble")
        assert task_of(bot, "expiry").due == around.clock() + timedelta(hours=1)


def test_the_users_task_misses_no_hour_however_late_in_one_it_ran(around: Surroundings) -> None:
    around.clock.advance(hours=10, minutes=59, seconds=59)
    with RunningBot(around) as bot:
        wait_until(lambda: task_of(bot, "users").health.last, "a first run")
        assert task_of(bot, "users").due == around.clock() + timedelta(seconds=1)
