"""The layout beside the caching table of the Spectacles document, row for row."""

from __future__ import annotations

import pytest

from keywright import check
from keywright_discord.spectacles import spectacles
from keywright_discord.spectacles.schema import private

from .payloads import (
    ANN,
    EMOJI,
    GENERAL,
    GUILD,
    MESSAGE,
    ROLE,
    THREAD,
    VOICE,
    World,
    full_guild,
    message,
)

# The document's columns: entity, "Field Naming pattern", "Key Naming pattern", type.
TABLE = [
    ("User", "USERS", "USER_ID", "Hashmap"),
    ("Guilds", "GUILDS", "GUILD_ID", "Hashmap"),
    ("Members", "MEMBERS:GUILD_ID", "MEMBER_ID", "Hashmap per Guild"),
    ("Voice States", "VOICE_STATES:GUILD_ID", "USER_ID", "Hashmap per Guild"),
    ("Presences", "PRESENCES:USER_ID", "USER_ID", "Hashmap"),
    ("Channels", "CHANNELS", "CHANNEL_ID", "Hashmap, Set per Guild storing IDs"),
    ("Roles", "ROLES", "ROLE_ID", "Hashmap per Guild"),
    ("Emojis", "EMOJIS", "EMOJI_ID", "Hashmap"),
    ("Messages", "MESSAGES:CHANNEL_ID:MESSAGE_ID", "MESSAGE_ID", "Key"),
]
IDS = {
    "USER_ID": ANN,
    "MEMBER_ID": ANN,
    "GUILD_ID": GUILD,
    "CHANNEL_ID": GENERAL,
    "ROLE_ID": ROLE,
    "EMOJI_ID": EMOJI,
    "MESSAGE_ID": MESSAGE,
}


@pytest.fixture
def filled(world: World) -> World:
    world.apply(("GUILD_CREATE", full_guild()), ("MESSAGE_CREATE", message()))
    return world


@pytest.mark.parametrize(("entity", "key", "field", "kind"), TABLE, ids=[row[0] for row in TABLE])
def test_a_row_names_key_type_and_field(filled: World, entity: str, key: str, field: str, kind: str) -> None:
    name = ":".join(IDS.get(part, part) for part in key.split(":"))
    if kind.endswith("per Guild") and "GUILD_ID" not in key:
        name = f"{name}:{GUILD}"  # roles: the table's type wins over its key
    if kind == "Key":
        assert filled.raw("TYPE", name) == b"string"
        assert filled.content(name)["id"] == IDS[field]
        return
    assert filled.raw("TYPE", name) == b"hash"
    assert IDS[field] in filled.content(name)


def test_the_channels_of_a_guild_are_a_set_of_ids(filled: World) -> None:
    assert filled.raw("TYPE", f"CHANNELS:{GUILD}") == b"set"
    assert filled.content(f"CHANNELS:{GUILD}") == {GENERAL, VOICE, THREAD}


def test_a_presence_is_the_only_field_of_its_hash(filled: World) -> None:
    assert set(filled.content(f"PRESENCES:{ANN}")) == {ANN}


def test_a_guild_holds_none_of_what_the_document_takes_out(filled: World) -> None:
    taken_out = {"voice_states", "roles", "emojis", "channels", "members", "presences"}
    assert not taken_out & filled.content("GUILDS")[GUILD].keys()


def test_a_message_lives_ten_minutes(filled: World) -> None:
    assert 599_000 < filled.raw("PTTL", f"MESSAGES:{GENERAL}:{MESSAGE}") <= 600_000


def test_only_messages_expire(filled: World) -> None:
    expiring = {name for name in filled.public() if filled.raw("PTTL", name) != -1}
    assert expiring == {f"MESSAGES:{GENERAL}:{MESSAGE}"}


def test_every_key_in_the_database_is_declared(filled: World) -> None:
    context = filled.context
    for name in filled.raw.names():
        key = spectacles.find(name, context) or private.find(name, context)
        assert key is not None
        assert filled.raw("TYPE", name).decode() == key.redis_type


@pytest.mark.parametrize("space", [spectacles, private], ids=lambda space: space.name)
def test_the_declaration_is_proved(space: object) -> None:
    assert space in (spectacles, private)
    assert check(spectacles if space is spectacles else private) == []
