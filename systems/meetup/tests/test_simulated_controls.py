"""The simulated Discord that people use from a shell, in this process: what it shows, and what it refuses."""

from __future__ import annotations

from collections.abc import Iterator

import httpx
import pytest

from keywright_meetup.simulator import MeetupSimulator
from keywright_meetup.simulator.controls import LARGEST_FORM, PATH, DiscordWithControls
from keywright_meetup.simulator.town import PEOPLE, Town

NOWHERE = "http://127.0.0.1:9/interactions"


@pytest.fixture
def discord() -> Iterator[DiscordWithControls]:
    with MeetupSimulator() as meetup, DiscordWithControls() as simulated:
        Town(meetup, simulated)
        yield simulated


def use(discord: DiscordWithControls, **form: str) -> httpx.Response:
    return httpx.post(f"{discord.url}{PATH}", data=form, timeout=30)


def test_the_guild_is_shown(discord: DiscordWithControls) -> None:
    shown = httpx.get(f"{discord.url}{PATH}").json()
    assert [each["name"] for each in shown["members"]] == list(PEOPLE)
    assert shown["commands"] == []


def test_a_command_needs_a_bot_that_registered(discord: DiscordWithControls) -> None:
    refused = use(discord, **{"as": "Ada", "command": "link"})
    assert refused.status_code == 400
    assert "Run keywright meetup register." in refused.text


@pytest.mark.parametrize(
    ("form", "said"),
    [
        ({"as": "Nobody"}, "There is no member 'Nobody'. There are: keywright, Ada,"),
        ({"as": "Ada", "command": "link", "channel": "lobby"}, "There is no channel 'lobby'."),
        ({"as": "Ada", "command": "extend", "days": "many"}, "days must be a number, got 'many'."),
        (
            {"as": "Ada", "command": "remove", "only_as_host": "true", "user": "Nobody"},
            "There is no member 'Nobody'.",
        ),
    ],
)
def test_a_form_that_names_what_there_is_not_is_refused(
    discord: DiscordWithControls, form: dict[str, str], said: str
) -> None:
    discord.guild.application["interactions_endpoint_url"] = NOWHERE
    refused = use(discord, **form)
    assert refused.status_code == 400
    assert said in refused.text


@pytest.mark.parametrize(
    "form", [{"command": "link", "days": "3", "only_as_host": "true"}, {"button": "end"}]
)
def test_a_bot_that_does_not_answer_is_named(discord: DiscordWithControls, form: dict[str, str]) -> None:
    discord.guild.application["interactions_endpoint_url"] = NOWHERE
    failed = use(discord, **{"as": "Bela", **form})
    assert failed.status_code == 502
    assert failed.text.startswith("The bot does not answer: ")


def test_a_form_that_is_too_large_is_refused(discord: DiscordWithControls) -> None:
    assert use(discord, **{"as": "x" * LARGEST_FORM}).status_code == 413
