"""The endpoint of interactions: only what Discord signed counts, and late replies are deferred."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Iterator

import httpx
import pytest
from starlette.applications import Starlette
from typer.testing import CliRunner

from keywright.testing import Raw, RedisServer, wait_until
from keywright_meetup.commands.meetup import meetup
from keywright_meetup.service.interactions import (
    LARGEST_BODY,
    PATH,
    Interaction,
    InteractionsEndpoint,
    Reply,
)
from keywright_meetup.service.slash_commands import COMMANDS
from keywright_meetup.simulator.discord import COMMAND, PING
from keywright_service.errors import HttpRefusedError, PlatformRefusedError

from ..meetup_bots import RunningBot, Surroundings


@pytest.fixture
def bot(around: Surroundings) -> Iterator[RunningBot]:
    with RunningBot(around) as running:
        yield running.listen()


def test_a_ping_is_answered(around: Surroundings, bot: RunningBot) -> None:
    answer = around.discord.send(around.discord.interaction(PING))
    assert (answer.status_code, answer.json()) == (200, {"type": 1})


def test_a_request_that_discord_did_not_sign_is_refused(around: Surroundings, bot: RunningBot) -> None:
    user = around.discord.guild.join("Gino")
    body = around.discord.interaction(COMMAND, user, data={"name": "link"})
    signed = around.discord.signature(body)
    forgeries = {
        "without headers": (body, {"X-Other": "1"}),
        "another body": (body.replace(str(user).encode(), b"1"), signed),
        "another time": (body, {**signed, "X-Signature-Timestamp": "1"}),
        "a timestamp that is not one": (body, {**signed, "X-Signature-Timestamp": "x"}),
        "a signature that is not one": (body, {**signed, "X-Signature-Ed25519": "zz"}),
        "a short signature": (body, {**signed, "X-Signature-Ed25519": "00"}),
    }
    answers = {name: around.discord.send(*forged) for name, forged in forgeries.items()}
    assert {name: each.status_code for name, each in answers.items()} == dict.fromkeys(forgeries, 401)
    assert around.discord.send(body, signed).status_code == 200


@pytest.mark.parametrize(("seconds_ago", "status"), [(299, 200), (301, 401), (-301, 401)])
def test_a_signature_is_valid_for_five_minutes(
    around: Surroundings, bot: RunningBot, seconds_ago: float, status: int
) -> None:
    body = around.discord.interaction(PING)
    answer = around.discord.send(body, around.discord.signature(body, seconds_ago=seconds_ago))
    assert answer.status_code == status


def test_a_body_that_is_too_large_is_refused_before_it_is_verified(
    around: Surroundings, bot: RunningBot
) -> None:
    assert around.discord.send(b" " * (LARGEST_BODY + 1)).status_code == 413
    assert around.discord.send(b" " * LARGEST_BODY).status_code == 400
    assert around.discord.send(b"{}").status_code == 400
    assert around.discord.send(b'{"id": "\xff"}').status_code == 400
    assert around.discord.send(b'{"other": ' + b"[" * 100_000).status_code == 400


@pytest.mark.parametrize("kind", [0, 4, 5, 99])
def test_an_interaction_of_another_kind_does_not_run_the_command_that_it_names(
    around: Surroundings, bot: RunningBot, kind: int, raw: Raw
) -> None:
    someone = around.discord.guild.join("Gino")
    answer = around.discord.send(around.discord.interaction(kind, someone, data={"name": "link"}))
    assert answer.status_code == 400
    assert not [name for name in raw.names() if name.startswith(b"meetup_linking:")]


@pytest.mark.parametrize("where", ["guild_id", "application_id"])
def test_an_interaction_of_another_guild_or_application_changes_nothing(
    around: Surroundings, bot: RunningBot, where: str
) -> None:
    someone = around.discord.guild.join("Gino")
    body = json.loads(around.discord.interaction(COMMAND, someone, data={"name": "link"}))
    answer = around.discord.send(json.dumps({**body, where: "5"}).encode())
    assert answer.json()["data"]["content"] == "This bot serves another server."


@pytest.mark.anyio
async def test_work_that_takes_longer_is_deferred_and_replied_to_later(around: Surroundings) -> None:
    over = asyncio.Event()

    async def answer(interaction: Interaction) -> Reply:
        await over.wait()
        return Reply("It is done.")

    async with around.opened() as opened:
        endpoint = InteractionsEndpoint(opened.discord, answer, around.clock, reply_seconds=0.01)
        transport = httpx.ASGITransport(Starlette(routes=[endpoint.route()]))
        async with httpx.AsyncClient(transport=transport, base_url="https://bot.example") as discord:
            body = around.discord.interaction(COMMAND, around.discord.guild.join("Gino"))
            token = json.loads(body)["token"]
            around.discord.guild.tokens.add(token)
            await endpoint.application()
            deferred = await discord.post(PATH, content=body, headers=around.discord.signature(body))
            assert deferred.json() == {"type": 5, "data": {"flags": 64}}
            assert around.discord.guild.replies == {}
            over.set()
            await endpoint.close(60)
    reply = {"content": "It is done.", "components": [], "allowed_mentions": {"parse": []}}
    assert around.discord.guild.replies == {token: reply}


@pytest.mark.anyio
@pytest.mark.parametrize("seconds", [10.0, 0.0], ids=["at once", "deferred"])
async def test_a_defect_of_the_bot_is_logged_and_replied_to(
    around: Surroundings, caplog: pytest.LogCaptureFixture, seconds: float
) -> None:
    async def answer(interaction: Interaction) -> Reply:
        await asyncio.sleep(0)
        raise ZeroDivisionError

    user = around.discord.guild.join("Gino")
    async with around.opened() as opened:
        endpoint = InteractionsEndpoint(opened.discord, answer, around.clock, reply_seconds=seconds)
        transport = httpx.ASGITransport(Starlette(routes=[endpoint.route()]))
        async with httpx.AsyncClient(transport=transport, base_url="https://bot.example") as discord:
            body = around.discord.interaction(COMMAND, user)
            token = json.loads(body)["token"]
            around.discord.guild.tokens.add(token)
            await endpoint.application()
            reply = (await discord.post(PATH, content=body, headers=around.discord.signature(body))).json()
            await endpoint.close(60)
    data = around.discord.guild.replies[token] if reply["type"] == 5 else reply["data"]
    assert "Something went wrong on our side" in data["content"]
    assert "ZeroDivisionError" in caplog.text


def test_an_interaction_while_redis_is_away_gets_a_reply_and_works_again_later(
    around: Surroundings, bot: RunningBot, keywright_server: RedisServer
) -> None:
    someone = around.discord.guild.join("Gino")
    keywright_server.stop()
    assert "Something went wrong on our side" in around.discord.command(someone, "link")["content"]
    keywright_server.start()
    assert "works once, for ten minutes" in around.discord.command(someone, "link")["content"]


def test_interactions_are_counted_by_their_outcome(around: Surroundings) -> None:
    someone, token = around.discord.guild.join("Gino"), "a token for monitoring"
    with RunningBot(around, MEETUP_HEALTH_TOKEN=token) as bot:
        bot.listen()
        around.discord.send(b"{}", {"X-Signature-Ed25519": "00"})
        around.discord.command(someone, "whoami")
        page = httpx.get(f"{bot.url}/metrics", headers={"Authorization": f"Bearer {token}"}).text
    # Deferred, if this machine is busy.
    assert len(re.findall(r'meetup_interactions_total{outcome="(?:replied|deferred)"} 1.0', page)) == 1
    assert 'meetup_interactions_total{outcome="refused"} 2.0' in page  # one by the trial of the endpoint


def test_an_interaction_before_discord_said_what_our_key_is_is_refused_for_a_while(
    around: Surroundings,
) -> None:
    around.discord.faults.fail("/applications/@me", 503, times=1000)
    with RunningBot(around) as bot:
        around.discord.guild.application["interactions_endpoint_url"] = f"{bot.url}{PATH}"
        assert around.discord.send(around.discord.interaction(PING)).status_code == 503
        around.discord.faults.clear()
        assert around.discord.send(around.discord.interaction(PING)).status_code == 200


def test_a_token_that_discord_does_not_accept_ends_the_bot_at_the_start(around: Surroundings) -> None:
    """It was found by the first sync, and the bot went on."""
    environment = around.environment(DISCORD_TOKEN="wrong")
    refused = CliRunner().invoke(meetup, ["serve"], env=environment).exception
    assert isinstance(refused, HttpRefusedError)
    assert (refused.status, refused.exit_code) == (401, 3)
    assert "developer portal" in str(refused)


def test_the_bot_registers_its_commands_once(around: Surroundings) -> None:
    def writes() -> int:
        return sum(each.method == "PUT" and "/commands" in each.path for each in around.discord.answered)

    for _ in range(2):
        with RunningBot(around) as bot:
            (task,) = (each for each in bot.bot.tasks if each.name == "commands")
            wait_until(lambda: task.health.last, "commands that are registered")  # noqa: B023  # waited for here
    assert [each["name"] for each in around.discord.guild.commands] == [each["name"] for each in COMMANDS]
    assert writes() == 1
    around.discord.guild.commands[0]["description"] = "Something else"
    with RunningBot(around):
        wait_until(lambda: writes() == 2, "a command that is put right")


def test_the_command_register_tells_discord_the_commands_and_the_endpoint(around: Surroundings) -> None:
    with RunningBot(around) as bot:
        environment = around.environment(PAGES_URL=bot.url)
        done, again = (CliRunner().invoke(meetup, ["register"], env=environment) for _ in range(2))
    endpoint = f"{bot.url}{PATH}"
    assert done.exit_code == 0, done.output
    assert done.stdout.endswith(f"Discord sends interactions to {endpoint}.\n")
    assert again.stdout.startswith("The commands were registered already.\n")
    assert around.discord.guild.application["interactions_endpoint_url"] == endpoint


def test_discord_refuses_an_endpoint_that_nobody_answers(around: Surroundings) -> None:
    refused = CliRunner().invoke(meetup, ["register"], env=around.environment(PAGES_URL="http://127.0.0.1:1"))
    assert isinstance(refused.exception, PlatformRefusedError)
    said = str(refused.exception)
    assert "Discord refused http://127.0.0.1:1/discord/interactions: status 400 Invalid Form Body: " in said
    assert "The url could not be verified. It does not answer" in said
    assert "Start the bot, and let its proxy pass requests to this address on" in said
    assert around.discord.guild.application["interactions_endpoint_url"] is None
