"""AMQP: frames from the server, and the properties and headers that a sender of messages chose."""

from __future__ import annotations

import asyncio
import struct

from keywright_messaging.amqp.frames import headers_without, read_properties
from keywright_messaging.amqp.tap import Tap

DELIVERIES, CONFIRMS = 1, 2
# A truncated method frame: only the server writes those, and the connection is made again.
SERVER_FAULTS = (struct.error, IndexError)


class Sink:
    """Reads what a consumer and a publisher read."""

    def delivered(self, consumer: bytes, tag: int, redelivered: bool, header: bytes, body: bytes) -> None:
        read(header)

    def nothing(self) -> None:
        pass

    def confirmed(self, tag: int, multiple: bool, accepted: bool) -> None:
        pass

    def returned(self, header: bytes) -> None:
        read(header)


def read(header: bytes) -> None:
    properties = read_properties(header)
    kept = headers_without(properties.foreign, lambda name: name.startswith("x-death"))
    assert len(kept) <= len(properties.foreign)


async def tapped(data: bytes) -> None:
    tap = Tap()
    tap.tap_deliveries(DELIVERIES, Sink())
    tap.tap_confirms(CONFIRMS, Sink())
    half = len(data) // 2
    try:
        tap.feed_data(data[:half])
        tap.feed_data(data[half:])
    except SERVER_FAULTS:
        pass


loop = asyncio.new_event_loop()


def one_input(data: bytes) -> None:
    read(data)
    loop.run_until_complete(tapped(data))
