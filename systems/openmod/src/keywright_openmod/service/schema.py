"""The keys of the service: positions of feeds, pending events, checks; and posts of a run without Reddit.

They share the prefix of the model, and none of its templates.
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
    "LocalPostCount",
    "PendingEvents",
    "Position",
    "PublishedPost",
    "ThingChecks",
    "bind",
    "openmod_local",
    "openmod_service",
]

openmod_service = Keyspace("openmod-service", "Positions, pending events and checks of the Open Mod service.")
openmod_local = Keyspace("openmod-local", "Public posts of Open Mod in a run without Reddit.")

FEEDS = ("log", "posts", "comments", "edits")


def bind(prefix: str | None = None) -> list[Binding]:
    """Bind the model and the service to one prefix."""
    return [*model.bind(prefix), openmod_service.bind(prefix=prefix), openmod_local.bind(prefix=prefix)]


class Position(msgspec.Struct, frozen=True):
    """The newest entry of a feed that is among the pending events."""

    at: Annotated[datetime, EpochMs]
    """The time of the entry."""
    id: str
    """The id of the entry; empty before the first one."""


class FeedPosition(Record[Position], key="feed:<subreddit>:<feed>", space=openmod_service):
    """The position at which a restart continues, written after all entries up to it are pending."""

    subreddit: Annotated[str, Plain(":")]
    feed: Annotated[str, Choice(*FEEDS)]


class PendingEvents(DueQueue[str], key="pending-events", space=openmod_service):
    """Events that are not handled yet, as JSON, by the time to handle them."""


class ThingChecks(DueQueue[ThingId], key="thing-checks", space=openmod_service):
    """Stored submissions, by the time of the next check whether their author deleted them."""


class PublishedPost(msgspec.Struct, frozen=True):
    """The text of a public post."""

    subreddit: str
    """The subreddit that it was published to."""
    title: str
    """The title."""
    body: str
    """The present body, in Markdown."""


class LocalPostCount(Counter, key="local-posts", space=openmod_local):
    """The number of local posts, which gives the next id."""


class LocalPost(Record[PublishedPost], key="local-post:<post>", space=openmod_local):
    """A public post."""

    post: PostId


class LocalMarker(
    Value[PostId], key="local-marker:<marker>", space=openmod_local, expiry=expires_in(timedelta(days=14))
):
    """The post that contains a marker, to find it after an interrupted submission."""

    marker: Annotated[str, Hex(64)]
