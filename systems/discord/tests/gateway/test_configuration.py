"""Configuration: a file, environment variables that win over it, and errors that name the setting."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

import pytest

from keywright.errors import KeywrightError, UsageError
from keywright_discord.changes import Kind
from keywright_discord.gateway.configuration import VARIABLES, BrokerPart, ConfigurationError, load
from keywright_discord.gateway.intents import UNPRIVILEGED, Intents, intents_of
from keywright_discord.gateway.wire import Compression, Encoding
from keywright_messaging import Encoding as BrokerEncoding

TOKEN = {"DISCORD_TOKEN": "Bot abc.def "}

FILE = """
token = "from-file"
events = ["MESSAGE_CREATE"]
intents = ["GUILDS"]
[shards]
count = 4
ids = [0, 1]
[broker]
type = "amqp"
group = "discord"
message_timeout = "30s"
[amqp]
url = "amqp://localhost"
[presence]
status = "idle"
[prometheus]
address = ":9000"
[cache]
layout = "spectacles"
without = ["presence"]
[connection]
encoding = "etf"
compression = "zlib-stream"
"""


def written(folder: Path, text: str) -> Path:
    path = folder / "gateway.toml"
    path.write_text(text)
    return path


def test_only_the_token_must_be_given() -> None:
    found = load(environment=TOKEN)
    assert found.token.reveal() == "abc.def"
    assert (found.events, found.intent_bits) == ([], UNPRIVILEGED)
    assert (found.broker.group, found.message_timeout) == ("gateway", timedelta(minutes=2))
    assert (found.connection.encoding, found.connection.compression) == (Encoding.JSON, Compression.ZSTD)
    assert found.api.url == "https://discord.com/api/v10"
    assert found.broker_url is None


def test_a_file_may_have_every_setting(tmp_path: Path) -> None:
    found = load(written(tmp_path, FILE), {})
    assert found.token.reveal() == "from-file"
    assert (found.shards.count, found.shards.ids) == (4, [0, 1])
    assert found.broker_url == "amqp://localhost"
    assert found.message_timeout == timedelta(seconds=30)
    assert found.presence == {"status": "idle"}
    assert found.cache.without == [Kind.PRESENCE]
    assert (found.connection.encoding, found.connection.compression) == (Encoding.ETF, Compression.ZLIB)


def test_the_environment_wins_over_the_file(tmp_path: Path) -> None:
    environment = {
        "DISCORD_TOKEN": "from-environment",
        "DISCORD_EVENTS": " GUILD_CREATE, MESSAGE_DELETE ,",
        "DISCORD_SHARD_COUNT": "8",
        "DISCORD_SHARD_IDS": "6, 7",
        "DISCORD_PRESENCE": '{"status": "dnd"}',
        "BROKER_URL": "redis://broker",
        "BROKER_ENCODING": "spectacles",
        "CACHE_WITHOUT": "",
    }
    found = load(written(tmp_path, FILE), environment)
    assert found.token.reveal() == "from-environment"
    assert found.events == ["GUILD_CREATE", "MESSAGE_DELETE"]
    assert (found.shards.count, found.shards.ids) == (8, [6, 7])
    assert found.presence == {"status": "dnd"}
    assert found.broker_url == "redis://broker"
    assert found.broker.encoding is BrokerEncoding.SPECTACLES
    assert found.cache.without == [Kind.PRESENCE]


@pytest.mark.parametrize(
    ("variable", "text", "message"),
    [
        (
            "CACHE_WITHOUT",
            "member,presences",
            "cache.without: 'presences' is not one of application,",
        ),
        ("REST_FETCH", "command", "rest.fetch: 'command' is not one of application, commands, widgets"),
        ("DISCORD_ENCODING", "xml", "connection.encoding: 'xml' is not one of json, etf"),
        ("BROKER_ENCODING", "xml", "broker.encoding: 'xml' is not one of json, etf"),
    ],
)
def test_a_name_that_is_not_a_choice_is_answered_with_the_choices(
    variable: str, text: str, message: str
) -> None:
    with pytest.raises(ConfigurationError) as caught:
        load(environment=TOKEN | {variable: text})
    assert str(caught.value).startswith(message)


def test_a_kind_that_is_misspelt_is_answered_with_the_nearest(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match=r"The nearest is presence\.$"):
        load(written(tmp_path, '[cache]\nwithout = ["presences"]'), TOKEN)


@pytest.mark.parametrize(
    ("variable", "near"),
    [
        ("DISCORD_EVNTS", "DISCORD_EVENTS"),
        ("BROKER_GROPU", "BROKER_GROUP"),
        ("CACHE_MESSAGE_TTL", "CACHE_"),
        ("BROKER_QUORUM", "BROKER_"),
    ],
)
def test_a_variable_that_does_not_exist_is_refused(variable: str, near: str) -> None:
    message = rf"{variable}: is not a variable of this service\. The nearest is {near}"
    with pytest.raises(ConfigurationError, match=message):
        load(environment=TOKEN | {variable: "1h"})


def test_variables_of_a_bot_beside_the_gateway_are_ignored() -> None:
    load(environment=TOKEN | {"DISCORD_CLIENT_ID": "1", "DISCORD_PUBLIC_KEY": "00"})


def test_raw_intents_win_over_names() -> None:
    assert load(environment=TOKEN | {"DISCORD_RAW_INTENTS": "513"}).intent_bits == 513


@pytest.mark.parametrize(
    ("text", "named", "near"),
    [
        ("tokn = 'x'", "tokn", "token"),
        ("[shards]\ncuont = 3", "shards.cuont", "shards.count"),
        ("[broker]\nuri = 'x'", "broker.uri", "broker.url"),
    ],
)
def test_an_unknown_setting_is_named_with_the_nearest_one(
    tmp_path: Path, text: str, named: str, near: str
) -> None:
    with pytest.raises(ConfigurationError, match=rf"{named}: is not a setting\. The nearest is {near};"):
        load(written(tmp_path, text), TOKEN)


@pytest.mark.parametrize(("name", "near"), [("GUILD", "GUILDS"), ("MESSAGE_CONTENTS", "MESSAGE_CONTENT")])
def test_an_unknown_intent_is_named_with_the_nearest_one(name: str, near: str) -> None:
    with pytest.raises(UsageError, match=rf"'{name}' is not an intent\. The nearest is {near}\."):
        load(environment=TOKEN | {"DISCORD_INTENTS": f"GUILD_MEMBERS,{name}"})


@pytest.mark.parametrize(
    ("variables", "named"),
    [
        ({"DISCORD_SHARD_COUNT": "0"}, "shards.count"),
        ({"DISCORD_SHARD_COUNT": "many"}, "DISCORD_SHARD_COUNT"),
        ({"DISCORD_SHARD_COUNT": "2", "DISCORD_SHARD_IDS": "2"}, "shards.ids"),
        ({"DISCORD_SHARD_IDS": "1,1"}, "shards.ids"),
        ({"DISCORD_SHARD_IDS": "-1"}, "shards.ids"),
        ({"DISCORD_PRESENCE": "online"}, "DISCORD_PRESENCE"),
        ({"DISCORD_ENCODING": "xml"}, "encoding"),
        ({"DISCORD_COMPRESSION": "gzip"}, "compression"),
        ({"BROKER_TYPE": "stdio"}, "broker.type"),
        ({"BROKER_TYPE": "amqp"}, "AMQP_URL"),
        ({"BROKER_ENCODING": "bson"}, "encoding"),
        ({"BROKER_MESSAGE_TIMEOUT": "soon"}, "'soon' is not a duration"),
        ({"CACHE_LAYOUT": "flat"}, "cache.layout"),
        ({"CACHE_WITHOUT": "presences"}, "without"),
        ({"SHARD_STORE_TYPE": "file"}, "shard_store.type"),
        ({"REDIS_URL": "redis://a,redis://b"}, "redis.url"),
    ],
)
def test_a_wrong_value_is_an_error_that_names_it(variables: dict[str, str], named: str) -> None:
    with pytest.raises(UsageError) as caught:
        load(environment=TOKEN | variables)
    assert named in str(caught.value)


@pytest.mark.parametrize("text", ["token = ", "shards = 3", "events = 'MESSAGE_CREATE'"])
def test_a_malformed_file_is_an_error(tmp_path: Path, text: str) -> None:
    with pytest.raises(ConfigurationError):
        load(written(tmp_path, text), TOKEN)


def test_a_missing_file_and_a_missing_token_are_errors(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match="cannot be read"):
        load(tmp_path / "none.toml", TOKEN)
    with pytest.raises(ConfigurationError, match="DISCORD_TOKEN"):
        load(environment={"DISCORD_TOKEN": " "})


def test_the_token_is_never_shown(tmp_path: Path) -> None:
    assert "abc.def" not in repr(load(environment=TOKEN))
    for text in ("token = 'hush'\nshards = 1", "token = 'hush'\n[connection]\nencoding = 'x'"):
        with pytest.raises(KeywrightError) as caught:
            load(written(tmp_path, text), {})
        assert "hush" not in str(caught.value)


def test_every_variable_is_documented() -> None:
    text = (Path(__file__).parents[2] / "docs" / "gateway.md").read_text()
    missing = [name for name, (place, _) in VARIABLES.items() if name not in text or place not in text]
    assert missing == []


def test_every_intent_is_documented() -> None:
    text = (Path(__file__).parents[2] / "docs" / "gateway.md").read_text()
    assert [name for name in Intents.__members__ if name not in text] == []


def test_intents_have_the_bits_that_discord_gave_them() -> None:
    assert intents_of(["GUILDS", "GUILD_MESSAGES"]) == 513
    assert intents_of(["guild_bans", "GUILD_EMOJIS"]) == (1 << 2) | (1 << 3)
    assert intents_of(["DIRECT_MESSAGE_POLLS"]) == 1 << 25
    assert UNPRIVILEGED & ((1 << 1) | (1 << 8) | (1 << 15)) == 0


@pytest.mark.parametrize("password", ["hunter2", "a@b", "sl/ash"])
def test_a_password_in_the_address_of_a_broker_is_not_shown(password: str) -> None:
    shown = repr(BrokerPart(url=f"redis://bot:{password}@127.0.0.1:6379/0"))
    assert password not in shown
    assert "127.0.0.1:6379/0" in shown


@pytest.mark.parametrize("token", ["abc.de\nf", "abc.d\tef", "abc.d\x7fef", "abc.déf", "abc. def"])
def test_a_token_that_cannot_be_sent_is_refused_and_not_quoted(token: str) -> None:
    with pytest.raises(ConfigurationError, match=r"^token: has characters that no token has\. ") as caught:
        load(environment={"DISCORD_TOKEN": token})
    assert "abc" not in str(caught.value)


@pytest.mark.parametrize(
    ("variable", "text", "subject"),
    [
        ("DISCORD_GATEWAY_URL", "gateway.discord.gg", "gateway_url"),
        ("PROMETHEUS_ENDPOINT", "metrics", "prometheus.endpoint"),
        ("PROMETHEUS_ADDRESS", "localhost", "prometheus.address"),
    ],
)
def test_an_unusable_address_is_found_before_anything_is_connected(
    variable: str, text: str, subject: str
) -> None:
    with pytest.raises(ConfigurationError, match=rf"^{subject}: cannot be '{text}'"):
        load(environment=TOKEN | {variable: text})
