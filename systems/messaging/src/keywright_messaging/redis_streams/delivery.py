"""A stream entry as a delivery."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from keywright_messaging.contract import Delivery
from keywright_messaging.redis_streams.delivery_buffer import StreamQueue

if TYPE_CHECKING:
    from keywright_messaging.redis_streams.acknowledgements import Settlement

__all__ = ["StreamDelivery"]

_LONGEST_DEADLINE = 20  # digits of a time in nanoseconds


class StreamDelivery(Delivery):
    """One entry of a stream. An entry without the field `data` has an empty body."""

    __slots__ = ("_deadline_ns", "_settlement", "queue")

    def __init__(
        self,
        settlement: Settlement,
        queue: StreamQueue,
        identity: bytes,
        fields: Sequence[bytes],
        attempt: int,
    ) -> None:
        # Not through super(), which takes a third of the time: there are 100,000 deliveries per second.
        self.event = queue.event
        self.id = identity.decode()
        self.attempt = attempt
        self.content_type = None
        self.queue = queue
        self.settled = False
        self._settlement = settlement
        self._deadline_ns: int | None = None
        if len(fields) == 2 and fields[0] == b"data":
            self.body = fields[1]
        else:
            self._read(fields)

    @property
    def wants_reply(self) -> bool:
        """True unless the deadline of the caller is over (docs/resolutions.md#timeout-at).

        The protocol does not distinguish a call from a publish: a caller listens on the reply's channel.
        """
        return self._deadline_ns is None or time.time_ns() < self._deadline_ns

    async def acknowledge(self) -> None:
        await self._settlement.acknowledge([self])

    async def reject(self, reason: str, *, retry: bool = False) -> None:
        await self._settlement.reject(self, reason, retry=retry)

    async def reply(self, data: object) -> None:
        await self._settlement.reply(self, data)

    def _read(self, fields: Sequence[bytes]) -> None:
        named: dict[bytes, Any] = dict(zip(fields[::2], fields[1::2], strict=False))
        self.body = named.get(b"data", b"")
        deadline: bytes = named.get(b"timeout_at", b"")
        # A longer one is not a time, and int() may refuse it.
        timed = deadline.isdigit() and len(deadline) <= _LONGEST_DEADLINE
        self._deadline_ns = int(deadline) if timed else None
