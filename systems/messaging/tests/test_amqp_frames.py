"""The frequent frames: packing, parsing, the tap that splits them off, and acknowledging with few of them."""

from __future__ import annotations

import struct
from collections.abc import Iterable
from itertools import pairwise

import pamqp.frame
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pamqp import commands
from pamqp.body import ContentBody
from pamqp.header import ContentHeader

from keywright_messaging.amqp.acknowledgements import Ledger
from keywright_messaging.amqp.frames import (
    PERSISTENT,
    Properties,
    content,
    get_method,
    headers_without,
    publish_method,
    read_properties,
)
from keywright_messaging.amqp.tap import Tap

pytestmark = pytest.mark.anyio


HEARTBEAT = b"\x08\x00\x00\x00\x00\x00\x00\xce"
TEXT = st.text(max_size=40).filter(lambda text: len(text.encode()) < 256)


class Sink:
    """Records the calls of the tap."""

    def __init__(self) -> None:
        self.seen: list[object] = []

    def delivered(self, consumer: bytes, tag: int, redelivered: bool, header: bytes, body: bytes) -> None:
        self.seen.append((consumer, tag, redelivered, read_properties(header).message_id, body))

    def nothing(self) -> None:
        self.seen.append("nothing")

    def returned(self, header: bytes) -> None:
        self.seen.append(("returned", read_properties(header).message_id))

    def confirmed(self, tag: int, multiple: bool, accepted: bool) -> None:
        self.seen.append(("confirmed", tag, multiple, accepted))


async def test_answers_to_requests_go_to_the_sink() -> None:
    tap, sink = Tap(), Sink()
    tap.tap_deliveries(1, sink)
    properties = commands.Basic.Properties(message_id="m1")
    tap.feed_data(
        marshalled(
            [
                commands.Basic.GetOk(7, True, "gateway", "A", 3),
                ContentHeader(0, 2, properties),
                ContentBody(b"ab"),
                commands.Basic.GetEmpty(),
            ]
        )
    )
    assert sink.seen == [(b"", 7, True, "m1", b"ab"), "nothing"]


def test_a_request_is_what_the_library_would_send() -> None:
    assert get_method(5, "gateway:A") == pamqp.frame.marshal(commands.Basic.Get(queue="gateway:A"), 5)


def marshalled(frames: Iterable[object], channel: int = 1) -> bytes:
    return b"".join(pamqp.frame.marshal(frame, channel) for frame in frames)  # type: ignore[arg-type]


def delivery(tag: int, body: bytes, parts: int = 1) -> bytes:
    size = max(1, len(body) // parts)
    properties = commands.Basic.Properties(message_id=f"m{tag}")
    return marshalled(
        [
            commands.Basic.Deliver("0", tag, tag % 2 == 0, "gateway", "A"),
            ContentHeader(0, len(body), properties),
            *(ContentBody(body[start : start + size]) for start in range(0, len(body), size)),
        ]
    )


def unread(tap: Tap) -> bytes:
    return bytes(tap._buffer)  # type: ignore[attr-defined]


@given(
    exchange=TEXT,
    key=TEXT,
    kind=st.none() | TEXT,
    identity=st.none() | TEXT,
    asked=st.none() | TEXT,
    headers=st.none() | st.dictionaries(TEXT.filter(bool), st.integers(0, 2**31 - 1) | TEXT, max_size=3),
    body=st.binary(max_size=300),
)
def test_pamqp_reads_a_packed_message(
    exchange: str,
    key: str,
    kind: str | None,
    identity: str | None,
    asked: str | None,
    headers: dict[str, int | str] | None,
    body: bytes,
) -> None:
    properties = Properties(
        content_type=kind, headers=headers, correlation_id=identity, reply_to=asked, message_id=identity
    )
    data = publish_method(7, exchange, key, mandatory=True) + content(
        7, *properties.pack(PERSISTENT), body, 128
    )
    frames = []
    while data:
        length, channel, frame = pamqp.frame.unmarshal(data)
        assert channel == 7
        frames.append(frame)
        data = data[length:]
    method, header, *bodies = frames
    assert isinstance(method, commands.Basic.Publish)
    assert (method.exchange, method.routing_key, method.mandatory) == (exchange, key, True)
    assert isinstance(header, ContentHeader)
    assert header.body_size == len(body)
    found = header.properties
    assert (found.content_type, found.correlation_id, found.reply_to) == (kind, identity, asked)
    assert found.message_id == identity
    assert (found.headers or None) == (headers or None)
    assert found.delivery_mode == 2
    assert all(len(part.value) <= 128 for part in bodies)  # type: ignore[union-attr]
    assert b"".join(part.value for part in bodies) == body  # type: ignore[union-attr]


@given(
    kind=st.none() | TEXT,
    identity=st.none() | TEXT,
    asked=st.none() | TEXT,
    expiration=st.none() | TEXT,
    priority=st.none() | st.integers(0, 9),
    headers=st.none() | st.dictionaries(TEXT.filter(bool), st.integers(0, 2**31 - 1) | TEXT, max_size=3),
)
def test_properties_that_pamqp_packed_are_read_back(
    kind: str | None,
    identity: str | None,
    asked: str | None,
    expiration: str | None,
    priority: int | None,
    headers: dict[str, int | str] | None,
) -> None:
    written = commands.Basic.Properties(
        content_type=kind,
        content_encoding=expiration,
        headers=headers,  # type: ignore[arg-type]
        priority=priority,
        correlation_id=asked,
        reply_to=asked,
        expiration=expiration,
        message_id=identity,
        app_id="someone",
    )
    frame = marshalled([ContentHeader(0, 5, written)])
    found = read_properties(frame[7:-1])
    assert (found.content_type or None) == (kind or None)
    assert (found.message_id or None) == (identity or None)
    assert (found.reply_to or None) == (found.correlation_id or None) == (asked or None)
    assert (found.headers or None) == (headers or None)


def test_malformed_properties_are_read_up_to_the_fault() -> None:
    frame = marshalled([ContentHeader(0, 5, commands.Basic.Properties(content_type="text", message_id="m"))])
    assert read_properties(frame[7:-3]).content_type == "text"


def nested(depth: int) -> bytes:
    value = b"t\x01"
    for _ in range(depth):
        value = b"A" + len(value).to_bytes(4, "big") + value
    return value


@pytest.mark.parametrize(
    "value",
    [b"T" + b"\xff" * 8, b"?", b"f", b"S\x00\x00\x00\x09abc", nested(3000)],
    ids=["a time beyond all years", "an unknown type", "nothing", "half of a text", "a deep nest"],
)
def test_a_malformed_header_does_not_hide_other_properties(value: bytes) -> None:
    """An exception here would end the connection, and the message would be redelivered on the next."""
    first = b"\x01at\x01"
    table = first + b"\x01b" + value
    header = struct.pack(">HHQHI", 60, 0, 0, 1 << 13 | 1 << 7, len(table)) + table + b"\x02id"
    found = read_properties(header)
    assert found.message_id == "id"
    assert headers_without(found.foreign, lambda name: name == "z") == first
    assert headers_without(found.foreign, lambda name: name == "a") == b""


@settings(deadline=None)
@given(cuts=st.lists(st.integers(0, 900), max_size=12))
async def test_a_tap_takes_its_channels_and_passes_the_rest_however_the_stream_is_cut(
    cuts: list[int],
) -> None:
    foreign = marshalled([commands.Basic.Deliver("0", 9, False, "gateway", "A")], channel=2)
    reply = marshalled([commands.Basic.ConsumeOk("0")])
    stream = b"".join(
        [
            foreign,
            delivery(1, b"one"),
            reply,
            delivery(2, b"a body in several frames", parts=4),
            delivery(3, b""),
            marshalled([commands.Basic.Ack(5, True), commands.Basic.Nack(6, False)], channel=3),
            marshalled([commands.Basic.Return(312, "NO_ROUTE", "gateway", "Z")], channel=3),
            marshalled([ContentHeader(0, 4, commands.Basic.Properties(message_id="back"))], channel=3),
            marshalled([ContentBody(b"back"), commands.Basic.QosOk()], channel=3),
        ]
    )
    sink, tap = Sink(), Tap()
    tap.tap_deliveries(1, sink)
    tap.tap_confirms(3, sink)
    edges = [0, *sorted(cut for cut in cuts if cut < len(stream)), len(stream)]
    for start, end in pairwise(edges):
        tap.feed_data(stream[start:end])
    for_aiormq = foreign + reply + marshalled([commands.Basic.QosOk()], channel=3)
    assert unread(tap).replace(HEARTBEAT, b"") == for_aiormq
    assert sink.seen == [
        (b"0", 1, False, "m1", b"one"),
        (b"0", 2, True, "m2", b"a body in several frames"),
        (b"0", 3, False, "m3", b""),
        ("confirmed", 5, True, True),
        ("confirmed", 6, False, False),
        ("returned", "back"),
    ]


async def test_a_stream_of_deliveries_only_still_looks_alive_to_aiormq() -> None:
    tap = Tap()
    tap.tap_deliveries(1, Sink())
    tap.feed_data(delivery(1, b"one"))
    assert unread(tap) == HEARTBEAT


async def test_a_frame_that_does_not_end_where_it_should_breaks_the_stream() -> None:
    tap = Tap()
    tap.feed_data(delivery(1, b"one")[:-1] + b"\x00")
    assert "does not end" in str(tap.exception())


class Server:
    """Processes acknowledgements as RabbitMQ does: an unknown tag closes the channel."""

    def __init__(self, delivered: int) -> None:
        self.unsettled = set(range(1, delivered + 1))
        self.frames = 0

    def receive(self, data: bytes) -> None:
        while data:
            length, _, frame = pamqp.frame.unmarshal(data)
            assert isinstance(frame, commands.Basic.Ack)
            assert frame.delivery_tag in self.unsettled, "PRECONDITION_FAILED - unknown delivery tag"
            self.frames += 1
            if frame.multiple:
                self.unsettled -= set(range(1, frame.delivery_tag + 1))
            self.unsettled.discard(frame.delivery_tag)
            data = data[length:]


@given(order=st.permutations(range(1, 13)), sizes=st.lists(st.integers(1, 5), min_size=12, max_size=12))
def test_acknowledging_in_any_order_settles_exactly_the_acknowledged_deliveries(
    order: list[int], sizes: list[int]
) -> None:
    ledger, server, settled = Ledger(1), Server(12), set[int]()
    for tag in range(1, 13):
        ledger.arrived(tag)
    for size in sizes:
        chosen, order = order[:size], order[size:]
        server.receive(ledger.acknowledge(chosen))
        settled |= set(chosen)
        assert server.unsettled == set(range(1, 13)) - settled
        assert len(ledger) == 12 - len(settled)


def test_a_batch_without_gaps_is_one_frame() -> None:
    ledger, server = Ledger(1), Server(100)
    for tag in range(1, 101):
        ledger.arrived(tag)
    server.receive(ledger.acknowledge(range(1, 101)))
    assert (server.frames, server.unsettled) == (1, set())
