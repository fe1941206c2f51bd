"""Batches of a thousand calls: sent in parts, and their collections decoded while more are on their way."""

from __future__ import annotations

from collections.abc import Callable

import hiredis
import pytest
from hypothesis import given
from hypothesis import strategies as st

from engines import Engine, Group, Number, Queue, Tally
from keywright import Keyspace, List, gather_list
from keywright.engine.telemetry import RoundTrip
from keywright.engine.wire_format import ErrorReply, Incoming, Parser
from keywright.errors import StoredDataError, WrongTypeError
from keywright.keyspace.wires import Decoded, ManyDecoder
from keywright.testing import Proxy
from keywright.testing.runs import Raw

OpenEngine = Callable[..., Engine]

MANY = 1_000


space = Keyspace("large-batches", "Lists of which many are read at once.")


class Numbers(List[int], key="numbers:<n>", space=space):
    n: int


@pytest.fixture
def engine(open_engine: OpenEngine, redis_url: str) -> Engine:
    return open_engine(redis_url)


def _fill(engine: Engine) -> None:
    engine.run(gather_list(Numbers(n).push(*range(n % 7 + 1)) for n in range(MANY)))


def _read(engine: Engine) -> list[list[int]]:
    return engine.run(gather_list(Numbers(n).range() for n in range(MANY)))


EXPECTED = [list(range(n % 7 + 1)) for n in range(MANY)]


def test_collections_are_returned_in_the_order_of_their_calls(engine: Engine) -> None:
    _fill(engine)
    assert _read(engine) == EXPECTED


def test_a_batch_may_mix_kinds_and_verbs(engine: Engine) -> None:
    calls = [
        (Queue(f"q{n}").push("a", "b"), Group("r", f"g{n}").add("m"), Tally(f"t{n}").add(n))[n % 3]
        for n in range(MANY)
    ]
    assert engine.run(gather_list(calls)) == [(2, 1, n)[n % 3] for n in range(MANY)]
    reads = [
        (Queue(f"q{n}").range(), Group("r", f"g{n}").members(), Tally(f"t{n}").get())[n % 3]
        for n in range(MANY)
    ]
    assert engine.run(gather_list(reads)) == [(["a", "b"], {"m"}, n)[n % 3] for n in range(MANY)]


@pytest.mark.parametrize("place", [0, 1, 700, MANY - 1])
def test_a_key_of_another_type_is_named(engine: Engine, raw: Raw, place: int) -> None:
    _fill(engine)
    raw("DEL", f"numbers:{place}")
    raw("SET", f"numbers:{place}", "a text")
    with pytest.raises(WrongTypeError, match=rf"numbers:{place}\b"):
        _read(engine)


@pytest.mark.parametrize("place", [0, 1, 700, MANY - 1])
def test_an_item_that_is_malformed_is_named_with_its_key(engine: Engine, raw: Raw, place: int) -> None:
    _fill(engine)
    raw("RPUSH", f"numbers:{place}", "no number")
    with pytest.raises(StoredDataError, match=rf"numbers:{place}\b"):
        _read(engine)


@pytest.mark.parametrize("place", [1, 2, 600, MANY])
def test_a_batch_that_is_cut_among_its_replies_is_read_again(
    open_engine: OpenEngine, redis_url: str, make_proxy: Callable[[str], Proxy], place: int
) -> None:
    proxy = make_proxy(redis_url)
    engine = open_engine(proxy.url)
    _fill(engine)
    proxy.cut_before_reply(place)
    assert _read(engine) == EXPECTED


NAMES = [f"n{n}" for n in range(5 * MANY)]


def test_many_values_are_returned_in_the_order_of_their_names(engine: Engine) -> None:
    engine.run(Number.set_many((name, n) for n, name in enumerate(NAMES) if n % 2))
    assert engine.run(Number.get_many(NAMES)) == [n if n % 2 else None for n in range(len(NAMES))]


@pytest.mark.parametrize("place", [0, 1, 3_000, len(NAMES) - 1])
def test_one_of_many_values_that_is_malformed_is_named(engine: Engine, raw: Raw, place: int) -> None:
    engine.run(Number.set_many((name, n) for n, name in enumerate(NAMES)))
    raw("SET", f"number:n{place}", "no number")
    with pytest.raises(StoredDataError, match=rf"number:n{place}\b"):
        engine.run(Number.get_many(NAMES))


def test_an_observer_learns_how_many_bytes_came(open_engine: OpenEngine, redis_url: str) -> None:
    seen: list[RoundTrip] = []
    engine = open_engine(redis_url, None, seen.append)
    _fill(engine)
    seen.clear()
    assert _read(engine) == EXPECTED
    (trip,) = seen
    assert trip.operations == {("numbers:<n>", "range"): MANY}
    assert trip.bytes_received == sum(map(len, EXPECTED))  # each item is one digit


# --- the parser ------------------------------------------------------------------------------------------


replies = st.lists(
    st.one_of(
        st.lists(st.sampled_from([b"$1\r\na\r\n", b"$-1\r\n", b":7\r\n", b"$0\r\n\r\n"]), max_size=3).map(
            lambda items: b"*%d\r\n%b" % (len(items), b"".join(items))
        ),
        st.sampled_from([b"-ERR wrong\r\n", b"$2\r\nab\r\n", b":1\r\n"]),
    ),
    min_size=1,
    max_size=8,
)


def _decoder(refused: int) -> ManyDecoder:
    """Return a decoder of arrays that refuses those with so many items."""

    def decode(many: object) -> list[object]:
        assert isinstance(many, list)
        if any(not isinstance(each, list) or len(each) == refused for each in many):
            raise ValueError
        return [("decoded", len(each)) for each in many]

    return decode


@given(replies, st.data())
def test_replies_are_decoded_or_left_as_they_came(encoded: list[bytes], data: st.DataObject) -> None:
    refused = data.draw(st.sampled_from([1, 9]))
    whole = b"".join(encoded)
    cuts = sorted(data.draw(st.sets(st.integers(1, max(1, len(whole) - 1)), max_size=5)))
    pieces = [whole[a:b] for a, b in zip([0, *cuts], [*cuts, len(whole)], strict=True)]
    end = data.draw(st.integers(0, len(pieces)))

    incoming = Incoming(Parser(), len(encoded), lambda: _decoder(refused))
    finished = False
    for piece in pieces[:end]:
        incoming.feed(piece)
        finished = incoming.complete()

    raw = _plainly(b"".join(pieces[:end]), len(encoded))
    assert finished is (len(raw) == len(encoded))
    assert list(map(_comparable, incoming.before_break())) == list(map(_comparable, raw))
    if finished and type(incoming.replies) is Decoded:
        assert incoming.replies == _decoder(refused)(raw)
    elif finished:
        assert list(map(_comparable, incoming.replies)) == list(map(_comparable, raw))
        odd = any(not isinstance(each, list) or len(each) == refused for each in raw)
        assert odd or len(raw) == 1
    assert incoming.had_errors() is any(isinstance(each, hiredis.ReplyError) for each in raw)


def _plainly(data: bytes, most: int) -> list[object]:
    reader = hiredis.Reader(notEnoughData=StopIteration)
    reader.feed(data)
    found: list[object] = []
    while len(found) < most and (reply := reader.gets()) is not StopIteration:
        found.append(reply)
    return found


def _comparable(reply: object) -> object:
    return str(reply) if isinstance(reply, ErrorReply | hiredis.ReplyError) else reply
