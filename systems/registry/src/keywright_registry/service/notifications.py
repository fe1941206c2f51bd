"""The registry's notifications: the envelope of events, and which of them count.

A pull is the GET of a manifest, a push the PUT of one. Blobs do not count: their number depends on how an
image is built and on the layers that the client has. HEAD does not count: clients use it to check for
updates.
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

__all__ = [
    "MEDIA_TYPES",
    "EventOutcome",
    "EventResult",
    "MalformedError",
    "RegistryEvent",
    "count_all",
    "parse",
]

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


class EventTarget(msgspec.Struct, frozen=True, rename="camel"):
    """The subject of an event."""

    repository: str
    media_type: str = ""


class EventRequest(msgspec.Struct, frozen=True):
    """The request that caused the event."""

    method: str = ""


class RegistryEvent(msgspec.Struct, frozen=True):
    """One event; other fields are ignored."""

    id: Annotated[str, msgspec.Meta(min_length=1, max_length=LONGEST_ID)]
    timestamp: datetime
    action: str
    target: EventTarget
    request: EventRequest = EventRequest()

    @property
    def counts(self) -> bool:
        if self.target.media_type not in MANIFEST_TYPES:
            return False
        return self.action == "push" or (self.action == "pull" and self.request.method != "HEAD")


class Envelope(msgspec.Struct, frozen=True):
    events: list[RegistryEvent]


class EventOutcome(StrEnum):
    """The result of an event."""

    COUNTED = "counted"
    REPEATED = "repeated"
    IGNORED = "ignored"


class EventResult(NamedTuple):
    """The action of an event and its outcome."""

    action: str
    outcome: EventOutcome


_decode = msgspec.json.Decoder(Envelope).decode


def parse(body: bytes) -> list[RegistryEvent]:
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


def count_all(events: Sequence[RegistryEvent]) -> Call[list[EventResult]]:
    """Count each event once within six hours, and return the outcome of each.

    An event is counted and remembered in one commit. The envelope is not: if this fails, some events may have
    been counted, so let the registry send all of them again.
    """
    counting = [event for event in events if event.counts]
    ignored = [
        EventResult(_known(event.action), EventOutcome.IGNORED) for event in events if not event.counts
    ]
    return gather_list([_count_once(event) for event in counting]).map(lambda found: [*found, *ignored])


def _count_once(event: RegistryEvent) -> Call[EventResult]:
    path = event.target.repository
    own = CountedPath.of(path)
    seen = CountedEvent(own.namespace, own.path_hash, event.id)
    added = count(path, pulls=1) if event.action == "pull" else count(path, pushes=1)
    counted = commit("count", [absent(seen)], [seen.set(event.action), added], subject=event.action)
    return counted.map(
        lambda outcome: EventResult(event.action, EventOutcome.COUNTED if outcome else EventOutcome.REPEATED)
    )


def _known(action: str) -> str:
    """Return a known action or `other`, so that the labels of a metric are bounded."""
    return action if action in ("pull", "push", "mount", "delete") else "other"
