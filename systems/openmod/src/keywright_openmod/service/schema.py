"""What the service keeps beside the model: how far it has read, what it has yet to handle, what to check.

Names share the model's prefix, and none of its templates. `openmod_local` is what a run without Reddit
keeps in Reddit's stead.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Annotated

import msgspec

from keywright import (
    Binding,
    Choice,
    Counter,
    DueQueue,
    EpochMs,
    Hex,
    Keyspace,
    Plain,
    Record,
    Value,
    expires_in,
)
from keywright_openmod import schema as model
from keywright_openmod.schema import PostId, ThingId

__all__ = [
    "FeedPosition",
    "LocalMarker",
    "LocalPost",
    "LocalPosts",
    "PendingEvents",
    "Position",
    "Published",
    "ThingChecks",
    "bind",
    "openmod_local",
    "openmod_service",
]

openmod_service = Keyspace("openmod-service", "How far Open Mod's service is, and what it has yet to do.")
openmod_local = Keyspace("openmod-local", "Public posts of Open Mod where there is no Reddit.")

FEEDS = ("log", "posts", "comments", "edits")


def bind(prefix: str | None = None) -> list[Binding]:
    """The model and the service under one prefix."""
    return [*model.bind(prefix), openmod_service.bind(prefix=prefix), openmod_local.bind(prefix=prefix)]


class Position(msgspec.Struct, frozen=True):
    """The newest entry of a feed that is safe."""

    at: Annotated[datetime, EpochMs]
    id: str


class FeedPosition(Record[Position], key="feed:<subreddit>:<feed>", space=openmod_service):
    """Where a restart goes on: written after everything up to it is among the pending events."""

    subreddit: Annotated[str, Plain(":")]
    feed: Annotated[str, Choice(*FEEDS)]


class PendingEvents(DueQueue[str], key="pending-events", space=openmod_service):
    """Events that were read and are not handled yet, as JSON, by when to handle them."""


class ThingChecks(DueQueue[ThingId], key="thing-checks", space=openmod_service):
    """Submissions of which anything is kept, by when to look next whether their author deleted them."""


class Published(msgspec.Struct, frozen=True):
    subreddit: str
    title: str
    body: str


class LocalPosts(Counter, key="local-posts", space=openmod_local):
    """How many posts were made here; the next one's id."""


class LocalPost(Record[Published], key="local-post:<post>", space=openmod_local):
    """A public post, as it reads now."""

    post: PostId


class LocalMarker(
    Value[PostId], key="local-marker:<marker>", space=openmod_local, expiry=expires_in(timedelta(days=14))
):
    """The post that carries a marker, by which an interrupted submission is found again."""

    marker: Annotated[str, Hex(64)]
