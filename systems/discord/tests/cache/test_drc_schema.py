"""The schema of the DRC cache against the key reference, row by row."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any, NamedTuple

import msgspec
import pytest

from keywright import Context, Key, check, expires_in
from keywright.errors import UsageError
from keywright.testing import OpenRun, Raw
from keywright_discord.changes import Change, Kind, Put
from keywright_discord.drc import bind, drc, schema
from keywright_discord.drc.store import DrcCache

TEN_MINUTES = timedelta(minutes=10)


class Row(NamedTuple):
    """A key of the reference: its name, Redis type and expiry."""

    title: str
    name: str
    redis_type: str
    expiry: timedelta | str | None = None


# The reference, in its order. Curly brackets are variables; the webhook's missing colon is added
# (docs/resolutions.md#a6). "max_age": as long as the invite itself. The reference gives an expiry for
# interactions only (docs/resolutions.md#a13).
REFERENCE = (
    Row("Application Commands", "commands:{application.id}", "hash"),
    Row("Interactions", "interactions:{interaction.id}", "string", timedelta(seconds=900)),
    Row("Applications", "applications:{application.id}", "string"),
    Row("Auto Moderation Rules", "automod-rules:{guild.id}", "hash"),
    Row("Guild Channels", "channels:{guild.id}", "hash"),
    Row("Messages", "messages:{message.id}", "string", TEN_MINUTES),
    Row("Threads", "threads:{thread.id}", "string"),
    Row("Thread Members", "thread-members:{thread.id}", "hash"),
    Row("Reactions: emojis", "reactions:{message.id}", "set", TEN_MINUTES),
    Row("Reactions: users", "reactions:{message.id}:{emoji}", "set", TEN_MINUTES),
    Row("Guild Emojis", "emojis:{guild.id}", "hash"),
    Row("Guilds: index", "guilds", "set"),
    Row("Guilds", "guilds:{guild.id}", "string"),
    Row("Guild Widget", "widget:{guild.id}", "string"),
    Row("Guild Members: index", "members:{guild.id}", "set"),
    Row("Guild Members", "members:{guild.id}:{user.id}", "string"),
    Row("Guild Integrations", "integrations:{guild.id}", "hash"),
    Row("Guild Welcome Screen", "welcome-screen:{guild.id}", "string"),
    Row("Guild Scheduled Events", "scheduled-events:{guild.id}", "hash"),
    Row("Guild Roles", "roles:{guild.id}", "hash"),
    Row("Guild Templates", "templates:{guild.id}", "hash"),
    Row("Invites", "invites:{invite.code}", "string", "max_age"),
    Row("Stage Instances", "stage-instances:{channel.id}", "string"),
    Row("Stickers", "stickers:{guild.id}", "hash"),
    Row("Users", "users:{user.id}", "string"),
    Row("Voice States", "voice-states:{guild.id}", "hash"),
    Row("Presences", "presence:{guild.id}:{user.id}", "string"),
    Row("Webhooks", "webhooks:{webhook.id}", "string"),
)
VALUES = {"invite.code": "hydrA", "emoji": "🔥"}


def variables(row: Row) -> list[str]:
    return [part[1:-1] for part in row.name.split(":") if part.startswith("{")]


def example(row: Row) -> tuple[list[str], bytes]:
    """Return values for the variables of a row, and the name that they make."""
    name = row.name
    values = [VALUES.get(variable, str(2**63 + place)) for place, variable in enumerate(variables(row))]
    for variable, value in zip(variables(row), values, strict=True):
        name = name.replace("{" + variable + "}", value)
    return values, f"keywright:v1json:{name}".encode()


ROWS = pytest.mark.parametrize(
    ("row", "kind"), [pytest.param(*pair, id=pair[0].title) for pair in zip(REFERENCE, drc, strict=True)]
)


def test_the_reference_has_28_keys_and_so_has_the_schema() -> None:
    """No key is missing, and none is added under the names of the specification."""
    assert len(REFERENCE) == len(drc.keys) == 28


@ROWS
def test_a_key_has_the_name_of_the_reference(row: Row, kind: type[Key]) -> None:
    """Built from its variables, and read back from its name."""
    values, name = example(row)
    key = kind(*values)
    assert Context().name(key) == name
    assert drc.parse(name) == key


@ROWS
def test_a_key_has_the_redis_type_of_the_reference(row: Row, kind: type[Key]) -> None:
    assert kind.redis_type == row.redis_type


@ROWS
def test_a_key_has_its_expiry(row: Row, kind: type[Key]) -> None:
    """Keys without an expiry in the reference have none, unless they are short-lived by nature."""
    expiry = Context().expiry_of(kind)
    if row.expiry is None:
        assert expiry is None
    elif isinstance(row.expiry, timedelta):
        assert expiry == expires_in(row.expiry)
    else:
        assert expiry is not None
        assert callable(expiry.moment)


@pytest.mark.parametrize("space", [schema.drc, schema.private], ids=lambda space: str(space.name))
def test_the_keyspace_is_proved(space: Any) -> None:
    assert check(space) == []


def test_private_indexes_are_outside_the_names_of_the_specification() -> None:
    """Another implementation that lists `<prefix>:v1json:*` does not meet them (docs/resolutions.md#a44)."""
    context = Context(bind("bot"))
    kinds: list[Any] = schema.private.keys
    numbers = ("hour", "request", "shards", "shard")
    for kind in kinds:
        ids = {variable: 7 if variable in numbers else "7" for variable in kind.__annotations__}
        assert context.name(kind(**ids)).startswith(b"bot:v1json-private:")


def test_a_prefix_may_hold_colons() -> None:
    context = Context(bind("shop:bots:eu"))
    assert context.name(schema.Member("1", "2")) == b"shop:bots:eu:v1json:members:1:2"
    assert context.name(schema.ThreadIndex("1")) == b"shop:bots:eu:v1json-private:threads:1"
    assert drc.parse(b"shop:bots:eu:v1json:members:1:2", context) == schema.Member("1", "2")


def test_an_empty_prefix_is_refused() -> None:
    """The specification: a prefix must exist and shall not be empty."""
    with pytest.raises(UsageError, match="must not be empty"):
        bind("")


@pytest.mark.parametrize(
    "version", ["v1", "v1proto", "v2json", "", "1json", "v1json2", "v1json\n", "xv1json", "v01json", "V1json"]
)
def test_any_other_version_is_refused(version: str) -> None:
    """An unknown encoding must raise, and `v1` has none (docs/resolutions.md#a1, #a2, #a3)."""
    with pytest.raises(UsageError, match="v1json"):
        bind("bot", version)


def test_an_emoji_with_a_colon_is_read_back() -> None:
    """The last variable may hold anything, so no emoji can make an ambiguous name."""
    key = schema.ReactionUsers("5", "a:b:7")
    assert drc.parse(Context().name(key)) == key


HELLO = msgspec.json.encode({"id": "7", "channel_id": "8", "author": {"id": "9", "username": "a"}})


def test_an_expiry_can_be_overridden_or_taken_away(open_run: OpenRun, redis_url: str, raw: Raw) -> None:
    """1.3: the user may override an expiry, `no expiry` included."""
    hour = expires_in(timedelta(hours=1))
    run = open_run(redis_url, *bind("bot", expiry={schema.Message: None, schema.User: hour}))
    run(DrcCache().apply([("MESSAGE_CREATE", HELLO)]))
    assert raw("TTL", "bot:v1json:messages:7") == -1
    assert 3590 < raw("TTL", "bot:v1json:users:9") <= 3600


def invite(**given: object) -> list[Change]:
    body = msgspec.json.encode({"code": "abc", **given})
    return [Put(Kind.INVITE, ("abc",), body, body)]


def test_an_invite_expires_after_its_own_time(open_run: OpenRun, redis_url: str, raw: Raw) -> None:
    """Discord sends no event when an invite ends, so the key expires (docs/resolutions.md#a13)."""
    run = open_run(redis_url, *bind())
    run(DrcCache().store(invite(max_age=3600)))
    assert 3590 < raw("TTL", "keywright:v1json:invites:abc") <= 3600
    run(DrcCache().store(invite(max_age=0)))
    assert raw("TTL", "keywright:v1json:invites:abc") == -1


@pytest.mark.parametrize("age", [None, 0, -5, "1", True, 1.5, 2**70])
def test_an_invite_without_a_plain_age_does_not_expire(age: object) -> None:
    expiry = schema.INVITE_EXPIRY.resolved({"code": "abc", "max_age": age})
    assert expiry is None


def test_an_invite_may_be_written_as_an_object() -> None:
    expiry = schema.INVITE_EXPIRY.resolved({"code": "abc", "max_age": 60})
    assert expiry is not None
    assert isinstance(expiry.moment, datetime)
    assert timedelta(seconds=50) < expiry.moment - datetime.now(UTC) <= timedelta(seconds=60)
