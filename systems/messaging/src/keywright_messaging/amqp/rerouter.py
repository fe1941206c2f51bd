"""Publishes a message that was not acknowledged to its next queue, and replies to their callers.

The order is always the same: publish the message to its next queue, wait for the confirm, only then take it
off its queue. A crash in between duplicates it.

Messages that were unsettled when a consumer was lost are redelivered with a flag, and a classic queue reports
nothing else. Most of them were only prefetched; after a crash of the server itself every message in the queue
has the flag. So a flag alone does not make a dead letter:

- the first time, the message is published again to the end of its queue, with its attempts counted;
- the next time it goes to the queue's suspects, of which a consumer receives one at a time. A message that
  kills its consumer does so alone from then on, and its neighbours leave that queue normally;
- only a suspect that is redelivered until its attempts are used up becomes a dead letter.

The price: a backlog that survived two crashes of the server is received one message at a time.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Iterator, Mapping
from datetime import UTC, datetime
from functools import partial
from typing import Any

from keywright_messaging.amqp.delivery import ATTEMPTS, AmqpDelivery, attempts_before
from keywright_messaging.amqp.frames import PERSISTENT, TRANSIENT, Properties, headers_without
from keywright_messaging.amqp.publisher import DEFAULT_EXCHANGE, AmqpPublisher, OutgoingMessage
from keywright_messaging.amqp.topology import AmqpTopology
from keywright_messaging.contract import (
    LONGEST_REASON,
    NEVER_SETTLED,
    BrokerSettings,
    DeadLetter,
    encode_body,
    retry_delay,
)
from keywright_messaging.encodings import CONTENT_TYPES
from keywright_messaging.errors import UnroutableError

__all__ = ["NOTES", "Rerouter", "dead_letter"]

_REASON = "x-keywright-reason"
_EVENT = "x-keywright-event"
_AT = "x-keywright-at"
NOTES = frozenset({ATTEMPTS, _REASON, _EVENT, _AT})
"""The headers that a message gets when it is moved to the dead letters."""
_SHORT_REASON = 200
_HISTORY = ("x-death", "x-first-death", "x-last-death")


_log = logging.getLogger(__name__)


class Rerouter:
    """Publishes retries, redeliveries, dead letters and replies."""

    def __init__(
        self, publisher: AmqpPublisher, topology: AmqpTopology, settings: BrokerSettings, ids: Iterator[str]
    ) -> None:
        self.identities = ids
        self._publisher = publisher
        self._topology = topology
        self._settings = settings

    async def reject(self, delivery: AmqpDelivery, reason: str, *, retry: bool) -> None:
        """Publish a rejected message to its queue again after a delay, or to the dead letters."""
        if not retry or delivery.attempt >= self._settings.max_attempts:
            await self._bury(delivery, reason, delivery.attempt)
            return
        delay = retry_delay(self._settings, delivery.attempt)
        notes = {ATTEMPTS: delivery.attempt}
        if delay:
            ensure = partial(self._topology.ensure_retries, delivery.queue, delay)
            await self._publish_behind(delivery, ensure, notes)
        else:
            await self._publish(delivery, delivery.queue.name, notes)

    async def recount(self, delivery: AmqpDelivery, *, alone: bool) -> None:
        """Publish a redelivered message to the end of its queue, to the suspects or to the dead letters."""
        most, made = self._settings.max_attempts, delivery.attempt - 1
        if alone and made >= most:
            await self._bury(delivery, NEVER_SETTLED, made)
            return
        first_time = not alone and made == 1 and most > 2
        target = delivery.queue.name if first_time else delivery.queue.suspects
        # At least one delivery alone is left to it: the failures until now need not be its own.
        await self._publish(delivery, target, {ATTEMPTS: made if alone else min(made, most - 1)})

    async def reply(self, delivery: AmqpDelivery, data: object) -> None:
        """Publish to the reply queue of the caller, which may be gone."""
        body = encode_body(data, self._settings)
        asked = delivery.properties
        if asked.reply_to is None:
            return
        identity = next(self.identities)
        properties = Properties(
            content_type=CONTENT_TYPES[self._settings.encoding],
            correlation_id=asked.correlation_id,
            message_id=identity,
        )
        answer = OutgoingMessage(DEFAULT_EXCHANGE, asked.reply_to, identity, properties.pack(TRANSIENT), body)
        answer.mandatory = False
        await self._publisher.publish(answer)

    async def _bury(self, delivery: AmqpDelivery, reason: str, attempts: int) -> None:
        notes = {
            ATTEMPTS: attempts,
            _REASON: reason[:LONGEST_REASON],
            _EVENT: delivery.event,
            _AT: datetime.now(UTC).isoformat(),
        }
        await self._publish_behind(delivery, partial(self._topology.ensure_dead, delivery.queue), notes)

    async def _publish_behind(
        self, delivery: AmqpDelivery, ensure: Callable[[], Awaitable[str]], notes: dict[str, Any]
    ) -> None:
        """Publish to a queue that is declared on first use, and again if it was deleted."""
        try:
            await self._publish(delivery, await ensure(), notes)
        except UnroutableError:
            self._topology.forget_ensured()
            await self._publish(delivery, await ensure(), notes)

    async def _publish(self, delivery: AmqpDelivery, target: str, notes: dict[str, Any]) -> None:
        found = delivery.properties
        properties = Properties(
            content_type=found.content_type,
            headers=notes,
            correlation_id=found.correlation_id,
            reply_to=found.reply_to,
            message_id=delivery.id,
        )
        # Without the server's own history, because of which it takes a second retry for an endless cycle.
        properties.foreign = headers_without(
            found.foreign, lambda name: name in notes or name.startswith(_HISTORY)
        )
        packed = properties.pack(PERSISTENT)
        most = self._publisher.largest_properties
        if len(packed[1]) > most and properties.foreign:
            _log.warning("the headers of message %s fill a frame; it is kept without them", delivery.id)
            properties.foreign = b""
            packed = properties.pack(PERSISTENT)
        if len(packed[1]) > most:
            # All other properties are short: they fit into the smallest frame that the protocol allows.
            properties.headers = notes | {_REASON: str(notes.get(_REASON, ""))[:_SHORT_REASON]}
            packed = properties.pack(PERSISTENT)
        await self._publisher.publish(
            OutgoingMessage(DEFAULT_EXCHANGE, target, delivery.id, packed, delivery.body)
        )


def dead_letter(event: str, headers: Mapping[str, Any], body: bytes) -> DeadLetter:
    """Return a stored dead letter; one that another client published has no notes."""
    at = headers.get(_AT)
    return DeadLetter(
        event=str(headers.get(_EVENT, event)),
        body=body,
        reason=str(headers.get(_REASON, "unknown")),
        attempts=attempts_before(headers),
        at=datetime.fromisoformat(at) if isinstance(at, str) else datetime.fromtimestamp(0, UTC),
    )
