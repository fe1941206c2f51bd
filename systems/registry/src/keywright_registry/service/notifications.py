"""The registry's notifications: the envelope of events, and which of them count.

A pull is the GET of a manifest, a push is the PUT of one. Blobs do not count: their number shows how
an image is built and what the client had already, not how often it is wanted. HEAD does not either:
clients ask that way whether they are up to date.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from enum import StrEnum
from typing import Annotated, NamedTuple

import msgspec

from keywright import Call, gather_list
from keywright.errors import KeywrightError
from keywright.operations import absent, commit
from keywright_registry.counters import count
from keywright_registry.paths import check_path
from keywright_registry.schema import CountedEvent, CountedPath

__all__ = ["MEDIA_TYPES", "Event", "MalformedError", "Outcome", "Verdict", "count_all", "parse"]

MEDIA_TYPES = frozenset(
    {
        "application/vnd.docker.distribution.events.v1+json",
        "application/vnd.docker.distribution.events.v2+json",
    }
)

MANIFEST_TYPES = frozenset(
    {
        "application/vnd.docker.distribution.manifest.v1+json",
        "application/vnd.docker.distribution.manifest.v1+prettyjws",
        "application/vnd.docker.distribution.manifest.v2+json",
        "application/vnd.docker.distribution.manifest.list.v2+json",
        "application/vnd.oci.image.manifest.v1+json",
        "application/vnd.oci.image.index.v1+json",
        "application/vnd.oci.artifact.manifest.v1+json",
    }
)

LONGEST_ID = 200


class MalformedError(ValueError):
    """A body that is not an envelope of events; nothing of it was counted."""


class Target(msgspec.Struct, frozen=True, rename="camel"):
    """What the event is about."""

    repository: str
    media_type: str = ""


class Origin(msgspec.Struct, frozen=True):
    """The request that caused the event."""

    method: str = ""


class Event(msgspec.Struct, frozen=True):
    """One event; what else it holds is not looked at."""

    id: Annotated[str, msgspec.Meta(min_length=1, max_length=LONGEST_ID)]
    timestamp: datetime
    action: str
    target: Target
    request: Origin = Origin()

    @property
    def counts(self) -> bool:
        if self.target.media_type not in MANIFEST_TYPES:
            return False
        return self.action == "push" or (self.action == "pull" and self.request.method != "HEAD")


class Envelope(msgspec.Struct, frozen=True):
    events: list[Event]


class Outcome(StrEnum):
    """What happened to an event."""

    COUNTED = "counted"
    REPEATED = "repeated"
    IGNORED = "ignored"


class Verdict(NamedTuple):
    """One event's action and its outcome."""

    action: str
    outcome: Outcome


_decode = msgspec.json.Decoder(Envelope).decode


def parse(body: bytes) -> list[Event]:
    """Return the events of an envelope. Raise MalformedError if it is malformed."""
    try:
        events = _decode(body).events
        for event in events:
            if event.counts:
                check_path(event.target.repository)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise MalformedError(f"this is not an envelope of events: {error}") from error
    except KeywrightError as error:
        raise MalformedError(str(error)) from error
    return events


def count_all(events: Sequence[Event]) -> Call[list[Verdict]]:
    """Count each event once, however often it comes within the window, and return the outcome of each.

    An event is counted and remembered in one step. The events together are not: when this fails, some may
    have been counted, so let the registry send all of them again.
    """
    counting = [event for event in events if event.counts]
    ignored = [Verdict(_known(event.action), Outcome.IGNORED) for event in events if not event.counts]
    return gather_list([_count_once(event) for event in counting]).map(lambda found: [*found, *ignored])


def _count_once(event: Event) -> Call[Verdict]:
    path = event.target.repository
    own = CountedPath.of(path)
    seen = CountedEvent(own.namespace, own.path_hash, event.id)
    added = count(path, pulls=1) if event.action == "pull" else count(path, pushes=1)
    counted = commit("count", [absent(seen)], [seen.set(event.action), added], subject=event.action)
    return counted.map(
        lambda outcome: Verdict(event.action, Outcome.COUNTED if outcome else Outcome.REPEATED)
    )


def _known(action: str) -> str:
    """The action, if it is one: a metric must not grow with whatever is sent."""
    return action if action in ("pull", "push", "mount", "delete") else "other"
