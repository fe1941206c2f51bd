"""What the documents of the cache mention that the cache may have too, for tools that follow it.

Objects are stored as they came, so most hold what they mention. What is written together is required:
an id in a guild's set of channels or emojis is in the hash of all of them.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from keywright import refers
from keywright_discord.references import reference
from keywright_discord.spectacles import schema

Json = dict[str, Any]


def _within(found: Json, *names: str) -> Iterator[str]:
    """The ids in some members of a document, where an object stands for its id."""
    for name in names:
        value = found.get(name)
        identity = reference(value.get("id") if isinstance(value, dict) else value)
        if identity is not None:
            yield identity


def _roles(key: schema.Members, members: dict[str, Json]) -> Iterator[tuple[str, str]]:
    for member in members.values():
        roles = member.get("roles")
        for role in roles if isinstance(roles, list) else ():
            if reference(role) is not None:
                yield key.guild, role


refers(
    schema.Guilds,
    schema.ChannelIds,
    lambda _, found: ((guild, None) for guild in found),
    name="channels of each",
    required=False,
)
refers(schema.ChannelIds, schema.Channels, lambda _, ids: (((), each) for each in ids), name="channels")
refers(schema.EmojiIds, schema.Emojis, lambda _, ids: (((), each) for each in ids), name="emojis")
refers(
    schema.Members,
    schema.Users,
    lambda _, found: (((), user) for user in found),
    name="users",
    required=False,
)
refers(schema.Members, schema.Roles, _roles, name="roles", required=False)
refers(
    schema.VoiceStates,
    schema.Users,
    lambda _, found: (((), user) for user in found),
    name="users",
    required=False,
)
refers(schema.Presence, schema.Users, lambda key, _: [((), key.user)], name="user", required=False)
refers(
    schema.Message,
    schema.Users,
    lambda _, found: (((), user) for user in _within(found, "author")),
    name="author",
    required=False,
)
refers(schema.Message, schema.Channels, lambda key, _: [((), key.channel)], name="channel", required=False)
refers(
    schema.Channels,
    schema.Message,
    lambda _, found: (
        (channel, message) for channel, each in found.items() for message in _within(each, "last_message_id")
    ),
    name="last messages",
    required=False,
)
refers(
    schema.MessageIndex,
    schema.Message,
    lambda key, messages: ((key.channel, message) for message, _ in messages),
    name="messages",
    required=False,
)
