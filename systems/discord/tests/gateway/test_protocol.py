"""The shard's side of the protocol: every opcode and close code, on a manual clock."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from keywright import Secret
from keywright_discord.gateway.actions import Close, Connect, Dispatch, Session, Stop, Transmit
from keywright_discord.gateway.close_codes import RESUMABLE
from keywright_discord.gateway.opcodes import Op
from keywright_discord.gateway.protocol import (
    HELLO_SECONDS,
    LONGEST_REST_SECONDS,
    RESUME_ATTEMPTS,
    Conversation,
    Identity,
    Phase,
)
from keywright_discord.gateway.wire import Payload

URL = "wss://gateway.example"
RESUME_URL = "wss://resume.example"
INTERVAL = 40.0
SECRET = "the-token"
IDENTITY = Identity(token=Secret(SECRET), intents=513, presence={"status": "idle"}, large_threshold=100)
KNOWN = Session("old", RESUME_URL)

RESUMED_CODES = [None, 1000, 1001, 1006, 1011, 4000, 4001, 4002, 4003, 4005, 4006, 4008, 4999]
NEW_SESSION_CODES = [4007, 4009]
FATAL_CODES = {
    4004: "token",
    4010: "shard",
    4011: "shards.count",
    4012: "gateway_version",
    4013: "intents",
    4014: "developer portal",
}


def payload(op: int, d: Any = None, s: int | None = None, t: str | None = None) -> Payload:
    return Payload(op, msgspec.Raw(msgspec.json.encode(d)), s, t)


HELLO = payload(10, {"heartbeat_interval": INTERVAL * 1000})
ACK = payload(11)


def ready(sequence: int = 1, session: str = "new") -> Payload:
    return payload(0, {"session_id": session, "resume_gateway_url": RESUME_URL}, sequence, "READY")


def message(sequence: int) -> Payload:
    return payload(0, {"id": str(sequence)}, sequence, "MESSAGE_CREATE")


def fresh(chance: float = 0.5, session: Session | None = None, sequence: int | None = None) -> Conversation:
    return Conversation(2, 4, IDENTITY, URL, session=session, sequence=sequence, random=lambda: chance)


def greeted(conversation: Conversation, now: float = 0.0) -> list[Any]:
    conversation.ticked(max(now, conversation.due or 0.0))
    conversation.opened(now)
    return conversation.received(HELLO, now)


def connected(chance: float = 0.5) -> Conversation:
    """Return a shard that is ready, at time 0."""
    conversation = fresh(chance)
    greeted(conversation)
    conversation.received(ready(), 0.0)
    return conversation


def next_connect(conversation: Conversation) -> Connect:
    assert conversation.due is not None
    [output] = conversation.ticked(conversation.due)
    assert isinstance(output, Connect)
    return output


def test_a_new_shard_connects_at_once_to_identify() -> None:
    assert fresh().ticked(0.0) == [Connect(URL, resuming=False)]


def test_hello_is_answered_with_identify() -> None:
    [sent] = greeted(fresh())
    assert sent == Transmit(
        Op.IDENTIFY,
        {
            "token": Secret(SECRET),
            "properties": {"os": "linux", "browser": "keywright", "device": "keywright"},
            "large_threshold": 100,
            "shard": [2, 4],
            "intents": 513,
            "presence": {"status": "idle"},
        },
    )


def test_no_output_shows_the_token() -> None:
    conversation = fresh(session=KNOWN, sequence=7)
    assert SECRET not in repr(greeted(fresh())) + repr(greeted(conversation)) + repr(IDENTITY)


def test_a_stored_session_is_resumed_at_its_own_address() -> None:
    conversation = fresh(session=KNOWN, sequence=7)
    assert conversation.ticked(0.0) == [Connect(RESUME_URL, resuming=True)]
    conversation.opened(0.0)
    [sent] = conversation.received(HELLO, 0.0)
    assert sent == Transmit(Op.RESUME, {"token": Secret(SECRET), "session_id": "old", "seq": 7})
    assert conversation.phase is Phase.RESUMING
    [resumed] = conversation.received(payload(0, {}, 9, "RESUMED"), 0.0)
    assert conversation.ready
    assert isinstance(resumed, Dispatch)
    assert resumed.session is None


def test_ready_begins_a_session_with_its_own_sequence() -> None:
    conversation = fresh()
    greeted(conversation)
    [first] = conversation.received(ready(1), 0.0)
    assert isinstance(first, Dispatch)
    assert (first.event, first.sequence, first.session) == ("READY", 1, Session("new", RESUME_URL))
    assert conversation.ready


def test_an_event_is_passed_on_as_it_came() -> None:
    conversation = connected()
    [event] = conversation.received(message(2), 0.0)
    assert event == Dispatch("MESSAGE_CREATE", 2, msgspec.Raw(b'{"id":"2"}'))
    assert conversation.sequence == 2


def test_an_event_before_a_session_has_begun_is_ignored() -> None:
    conversation = fresh()
    conversation.ticked(0.0)
    conversation.opened(0.0)
    assert conversation.received(message(1), 0.0) == []
    conversation.received(HELLO, 0.0)
    assert conversation.received(message(1), 0.0) == []
    assert conversation.sequence is None


def test_a_repeated_event_is_not_passed_on_again() -> None:
    conversation = connected()
    conversation.received(message(5), 0.0)
    assert conversation.received(message(5), 0.0) == []
    assert conversation.received(message(4), 0.0) == []
    assert conversation.sequence == 5


def test_a_new_session_may_begin_below_the_old_sequence() -> None:
    conversation = connected()
    conversation.received(message(900), 0.0)
    conversation.closed(4009, 1.0)
    greeted(conversation, 10.0)
    [first] = conversation.received(ready(1, "another"), 10.0)
    assert isinstance(first, Dispatch)
    assert conversation.sequence == 1


@pytest.mark.parametrize("chance", [0.0, 0.25, 0.999])
def test_the_first_heartbeat_comes_after_a_random_part_of_the_interval(chance: float) -> None:
    conversation = fresh(chance)
    greeted(conversation)
    assert conversation.due == pytest.approx(INTERVAL * chance)


def test_heartbeats_carry_the_sequence_and_repeat_while_acknowledged() -> None:
    conversation = connected()
    conversation.received(message(8), 0.0)
    assert conversation.ticked(19.9) == []
    assert conversation.ticked(20.0) == [Transmit(Op.HEARTBEAT, 8)]
    assert conversation.due == 60.0
    conversation.received(ACK, 20.25)
    assert conversation.latency == pytest.approx(0.25)
    assert conversation.ticked(60.0) == [Transmit(Op.HEARTBEAT, 8)]


def test_the_first_heartbeat_before_any_event_has_no_sequence() -> None:
    conversation = fresh()
    greeted(conversation)
    assert conversation.ticked(20.0) == [Transmit(Op.HEARTBEAT, None)]


def test_a_missing_acknowledgement_closes_for_a_resume() -> None:
    conversation = connected()
    conversation.ticked(20.0)
    [close] = conversation.ticked(60.0)
    assert isinstance(close, Close)
    assert close.code not in (1000, 1001)
    conversation.closed(close.code, 60.0)
    assert next_connect(conversation) == Connect(RESUME_URL, resuming=True)


def test_while_nothing_is_read_a_missing_acknowledgement_is_ignored() -> None:
    conversation = connected()
    conversation.deafen()
    assert conversation.ticked(20.0) == [Transmit(Op.HEARTBEAT, 1)]
    assert conversation.ticked(60.0) == [Transmit(Op.HEARTBEAT, 1)]
    conversation.listen()
    assert conversation.ticked(100.0) == [Transmit(Op.HEARTBEAT, 1)]
    assert isinstance(conversation.ticked(140.0)[0], Close)


def test_a_heartbeat_that_discord_asks_for_is_sent_at_once() -> None:
    conversation = connected()
    assert conversation.received(payload(1), 3.0) == [Transmit(Op.HEARTBEAT, 1)]
    assert conversation.due == 20.0


def test_asked_to_reconnect_it_closes_and_resumes() -> None:
    conversation = connected()
    assert conversation.received(payload(7), 1.0) == [Close(RESUMABLE, "asked to reconnect")]
    assert conversation.received(message(2), 1.0) == []
    conversation.closed(RESUMABLE, 1.0)
    assert next_connect(conversation) == Connect(RESUME_URL, resuming=True)


def test_an_invalid_session_that_is_resumable_is_resumed() -> None:
    conversation = connected()
    conversation.received(payload(9, True), 1.0)
    conversation.closed(RESUMABLE, 1.0)
    assert next_connect(conversation).resuming


@pytest.mark.parametrize(("chance", "wait"), [(0.0, 1.0), (0.5, 3.0), (1.0, 5.0)])
def test_an_invalid_session_is_forgotten_and_identified_again_after_one_to_five_seconds(
    chance: float, wait: float
) -> None:
    conversation = connected(chance)
    conversation.received(payload(9, False), 10.0)
    conversation.closed(RESUMABLE, 10.0)
    assert conversation.due == pytest.approx(10.0 + wait)
    assert next_connect(conversation) == Connect(URL, resuming=False)
    assert conversation.sequence is None


@pytest.mark.parametrize("code", RESUMED_CODES)
def test_after_these_codes_it_resumes(code: int | None) -> None:
    conversation = connected()
    assert conversation.closed(code, 1.0) == []
    assert next_connect(conversation) == Connect(RESUME_URL, resuming=True)


@pytest.mark.parametrize("code", NEW_SESSION_CODES)
def test_after_these_codes_it_identifies_again(code: int) -> None:
    conversation = connected()
    assert conversation.closed(code, 1.0) == []
    assert next_connect(conversation) == Connect(URL, resuming=False)


@pytest.mark.parametrize("code", FATAL_CODES)
def test_after_these_codes_it_stops_and_says_what_to_do(code: int) -> None:
    conversation = connected()
    [stop] = conversation.closed(code, 1.0)
    assert isinstance(stop, Stop)
    assert stop.code == code
    assert FATAL_CODES[code] in stop.reason
    assert conversation.due is None
    assert conversation.ticked(1e9) == []


def test_a_connection_without_a_hello_is_given_up() -> None:
    conversation = fresh()
    conversation.ticked(0.0)
    conversation.opened(0.0)
    assert conversation.due == HELLO_SECONDS
    assert conversation.ticked(HELLO_SECONDS) == [Close(RESUMABLE, "no hello")]


@pytest.mark.parametrize("d", [None, {}, {"heartbeat_interval": 0}, {"heartbeat_interval": "soon"}])
def test_a_hello_without_an_interval_is_given_up(d: Any) -> None:
    conversation = fresh()
    conversation.ticked(0.0)
    conversation.opened(0.0)
    assert isinstance(conversation.received(payload(10, d), 0.0)[0], Close)


def test_a_ready_without_a_session_is_given_up() -> None:
    conversation = fresh()
    greeted(conversation)
    assert isinstance(conversation.received(payload(0, {"v": 10}, 1, "READY"), 0.0)[0], Close)


@pytest.mark.parametrize("d", [b'{"_trace": "\xff"}', b"[" * 100_000], ids=["not UTF-8", "nested"])
@pytest.mark.parametrize(("op", "event"), [(10, None), (0, "READY")], ids=["HELLO", "READY"])
def test_a_hello_or_ready_that_cannot_be_decoded_is_given_up(d: bytes, op: int, event: str | None) -> None:
    conversation = fresh()
    conversation.ticked(0.0)
    conversation.opened(0.0)
    if event:
        conversation.received(HELLO, 0.0)
    body = b'{"session_id": "a\xff", "heartbeat_interval": ' + d
    assert isinstance(conversation.received(Payload(op, msgspec.Raw(body), 1, event), 0.0)[0], Close)


def test_pauses_grow_up_to_a_minute_and_start_over_once_it_is_stable() -> None:
    conversation = fresh(1.0)
    rests = []
    now = 0.0
    for _ in range(9):
        conversation.ticked(now)
        conversation.closed(None, now)
        assert conversation.due is not None
        rests.append(conversation.due - now)
        now = conversation.due
    assert rests == [0, 1, 2, 4, 8, 16, 32, 60, LONGEST_REST_SECONDS]
    greeted(conversation, now)
    conversation.received(ready(), now)
    conversation.received(ACK, now)
    conversation.closed(None, now)
    assert conversation.due == now


def test_a_session_that_breaks_before_a_heartbeat_is_not_stable() -> None:
    conversation = fresh(1.0)
    greeted(conversation)
    conversation.received(ready(), 0.0)
    conversation.closed(4000, 0.0)
    greeted(conversation, 0.0)
    conversation.received(payload(0, {}, 2, "RESUMED"), 0.0)
    conversation.closed(4000, 0.0)
    assert conversation.due == 1.0


def test_a_resume_url_that_fails_is_replaced_by_the_general_one() -> None:
    conversation = fresh(session=KNOWN, sequence=3)
    for _ in range(RESUME_ATTEMPTS):
        assert next_connect(conversation) == Connect(RESUME_URL, resuming=True)
        conversation.closed(None, 0.0)
    assert next_connect(conversation) == Connect(URL, resuming=True)


def test_stopping_closes_so_that_the_session_can_be_resumed() -> None:
    conversation = connected()
    assert conversation.stop() == [Close(RESUMABLE, "shutting down")]
    assert conversation.closed(RESUMABLE, 1.0) == []
    assert conversation.ticked(1e9) == []
    assert conversation.session == Session("new", RESUME_URL)


def test_unknown_opcodes_do_nothing() -> None:
    assert connected().received(payload(99, {}), 1.0) == []


STEPS = st.one_of(
    st.tuples(st.just("payload"), st.sampled_from([0, 1, 7, 9, 10, 11, 42]), st.booleans()),
    st.tuples(st.just("closed"), st.sampled_from([None, 1000, 4000, 4007, 4009]), st.none()),
    st.tuples(st.just("tick"), st.floats(0.0, 100.0), st.none()),
    st.tuples(st.just("open"), st.none(), st.none()),
)


@given(st.lists(STEPS, max_size=60))
def test_sequences_only_grow_and_it_never_gets_stuck(
    steps: list[Any],
) -> None:
    conversation = connected()
    now, number, last, open_ = 0.0, 1, 1, True
    for kind, what, flag in steps:
        outputs: list[Any] = []
        if kind == "payload" and open_:
            number += 1 if flag else 0
            event = ready(number) if conversation.phase is Phase.IDENTIFYING else message(number)
            outputs = conversation.received(
                {0: event, 9: payload(9, flag), 10: HELLO}.get(what, payload(what)), now
            )
        elif kind == "closed" and (open_ or conversation.phase is Phase.CONNECTING):
            outputs = conversation.closed(what, now)
            open_ = False
        elif kind == "tick":
            now += what
            outputs = conversation.ticked(now)
        elif kind == "open" and conversation.phase is Phase.CONNECTING:
            outputs = conversation.opened(now)
            open_ = True
        for output in outputs:
            if isinstance(output, Dispatch):
                assert conversation.session is not None
                last = -1 if output.session else last
                assert output.sequence > last
                last = output.sequence
    if conversation.phase not in (Phase.CONNECTING, Phase.CLOSING):
        assert conversation.due is not None
