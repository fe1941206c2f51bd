"""`keywright meetup`: the commands that need no bot."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from keywright import connect
from keywright.errors import UsageError
from keywright.testing import Raw
from keywright_meetup import account_links, channel_times, channels
from keywright_meetup.commands.meetup import meetup
from keywright_meetup.errors import RefusedChangeError
from keywright_meetup.event_sync import sync

from .meetup_town import BIG, NOW, announced, everything, tokens


def invoked(*arguments: str) -> Result:
    return CliRunner().invoke(meetup, arguments)


@pytest.fixture(autouse=True)
def _bare(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("REDIS_URL", raising=False)
    monkeypatch.delenv("KEYWRIGHT_SEAL_KEYS", raising=False)


def test_two_people_are_linked_and_linking_them_again_is_not_an_error(redis_url: str, raw: Raw) -> None:
    first, again = (invoked("link", "1", str(BIG), "--url", redis_url) for _ in range(2))
    assert (first.exit_code, again.exit_code) == (0, 0)
    assert (first.stdout, again.stdout) == ("Linked.\n", "They were linked already.\n")
    assert raw("GET", "meetup_user:1:discord_user") == str(BIG).encode()


def test_a_refused_link_exits_with_1_and_changes_nothing(redis_url: str, raw: Raw) -> None:
    invoked("link", "1", "101", "--url", redis_url)
    before = everything(raw)
    refused = invoked("link", "1", "102", "--url", redis_url)
    assert refused.exit_code == 1
    assert "linked to 101 already" in refused.stderr
    assert everything(raw) == before


@pytest.mark.parametrize("who", [["1"], ["--discord", "101"]])
def test_an_ended_link_leaves_nothing(who: list[str], redis_url: str, raw: Raw) -> None:
    with connect(redis_url) as db:
        db.run(account_links.link(1, 101, tokens()))
    ended, again = (invoked("unlink", *who, "--url", redis_url) for _ in range(2))
    assert (ended.exit_code, again.exit_code) == (0, 1)
    assert everything(raw) == {}


def test_a_link_is_ended_by_exactly_one_user(redis_url: str) -> None:
    for who in ([], ["1", "--discord", "101"]):
        assert isinstance(invoked("unlink", *who, "--url", redis_url).exception, UsageError)


def test_ids_beyond_64_bits_are_refused(redis_url: str) -> None:
    assert invoked("link", "1", str(2**64), "--url", redis_url).exit_code == 2


def test_a_server_is_taken_from_the_environment_and_the_option_wins(
    redis_url: str, raw: Raw, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("REDIS_URL", redis_url)
    assert invoked("link", "1", "101").exit_code == 0
    assert raw("EXISTS", "meetup_user:1:discord_user") == 1
    monkeypatch.setenv("REDIS_URL", "redis://127.0.0.1:1/0")
    assert invoked("link", "2", "102", "--url", redis_url).exit_code == 0


COMMANDS = [
    ["link", "1", "101"],
    ["unlink", "1"],
    ["show", "channel", "5"],
    ["attach", "series", "5"],
    ["remove", "5", "101"],
    ["readmit", "5", "101"],
    ["end", "5"],
    ["tokens"],
]


@pytest.mark.parametrize("arguments", COMMANDS, ids=lambda each: each[0])
def test_a_command_without_a_server_is_an_error(
    arguments: list[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """An embedded server, whose data is gone at the end, was taken instead."""
    monkeypatch.chdir(tmp_path)
    for name in ("ACCESS", "REFRESH"):
        monkeypatch.setenv(f"MEETUP_{name}_TOKEN", "token")
    refused = invoked(*arguments).exception
    assert isinstance(refused, UsageError)
    assert "no server is given" in str(refused)


def test_the_prefix_is_that_of_the_environment_and_the_option_wins(
    redis_url: str, raw: Raw, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("REDIS_PREFIX", "bot")
    invoked("link", "1", "101", "--url", redis_url)
    assert raw("GET", "bot:meetup_user:1:discord_user") == b"101"
    assert invoked("show", "meetup-user", "1", "--url", redis_url).exit_code == 0
    assert invoked("unlink", "1", "--url", redis_url).exit_code == 0
    invoked("link", "1", "101", "--url", redis_url, "--prefix", "other")
    assert set(everything(raw)) == {
        f"other:{name}"
        for name in (
            "discord_user:101:meetup_user",
            "discord_users",
            "meetup_user:1:discord_user",
            "meetup_users",
        )
    }


def test_server_and_prefix_are_those_of_the_file_of_the_bot(redis_url: str, raw: Raw, tmp_path: Path) -> None:
    file = tmp_path / "bot.toml"
    file.write_text(f'[redis]\nurl = "{redis_url}"\nprefix = "bot"\n')
    assert invoked("link", "1", "101", "--config", str(file)).stdout == "Linked.\n"
    assert raw("GET", "bot:meetup_user:1:discord_user") == b"101"
    file.write_text('[reddis]\nprefix = "bot"\n')
    refused = invoked("show", "meetup-user", "1", "--url", redis_url, "--config", str(file)).exception
    assert "The nearest is redis" in str(refused)


def test_everything_is_shown_with_its_relations(redis_url: str) -> None:
    with connect(redis_url) as db:
        db.run(account_links.link(1, BIG, tokens()))
        db.run(sync([announced("e1", "[new adventure] [channel 5]", hosts=[1], guests=[2])]))
        db.run(channels.remove_user(5, BIG))

    def shown(*what: str) -> dict[str, object]:
        done = invoked("show", *what, "--url", redis_url)
        assert done.exit_code == 0, done.output
        found: dict[str, object] = json.loads(done.stdout)
        assert "access-a" not in done.stdout
        return found

    person = {"meetup_user": "1", "discord_user": str(BIG), "oauth2_tokens": True}
    assert shown("meetup-user", "1") == shown("discord-user", str(BIG)) == person
    event = shown("event", "e1")
    assert (event["meetup_hosts"], event["meetup_users"], event["urlname"]) == (["1"], ["2"], "swiss-rpg")
    series = str(event["event_series"])
    assert shown("series", series) == {
        "event_series": series,
        "type": "adventure",
        "discord_channel": "5",
        "meetup_events": ["e1"],
    }
    channel = shown("channel", "5")
    assert (channel["event_series"], channel["removed_users"]) == (series, [str(BIG)])
    assert channel["discord_role"] is None


@pytest.mark.parametrize("what", ["meetup-user", "discord-user", "event", "series", "channel"])
def test_an_unknown_id_exits_with_1(what: str, redis_url: str) -> None:
    assert invoked("show", what, "9", "--url", redis_url).exit_code == 1


def test_an_invalid_id_is_refused(redis_url: str) -> None:
    for wrong in (["channel", "five"], ["meetup-user", str(2**64)]):
        assert isinstance(invoked("show", *wrong, "--url", redis_url).exception, UsageError)


@pytest.fixture
def series(redis_url: str, raw: Raw) -> str:
    with connect(redis_url) as db:
        db.run(sync([announced("e1")]))
    found: str = raw("GET", "meetup_event:e1:event_series").decode()
    return found


def test_a_channel_is_attached_to_a_series_that_is_tracked(redis_url: str, raw: Raw, series: str) -> None:
    first, again = (invoked("attach", series, "5", "--url", redis_url) for _ in range(2))
    assert (first.stdout, again.stdout) == ("Attached.\n", "It was attached already.\n")
    assert raw("GET", f"event_series:{series}:discord_channel") == b"5"
    taken = invoked("attach", series, "6", "--url", redis_url)
    assert (taken.exit_code, taken.stderr) == (1, f"error: {series} has 5 already.\n")
    assert isinstance(invoked("attach", "unknown", "7", "--url", redis_url).exception, RefusedChangeError)


@pytest.mark.parametrize(("option", "name"), [([], "removed_users"), (["--host"], "removed_hosts")])
def test_a_user_is_removed_from_a_channel_and_readmitted(
    option: list[str], name: str, redis_url: str, raw: Raw, series: str
) -> None:
    invoked("attach", series, "5", "--url", redis_url)
    assert invoked("remove", "5", "101", *option, "--url", redis_url).stdout == "Removed.\n"
    assert raw("SMEMBERS", f"discord_channel:5:{name}") == {b"101"}
    assert invoked("readmit", "5", "101", "--url", redis_url).stdout == "Readmitted.\n"
    assert invoked("readmit", "5", "101", "--url", redis_url).stdout == "They were not removed.\n"
    assert raw("EXISTS", f"discord_channel:5:{name}") == 0


def test_a_channel_is_ended_once_it_has_expired(redis_url: str, raw: Raw, series: str) -> None:
    invoked("attach", series, "5", "--url", redis_url)
    assert isinstance(invoked("end", "5", "--url", redis_url).exception, RefusedChangeError)
    with connect(redis_url) as db:
        db.run(channel_times.extend(5, NOW))
    assert invoked("end", "5", "--url", redis_url).stdout.startswith("It is deleted at ")
    assert raw("EXISTS", "discord_channel:5:deletion_time") == 1


def test_the_organizers_tokens_are_replaced_by_those_in_the_environment(
    redis_url: str, raw: Raw, monkeypatch: pytest.MonkeyPatch
) -> None:
    raw("SET", "meetup_access_token", "revoked")
    monkeypatch.setenv("MEETUP_ACCESS_TOKEN", "new-access")
    assert isinstance(invoked("tokens", "--url", redis_url).exception, UsageError)
    assert raw("GET", "meetup_access_token") == b"revoked"
    monkeypatch.setenv("MEETUP_REFRESH_TOKEN", "new-refresh")
    assert invoked("tokens", "--url", redis_url).exit_code == 0
    assert raw("GET", "meetup_access_token") == b"new-access"
    assert raw("GET", "meetup_refresh_token") == b"new-refresh"
