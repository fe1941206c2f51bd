"""Every key of the DRC key reference, in its order. Names are `<prefix>:v1json:<resource>`.

Braces in the reference mark variables; they are not hash tags and are never written (A7), so keys
of one guild do not share a slot. Expiries are defaults that `bind` overrides, `None` for never.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

from keywright import (
    Binding,
    Expiry,
    Key,
    Keyspace,
    Map,
    RestOfName,
    Set,
    SnowflakeStr,
    Value,
    expires_at,
    expires_in,
)
from keywright.errors import UsageError
from keywright_discord.documents import Document, Reference
from keywright_discord.raw_json import PayloadError, fields, scalar

drc = Keyspace(
    "drc",
    "The Discord Redis Cache: what a bot sees of Discord, normalised; nested objects are ids.",
    prefix="keywright",
    version="v1json",
)
private = Keyspace(
    "drc-private",
    "What the cache needs to find keys of a guild again; outside the specification's names (A44).",
    prefix="keywright",
    version="v1json-private",
)


def _end_of_invite(invite: Mapping[str, Any] | bytes) -> datetime | None:
    """When an invite that was told just now ends; Discord does not say so when it does."""
    seconds = _max_age(invite)
    if type(seconds) is not int or not 0 < seconds <= LONGEST_INVITE:
        return None
    return datetime.now(UTC) + timedelta(seconds=seconds)


def _max_age(invite: Mapping[str, Any] | bytes) -> object:
    if not isinstance(invite, bytes):
        return invite.get("max_age")
    raw = fields(invite, "invite").get("max_age")
    try:
        return None if raw is None else scalar(raw, "invite.max_age")
    except PayloadError:
        return None  # whatever it is, it is no time


# A13: the reference leaves all but one open.
INTERACTION_EXPIRY = expires_in(timedelta(minutes=15))
MESSAGE_EXPIRY = expires_in(timedelta(minutes=10))
INVITE_EXPIRY = expires_at(_end_of_invite)
LONGEST_INVITE = 10 * 365 * 24 * 60 * 60


class Commands(Map[SnowflakeStr, Document], key="commands:<application>", space=drc):
    """The created commands of an application, by command id. No gateway event carries them."""

    application: SnowflakeStr


class Interaction(Value[Document], key="interactions:<interaction>", space=drc, expiry=INTERACTION_EXPIRY):
    """An interaction. Its `token` is a credential for the 15 minutes that the key lives."""

    interaction: SnowflakeStr
    hides = ("token",)


class Application(Value[Document], key="applications:<application>", space=drc):
    """An application; its owner, bot and team are user ids."""

    application: SnowflakeStr


class AutomodRules(Map[SnowflakeStr, Document], key="automod-rules:<guild>", space=drc):
    """The auto moderation rules of a guild, by rule id."""

    guild: SnowflakeStr


class Channels(Map[SnowflakeStr, Document], key="channels:<guild>", space=drc):
    """The channels of a guild, by channel id. Threads have keys of their own."""

    guild: SnowflakeStr


class Message(Value[Document], key="messages:<message>", space=drc, expiry=MESSAGE_EXPIRY):
    """A message; author, mentions, referenced message and thread are ids."""

    message: SnowflakeStr


class Thread(Value[Document], key="threads:<thread>", space=drc):
    """A thread."""

    thread: SnowflakeStr


class ThreadMembers(Map[SnowflakeStr, Document], key="thread-members:<thread>", space=drc):
    """The known members of a thread, by user id."""

    thread: SnowflakeStr


class Reactions(Set[str], key="reactions:<message>", space=drc, expiry=MESSAGE_EXPIRY):
    """The emojis that a message was reacted to with: a custom emoji's id, else its characters."""

    message: SnowflakeStr


class ReactionUsers(Set[SnowflakeStr], key="reactions:<message>:<emoji>", space=drc, expiry=MESSAGE_EXPIRY):
    """The users seen to react with one emoji."""

    message: SnowflakeStr
    emoji: RestOfName


class Emojis(Map[SnowflakeStr, Document], key="emojis:<guild>", space=drc):
    """The custom emojis of a guild, by emoji id."""

    guild: SnowflakeStr


class Guilds(Set[SnowflakeStr], key="guilds", space=drc):
    """The guilds that the bot is a member of."""


class Guild(Value[Document], key="guilds:<guild>", space=drc):
    """A guild without what has keys of its own."""

    guild: SnowflakeStr


class Widget(Value[Document], key="widget:<guild>", space=drc):
    """A guild's widget, whose members Discord makes anonymous. No gateway event carries it."""

    guild: SnowflakeStr


class Members(Set[SnowflakeStr], key="members:<guild>", space=drc):
    """The known members of a guild."""

    guild: SnowflakeStr


class Member(Value[Document], key="members:<guild>:<user>", space=drc):
    """A member of a guild, without its user."""

    guild: SnowflakeStr
    user: SnowflakeStr


class Integrations(Map[SnowflakeStr, Document], key="integrations:<guild>", space=drc):
    """The integrations of a guild, by integration id."""

    guild: SnowflakeStr


class WelcomeScreen(Value[Document], key="welcome-screen:<guild>", space=drc):
    """A guild's welcome screen."""

    guild: SnowflakeStr


class ScheduledEvents(Map[SnowflakeStr, Document], key="scheduled-events:<guild>", space=drc):
    """The scheduled events of a guild, by event id."""

    guild: SnowflakeStr


class Roles(Map[SnowflakeStr, Document], key="roles:<guild>", space=drc):
    """The roles of a guild, by role id."""

    guild: SnowflakeStr


class Templates(Map[str, Document], key="templates:<guild>", space=drc):
    """The templates of a guild, by code. No gateway event carries them."""

    guild: SnowflakeStr


class Invite(Value[Document], key="invites:<code>", space=drc, expiry=INVITE_EXPIRY):
    """An invite; inviter and target are user ids. It expires after its `max_age`, where it has one."""

    code: RestOfName


class StageInstance(Value[Document], key="stage-instances:<channel>", space=drc):
    """The stage instance of a stage channel."""

    channel: SnowflakeStr


class Stickers(Map[SnowflakeStr, Document], key="stickers:<guild>", space=drc):
    """The custom stickers of a guild, by sticker id."""

    guild: SnowflakeStr


class User(Value[Document], key="users:<user>", space=drc):
    """A user."""

    user: SnowflakeStr


class VoiceStates(Map[SnowflakeStr, Document], key="voice-states:<guild>", space=drc):
    """The voice states of a guild, by user id."""

    guild: SnowflakeStr


class Presence(Value[Document], key="presence:<guild>:<user>", space=drc):
    """The presence of a user in a guild; none means offline."""

    guild: SnowflakeStr
    user: SnowflakeStr


class Webhook(Value[Document], key="webhooks:<webhook>", space=drc):
    """A webhook, whose `token` is a secret of the bot's. No gateway event carries it."""

    webhook: SnowflakeStr
    hides = ("token",)


class ThreadIndex(Map[SnowflakeStr, Reference], key="threads:<guild>", space=private):
    """The threads of a guild, each with its parent channel, so that they can be removed with either."""

    guild: SnowflakeStr


class PresenceIndex(Set[SnowflakeStr], key="presences:<guild>", space=private):
    """Whose presence is known in a guild: they may be known of nobody that is a known member."""

    guild: SnowflakeStr


class StageIndex(Set[SnowflakeStr], key="stage-instances:<guild>", space=private):
    """The channels of a guild that have a stage instance."""

    guild: SnowflakeStr


_VERSION = re.compile(r"v(?P<major>[0-9]+)(?P<encoding>[A-Za-z_+-]*)")


def bind(
    prefix: str = "keywright",
    version: str = "v1json",
    expiry: Mapping[type[Key], Expiry | None] | None = None,
) -> tuple[Binding, Binding]:
    """The cache as one database has it; pass both bindings to `connect`.

    A prefix must be there and may hold colons. A version or encoding other than v1 and json is refused:
    the specification forbids going on with one that is not known.
    """
    if not prefix:
        raise UsageError("a DRC prefix must not be empty. Name the bot, or leave the default.")
    found = _VERSION.fullmatch(version)
    if found is None or found["major"] != "1" or found["encoding"] != "json":
        raise UsageError(f"{version!r} is not a version of DRC that is known here. Use 'v1json'.")
    return drc.bind(prefix=prefix, version=version, expiry=expiry), private.bind(prefix=prefix)
