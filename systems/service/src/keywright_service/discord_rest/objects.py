"""Discord's objects, as far as the services need them. Ids are text, as Discord writes them."""

from __future__ import annotations

from typing import Annotated

import msgspec

__all__ = [
    "TEXT_CHANNEL",
    "Application",
    "Channel",
    "GatewayInfo",
    "Member",
    "Overwrite",
    "Role",
    "SessionStartLimit",
    "Snowflake",
    "User",
]

TEXT_CHANNEL = 0

Snowflake = Annotated[str, msgspec.Meta(pattern="^[0-9]{1,20}$")]
Bits = Annotated[str, msgspec.Meta(pattern="^[0-9]{1,40}$")]


class SessionStartLimit(msgspec.Struct, frozen=True):
    """How many sessions a bot may start, and how many shards may identify at once."""

    total: int = 1000
    remaining: int = 1000
    reset_after: int = 0
    """Milliseconds until `remaining` is `total` again."""
    max_concurrency: int = 1


class GatewayInfo(msgspec.Struct, frozen=True):
    """The answer of GET /gateway/bot."""

    url: str
    shards: int = 1
    session_start_limit: SessionStartLimit = SessionStartLimit()


class Application(msgspec.Struct, frozen=True):
    """The application that the bot belongs to."""

    id: Snowflake
    verify_key: str = ""
    """The public key, in hexadecimal digits, with which Discord's requests to the bot are verified."""
    interactions_endpoint_url: str | None = None
    """Where Discord sends interactions. None: to the gateway."""


class User(msgspec.Struct, frozen=True):
    id: Snowflake
    username: str = ""
    global_name: str | None = None


class Overwrite(msgspec.Struct, frozen=True):
    """What a role (type 0) or member (type 1) may do in a channel; permission bits as text."""

    id: Snowflake
    type: int
    allow: Bits = "0"
    deny: Bits = "0"


class Channel(msgspec.Struct, frozen=True):
    id: Snowflake
    name: str | None = None
    type: int = TEXT_CHANNEL
    topic: str | None = None
    parent_id: Snowflake | None = None
    permission_overwrites: tuple[Overwrite, ...] = ()


class Role(msgspec.Struct, frozen=True):
    id: Snowflake
    name: str


class Member(msgspec.Struct, frozen=True):
    roles: tuple[Snowflake, ...]
    nick: str | None = None
    user: User | None = None
    joined_at: str | None = None
    """When they joined the guild, for the last time."""
