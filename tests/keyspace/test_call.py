"""Calls without a server: their rounds are driven by hand, reply by reply."""

from __future__ import annotations

from collections.abc import Generator
from datetime import timedelta
from typing import Any, TypeVar

import msgspec
import pytest

from declaring import key_class
from keywright import (
    Call,
    Context,
    Counter,
    Id,
    Keyspace,
    Record,
    Set,
    Value,
    atomic,
    erase,
    expires_in,
    gather,
    gather_list,
    many_to_one,
    preview,
)
from keywright.errors import (
    CrossSlotError,
    KeywrightError,
    ServerRefusedError,
    StoredDataError,
    UsageError,
    WrongTypeError,
)
from keywright.keyspace.call import inside, lowered
from keywright.keyspace.wires import Transacted
from keywright.operations import Effect, Pause, Procedure, Ready, Reply, Steps, Wire, bound_context, procedure

T = TypeVar("T")
space = Keyspace("calls", "What calls are made of.")


class Number(Value[int], key="number:<id>", space=space):
    """A number."""

    id: Id


class Members(Set[Id], key="members:<id>", space=space):
    """A set."""

    id: Id


class Tally(Counter, key="tally:<id>", space=space, expiry=expires_in(timedelta(seconds=5))):
    """A counter that expires."""

    id: Id


class Left(Value[int], key="{t}:left", space=space):
    """A key with a hash tag."""


def refused() -> KeywrightError:
    return ServerRefusedError("GET", b"number:a", "ERR on purpose")


def drive(call: Call[T], *answers: list[Reply], context: Context | None = None) -> tuple[list[Any], T]:
    """Run a call with these replies, a list a round trip; the commands of each round, and the value."""
    rounds = call.rounds(context or Context())
    sent, given = [], iter(answers)
    try:
        wires = next(rounds)
        while True:
            sent.append([wire.arguments for wire in wires])
            wires = rounds.send(next(given))
    except StopIteration as stop:
        value: T = stop.value
        return sent, value


def test_a_command_is_one_round_and_decodes_its_reply() -> None:
    assert drive(Number("a").get(), [b"3"]) == ([[(b"GET", b"number:a")]], 3)


def test_an_error_in_the_place_of_a_reply_is_raised() -> None:
    with pytest.raises(ServerRefusedError):
        drive(Number("a").get(), [refused()])


def test_a_reply_that_does_not_decode_names_key_and_template() -> None:
    with pytest.raises(StoredDataError) as caught:
        drive(Number("a").get(), [b"three"], context=Context([space.bind(prefix="p")]))
    assert (caught.value.key, caught.value.template) == (b"p:number:a", "number:<id>")


def test_the_same_call_runs_again_and_under_another_prefix() -> None:
    call = gather(Number("a").get(), Members("a").size())
    assert drive(call, [b"1", 2])[1] == drive(call, [b"1", 2])[1] == (1, 2)
    sent, _ = drive(call, [None, 0], context=Context([space.bind(prefix="p", version="2")]))
    assert sent == [[(b"GET", b"p:2:number:a"), (b"SCARD", b"p:2:members:a")]]


def test_preview_shows_the_first_round() -> None:
    assert [wire.arguments for wire in preview(Number("a").set(3))] == [(b"SET", b"number:a", b"3")]


def test_map_changes_the_value_and_attempt_returns_the_failure() -> None:
    assert drive(Number("a").get().map(str), [b"3"])[1] == "3"
    assert isinstance(drive(Number("a").get().attempt(), [refused()])[1], ServerRefusedError)
    assert drive(Number("a").get().attempt(), [b"3"])[1] == 3


def test_attempt_lets_bugs_through() -> None:
    with pytest.raises(ZeroDivisionError):
        drive(Number("a").get().map(lambda _: 1 / 0).attempt(), [b"3"])


def test_gather_of_commands_is_one_round_in_their_order() -> None:
    sent, value = drive(
        gather(Number("a").get(), Members("a").members(), Number("b").get()), [b"1", [b"x"], None]
    )
    assert sent == [[(b"GET", b"number:a"), (b"SMEMBERS", b"members:a"), (b"GET", b"number:b")]]
    assert value == (1, {"x"}, None)


def test_gather_of_nothing_is_nothing() -> None:
    assert drive(gather_list([]), []) == ([[]], [])


def test_gather_list_gives_a_list() -> None:
    assert drive(gather_list(Number(name).get() for name in "ab"), [b"1", b"2"])[1] == [1, 2]


def steps_of(*names: str) -> Call[list[int | None]]:
    """Reads one key after another, a round each."""

    def steps() -> Generator[Call[Any], Any, list[int | None]]:
        found = []
        for name in names:
            found.append((yield Number(name).get()))  # noqa: PERF401  # a comprehension cannot yield
        return found

    return Procedure(steps, "steps")


def get(name: str) -> tuple[bytes, bytes]:
    return b"GET", f"number:{name}".encode()


def test_gather_runs_longer_calls_in_step() -> None:
    call = gather(steps_of("a", "b", "c"), Number("x").get(), steps_of("d", "e"))
    sent, value = drive(call, [b"1", b"9", b"4"], [b"2", b"5"], [b"3"])
    assert sent == [[get("a"), get("x"), get("d")], [get("b"), get("e")], [get("c")]]
    assert value == ([1, 2, 3], 9, [4, 5])


def test_gather_runs_the_others_to_their_end_before_it_raises() -> None:
    call = gather(steps_of("a", "b"), steps_of("c", "d"))
    rounds = call.rounds(Context())
    next(rounds)
    second = rounds.send([refused(), b"3"])
    assert [wire.arguments for wire in second] == [get("d")]
    with pytest.raises(ServerRefusedError):
        rounds.send([b"4"])


def test_gather_raises_the_first_error_and_attempt_keeps_the_others() -> None:
    wrong = WrongTypeError(b"members:a", "members:<id>", "a set", "a list")
    with pytest.raises(ServerRefusedError):
        drive(gather(Number("a").get(), Members("a").size()), [refused(), wrong])
    _, (first, second) = drive(gather(Number("a").get().attempt(), Number("b").get()), [refused(), b"2"])
    assert isinstance(first, ServerRefusedError)
    assert second == 2


def test_gathers_nest_without_more_rounds() -> None:
    call = gather(gather(Number("a").get(), Number("b").get()), gather_list([Number("c").get()]))
    sent, value = drive(call, [b"1", b"2", b"3"])
    assert len(sent) == 1
    assert value == ((1, 2), [3])


def test_a_ready_value_needs_no_command() -> None:
    assert drive(Members("a").add(), []) == ([[]], 0)
    assert drive(gather(Ready(1), Number("a").get()), [b"2"])[1] == (1, 2)


def test_atomic_is_one_transaction() -> None:
    (wire,) = preview(atomic(Left().set(1), Left().get()))
    assert inside(wire) == [(b"SET", b"{t}:left", b"1"), (b"GET", b"{t}:left")]
    _, value = drive(atomic(Left().set(1), Left().get()), [Transacted([b"OK", b"1"])])
    assert value == (True, 1)


def test_atomic_takes_gathered_calls() -> None:
    call = atomic(Left().set(1), gather(Left().get(), Left().ttl()))
    (wire,) = preview(call)
    assert [command[0] for command in inside(wire)] == [b"SET", b"GET", b"PTTL"]
    assert drive(call, [Transacted([b"OK", b"1", -1])])[1] == (True, (1, None))


def test_a_write_that_renews_its_expiry_keeps_doing_so_inside_atomic() -> None:
    call = atomic(Tally("a").add(), Tally("a").get())
    (wire,) = preview(call)
    assert inside(wire)[:2] == [(b"INCRBY", b"tally:a", b"1"), (b"PEXPIRE", b"tally:a", 5000)]
    assert drive(call, [Transacted([4, 1, b"4"])])[1] == (4, 4)


def test_atomic_may_be_sent_twice_only_if_all_of_it_may() -> None:
    (repeatable,) = preview(atomic(Left().set(1), Left().delete()))
    (once,) = preview(atomic(Left().set(1), Left().take()))
    assert repeatable.operation.effect is Effect.REPEATABLE
    assert once.operation.effect is Effect.ONCE


def test_atomic_refuses_several_slots_before_anything_is_sent() -> None:
    with pytest.raises(CrossSlotError, match="number:a"):
        preview(atomic(Number("a").set(1), Number("b").set(2)))


def test_atomic_spreads_on_request_by_slot_on_a_cluster_only() -> None:
    call = atomic(Number("a").set(1), Number("b").set(2), spread=True)
    assert len(preview(call)) == 1
    sent, value = drive(call, [Transacted([b"OK"]), Transacted([None])], context=Context(sharded=True))
    assert len(sent[0]) == 2
    assert value == (True, False)


def test_atomic_refuses_calls_of_several_rounds_before_anything_is_sent() -> None:
    for call in (steps_of("a"), steps_of("a").map(len), gather(Left().get(), steps_of("a"))):
        with pytest.raises(UsageError, match="cannot be part of atomic"):
            preview(atomic(Left().set(1), call))


def test_an_error_of_the_transaction_is_raised_for_each_call_in_it() -> None:
    _, (first, second) = drive(
        atomic(Left().set(1).attempt(), Left().get().attempt()),
        [ServerRefusedError("EXEC", b"{t}:left", "EXECABORT")],
    )
    assert isinstance(first, ServerRefusedError)
    assert isinstance(second, ServerRefusedError)


def test_a_procedure_gets_values_sent_in_and_errors_thrown_in() -> None:
    def steps() -> Generator[Call[Any], Any, str]:
        first = yield Number("a").get()
        try:
            yield Number("b").get()
        except ServerRefusedError:
            return f"{first}, then refused"
        return "not refused"

    assert drive(Procedure(steps, "careful"), [b"1"], [refused()])[1] == "1, then refused"
    assert drive(Procedure(steps, "careful"), [b"1"], [b"2"])[1] == "not refused"


def test_an_error_that_a_procedure_does_not_catch_ends_it() -> None:
    with pytest.raises(ServerRefusedError):
        drive(steps_of("a", "b"), [refused()])


def test_a_procedure_may_yield_any_call() -> None:
    def steps() -> Generator[Call[Any], Any, int]:
        pair = yield gather(Number("a").get(), steps_of("b"))
        yield Pause(0.01)
        return int(pair[0]) + int(pair[1][0])

    sent, value = drive(Procedure(steps, "sum"), [b"1", b"2"], [None])
    assert value == 3
    assert sent == [[get("a"), get("b")], [(0.01,)]]


def test_a_procedure_can_be_written_as_a_function() -> None:
    @procedure
    def doubled(name: str) -> Steps[int]:
        """Reads and doubles."""
        found = yield Number(name).get()
        return 2 * int(found)

    assert drive(doubled("a"), [b"4"])[1] == 8
    assert (doubled.__name__, doubled.__doc__) == ("doubled", "Reads and doubles.")


def test_a_procedure_starts_from_the_beginning_in_every_run() -> None:
    @procedure
    def doubled(name: str) -> Steps[int]:
        found = yield Number(name).get()
        return 2 * int(found)

    call = doubled("a")
    assert [drive(call, [b"4"])[1], drive(call, [b"5"])[1]] == [8, 10]


def test_a_procedure_gets_the_context_without_a_round_trip() -> None:
    @procedure
    def named(name: str) -> Steps[bytes]:
        context = yield bound_context()
        return bytes(context.name(Number(name)))

    sent, value = drive(named("a"))
    assert (sent, value) == ([], b"number:a")


def test_calls_print_what_they_send() -> None:
    assert repr(Number("a").set(3)) == "<SET Number(id='a') 3>"
    assert repr(Number("a").get()) == "<GET Number(id='a')>"
    assert repr(gather(Number("a").get(), Ready(1))).startswith("gather(<GET")


def test_wires_carry_what_the_engine_needs() -> None:
    (wire,) = preview(Number("a").get())
    assert isinstance(wire, Wire)
    assert (wire.name, wire.source, wire.operation.effect) == (b"number:a", Number, Effect.READ)


def test_erasing_names_each_part_by_its_variables_whatever_their_order() -> None:
    seats = Keyspace("seats", "Who sits where.")
    seat = key_class(seats, "seat:<row>:<place>", {"row": Id, "place": Id})
    key_class(seats, "seat:<row>:<place>:guest", {"place": Id, "row": Id}, part_of=seat)
    sent, there = drive(erase(seat("1", "b")), [1], [], [[1]])
    assert there is True
    assert {b"seat:1:b", b"seat:1:b:guest"} <= set(sent[2][0])


def test_a_key_without_variables_is_erased_beside_relations_of_others() -> None:
    shop = Keyspace("shop", "Prices and shelves.")
    total = key_class(shop, "total", {})
    shelf = key_class(shop, "shelf:<book>", {"book": Id}, base=Value[Id])
    books = key_class(shop, "books:<shelf>", {"shelf": Id}, base=Set[Id])
    many_to_one(shelf, inverse=books)
    sent, there = drive(erase(total()), [0], [], [[1]])
    assert there is False
    assert b"total" in sent[2][0]


class Fact(msgspec.Struct):
    """What a record holds."""

    text: str


class Facts(Record[Fact], key="facts:<id>", space=space):
    """A record."""

    id: Id


PLAIN: list[Call[Any]] = [
    Number("a").get(),
    Number("a").set(1),
    Members("a").add("b"),
    Members("b").members(),
    Members("a").union(Members("a")),
    Facts("a").write(Fact("b")),
    Members("a").memory(),
]
EXPIRING: list[Call[Any]] = [Tally("a").add(), Tally("a").get()]
REPLACING: list[Call[Any]] = [Facts("a").put(Fact("b")), Facts("b").put(Fact("c"))]


@pytest.mark.parametrize(
    "calls", [PLAIN, PLAIN[2:4], EXPIRING, PLAIN + EXPIRING, REPLACING, PLAIN + REPLACING]
)
@pytest.mark.parametrize(
    "context",
    [
        Context([space.bind(prefix="test")]),
        Context([space.bind(expiry={Members: expires_in(timedelta(days=1))})], sharded=True),
    ],
)
def test_commands_are_lowered_together_as_one_by_one(calls: list[Any], context: Context) -> None:
    together = lowered(calls, context, set(map(type, calls)))
    one_by_one = [call.lower(context) for call in calls]
    assert list(map(type, together)) == list(map(type, one_by_one))
    assert list(map(msgspec.structs.astuple, together)) == list(map(msgspec.structs.astuple, one_by_one))
