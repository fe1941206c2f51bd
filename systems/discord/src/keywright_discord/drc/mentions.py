"""What the documents of the cache mention that the cache may have too, for tools that follow it.

A cache may lack anything it was never told, so nearly all of these may lead nowhere. What is written
together is required: a listed member has its key and its user, and a member is listed.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from keywright import refers
from keywright_discord.drc import schema
from keywright_discord.references import reference

__all__ = ["mentioned"]

Json = dict[str, Any]


def mentioned(found: Json, *names: str) -> Iterator[str]:
    """The ids in some members of a document: each may be an id, a list of ids, or missing."""
    for name in names:
        value = found.get(name)
        for each in value if isinstance(value, list) else (value,):
            identity = reference(each)
            if identity is not None:
                yield identity


def _in_guild(found: Json, *names: str) -> Iterator[tuple[str, str]]:
    guild = reference(found.get("guild_id"))
    if guild is not None:
        yield from ((guild, each) for each in mentioned(found, *names))


def _of_all(found: dict[str, Json], *names: str) -> Iterator[str]:
    return (each for document in found.values() for each in mentioned(document, *names))


def _listed(key: schema.Members, users: Iterable[str]) -> Iterator[tuple[str, str]]:
    return ((key.guild, user) for user in users)


refers(schema.Members, schema.Member, _listed, name="members")
refers(schema.Member, schema.Members, lambda key, _: [(key.guild, key.user)], name="listed among the members")
refers(schema.Member, schema.User, lambda key, _: [key.user], name="user")
refers(
    schema.Member,
    schema.Roles,
    lambda key, found: ((key.guild, role) for role in mentioned(found, "roles")),
    name="roles",
    required=False,
)
refers(schema.Guilds, schema.Guild, lambda _, guilds: guilds, name="guilds", required=False)
refers(schema.Guild, schema.User, lambda _, found: mentioned(found, "owner_id"), name="owner", required=False)
refers(
    schema.Guild,
    schema.Channels,
    lambda key, found: (
        (key.guild, channel)
        for channel in mentioned(found, "afk_channel_id", "system_channel_id", "rules_channel_id")
    ),
    name="channels",
    required=False,
)
refers(
    schema.Channels,
    schema.Message,
    lambda _, found: _of_all(found, "last_message_id"),
    name="last messages",
    required=False,
)
refers(
    schema.Message,
    schema.User,
    lambda _, found: mentioned(found, "author", "mentions"),
    name="author and mentions",
    required=False,
)
refers(
    schema.Message,
    schema.Channels,
    lambda _, found: _in_guild(found, "channel_id"),
    name="channel",
    required=False,
)
refers(
    schema.Message, schema.Member, lambda _, found: _in_guild(found, "author"), name="member", required=False
)
refers(
    schema.Message, schema.Guild, lambda _, found: mentioned(found, "guild_id"), name="guild", required=False
)
refers(
    schema.Message, schema.Thread, lambda _, found: mentioned(found, "thread"), name="thread", required=False
)
refers(
    schema.Message,
    schema.Message,
    lambda _, found: mentioned(found, "referenced_message"),
    name="answered message",
    required=False,
)
refers(schema.Reactions, schema.Message, lambda key, _: [key.message], name="message", required=False)
refers(schema.ReactionUsers, schema.User, lambda _, users: users, name="users", required=False)
refers(schema.Presence, schema.User, lambda key, _: [key.user], name="user", required=False)
refers(
    schema.Thread,
    schema.Channels,
    lambda _, found: _in_guild(found, "parent_id"),
    name="parent",
    required=False,
)
refers(schema.ThreadMembers, schema.Thread, lambda key, _: [key.thread], name="thread", required=False)
refers(schema.ThreadMembers, schema.User, lambda _, found: found.keys(), name="users", required=False)
refers(schema.VoiceStates, schema.User, lambda _, found: found.keys(), name="users", required=False)
refers(schema.Emojis, schema.User, lambda _, found: _of_all(found, "user"), name="users", required=False)
refers(schema.Stickers, schema.User, lambda _, found: _of_all(found, "user"), name="users", required=False)
refers(
    schema.ScheduledEvents,
    schema.User,
    lambda _, found: _of_all(found, "creator"),
    name="creators",
    required=False,
)
refers(
    schema.Invite,
    schema.User,
    lambda _, found: mentioned(found, "inviter", "target_user"),
    name="inviter and target",
    required=False,
)
