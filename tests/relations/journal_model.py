"""A model of the journal's protocol, and an explicit-state checker that explores every interleaving of it.

The model has the steps of `keywright.keyspace.commits.journal` under their names: each wire of a round trip
is one event on one server. Processes run the same steps as the code, in generators that read like it; a test
compares both. Between any two events

- any other process may act, so a process may sleep as long as it likes and wake up after it was undone;
- a process may crash: commands that it has sent may still arrive, later or never;
- a connection may break: the command or its reply is lost, a command that is safe to repeat is sent again
  while the first copy may still arrive, and the outcome of one that is not is unknown;
- a node may be away, so that a command is not sent at all.

Crashes and broken connections are limited in number by a `Setting`. Every state is checked: see `Violation`.

    python tests/relations/journal_model.py [small | large]
"""

from __future__ import annotations

import gc
import sys
import time
from collections.abc import Callable, Generator, Iterator
from typing import Any, Generic, NamedTuple, TypeAlias, TypeVar

import msgspec

T = TypeVar("T")

UNKNOWN, AWAY, REFUSED, BUSY, OK = "unknown", "away", "refused", "busy", "ok"
"""Replies: OutcomeUnknownError, ConnectionLostError, a check failed, another intent's marker, done."""


class Violation(AssertionError):  # noqa: N818  # what is violated, not an error of the program
    """An invariant that does not hold in a reachable state, with the events that lead there."""

    def __init__(self, invariant: str, trace: list[str] | None = None) -> None:
        self.invariant = invariant
        self.trace = trace or []
        super().__init__("\n  ".join([invariant, *self.trace]))


class Wire(NamedTuple):
    """One command: a step of the protocol on the journal (part -1) or on one part of the keys."""

    step: str
    part: int = -1
    intent: int = 0
    extra: tuple[Any, ...] = ()
    effect: str = "repeatable"


class Servers(NamedTuple):
    """What is stored, and below it what only the invariants look at."""

    journal: tuple[str, ...]  # by intent: "", "P", "C" or "A"
    values: tuple[tuple[int, ...], ...]  # by part: the intents that wrote it, in order
    held: tuple[int, ...]  # by part: the field x of its marker
    shared: tuple[frozenset[int], ...]  # by part: the other fields
    plans: tuple[tuple[int, ...], ...]  # by intent: what its checks expect, for each exclusive part
    committed: frozenset[int] = frozenset()
    zombies: frozenset[int] = frozenset()  # prepared when they were not undecided any more


class Then(NamedTuple):
    """The next program of a process: what it did before does not matter any more."""

    program: str
    arguments: tuple[Any, ...]


class End(NamedTuple):
    """The end of a process: its result, and the intents it leaves settled if nothing went wrong."""

    result: str
    intents: tuple[int, ...] = ()
    seen: tuple[Any, ...] = ()


Program: TypeAlias = Generator[list[Wire], tuple[Any, ...], Then | End]


class Process(NamedTuple):
    """A process: its program, the replies so far, and those of the round trip under way."""

    program: str
    arguments: tuple[Any, ...]
    history: tuple[tuple[Any, ...], ...] = ()
    replies: tuple[Any, ...] = ()  # None where a wire has none yet


class Setting(NamedTuple):
    """What is explored: the processes, the parts of a commit (True: exclusive), and how much may go wrong."""

    name: str
    processes: tuple[str, ...]
    parts: tuple[bool, ...] = (True, False)
    crashes: int = 0
    losses: int = 0
    attempts: int = 1


class Protocol:
    """The steps of a commit, as `journal` takes them. A mutation overrides one of them."""

    def __init__(self, setting: Setting) -> None:
        self.setting = setting
        self.parts = range(len(setting.parts))
        self.exclusive = [part for part in self.parts if setting.parts[part]]
        self.intents = setting.attempts * (len(setting.processes) + 1)  # the last are the judge's
        self._memo: dict[tuple[Any, ...], list[Wire] | Then | End] = {}

    # The steps: one round trip each.

    def put(self, intent: int, expected: tuple[int, ...]) -> list[Wire]:
        return [Wire("put", intent=intent, extra=expected, effect="once")]

    def prepare(self, intent: int) -> list[Wire]:
        return [Wire("prepare", part, intent, effect="once") for part in self.parts]

    def decide(self, intent: int) -> list[Wire]:
        return [Wire("decide", intent=intent, extra=("P", "C"), effect="once")]

    def look_up(self, intent: int) -> list[Wire]:
        return [Wire("get_intent", intent=intent, effect="read")]

    def apply_shared(self, intent: int) -> list[Wire]:
        return [Wire("apply", part, intent) for part in self.parts if part not in self.exclusive]

    def apply_exclusive(self, intent: int) -> list[Wire]:
        return [Wire("apply", part, intent) for part in self.exclusive]

    def drop_committed(self, intent: int) -> list[Wire]:
        return [Wire("decide", intent=intent, extra=("C", ""))]

    def abort(self, intent: int) -> list[Wire]:
        return [Wire("decide", intent=intent, extra=("P", "A"))]

    def release(self, intent: int) -> list[Wire]:
        return [Wire("release", part, intent) for part in self.parts]

    def drop_aborted(self, intent: int) -> list[Wire]:
        return [Wire("decide", intent=intent, extra=("A", ""))]

    def get_marker(self, part: int) -> list[Wire]:
        return [Wire("get_marker", part, effect="read")]

    def clear_marker(self, part: int, intent: int) -> list[Wire]:
        return [Wire("clear_marker", part, intent)]

    def in_one_script(self, part: int, intent: int, expected: tuple[int, ...]) -> list[Wire]:
        return [Wire("one_script", part, intent, expected, effect="once")]

    # The programs: `_across_slots`, `_commit_intent`, `finish`, `undo`, `settle_marker`, `settle`, `settled`.

    def writer(self, number: int) -> Program:
        """Read, then commit: what `optimistic` does with its first attempt."""
        found = yield [Wire("read", part, effect="read") for part in self.exclusive]
        if AWAY in found:
            return End(AWAY)
        return Then("across_slots", (number, 0, tuple(value[-1] for value in found)))

    def across_slots(self, number: int, attempt: int, expected: tuple[int, ...]) -> Program:
        intent = self.intent_of(number, attempt)
        [reply] = yield self.put(intent, expected)
        if reply != OK:
            return End(AWAY) if reply == AWAY else Then("refused", (number, attempt, expected, (), True))
        prepared = yield self.prepare(intent)
        if AWAY in prepared:
            return End(AWAY)
        if any(reply != OK for reply in prepared):
            busy = tuple(part for part, reply in zip(self.parts, prepared, strict=True) if reply == BUSY)
            return Then("refused", (number, attempt, expected, busy, UNKNOWN in prepared))
        return Then("decided", (number, attempt, expected))

    def refused(
        self, number: int, attempt: int, expected: tuple[int, ...], busy: tuple[int, ...], unknown: bool
    ) -> Program:
        intent = self.intent_of(number, attempt)
        if (yield from self.undo(intent)) == AWAY:
            return End(AWAY)
        if not unknown:
            for part in busy:
                if (yield from self.settle_marker(part)) == AWAY:
                    return End(AWAY)
            if not busy:
                return End(REFUSED, (intent,))
        return self.again(number, attempt, expected)

    def decided(self, number: int, attempt: int, expected: tuple[int, ...]) -> Program:
        intent = self.intent_of(number, attempt)
        state = yield from self.commit_intent(intent)
        if state in (AWAY, UNKNOWN):
            return End(state)
        if state != "C":
            if (yield from self.undo(intent)) == AWAY:
                return End(AWAY)
            return self.again(number, attempt, expected)
        return Then("finishing", (intent,))

    def finishing(self, intent: int) -> Program:
        return End("done" if (yield from self.finish(intent)) == OK else "unfinished", (intent,))

    def again(self, number: int, attempt: int, expected: tuple[int, ...]) -> Then | End:
        if attempt + 1 < self.setting.attempts:
            return Then("across_slots", (number, attempt + 1, expected))
        return End(BUSY, (self.intent_of(number, attempt),))

    def commit_intent(self, intent: int) -> Generator[list[Wire], tuple[Any, ...], str]:
        [state] = yield self.decide(intent)
        if state == UNKNOWN:
            [state] = yield self.look_up(intent)
            if state == "P":
                [state] = yield self.decide(intent)
            if state in ("", AWAY):
                return UNKNOWN
        return str(state)

    def finish(self, intent: int) -> Generator[list[Wire], tuple[Any, ...], str]:
        for step in (self.apply_shared, self.apply_exclusive):
            wires = step(intent)
            if wires and AWAY in (yield wires):
                return AWAY
        yield self.drop_committed(intent)
        return OK

    def undo(self, intent: int) -> Generator[list[Wire], tuple[Any, ...], str]:
        """Return "C" if it was committed after all."""
        [state] = yield self.abort(intent)
        if state in ("C", AWAY):
            return str(state)
        for step in (self.release, self.drop_aborted):
            wires = step(intent)
            if wires and AWAY in (yield wires):
                return AWAY
        return "A"

    def settle_marker(self, part: int) -> Generator[list[Wire], tuple[Any, ...], str]:
        [intent] = yield self.get_marker(part)
        if intent in (0, AWAY):
            return AWAY if intent == AWAY else OK
        [state] = yield self.look_up(intent)
        if state == "":
            [reply] = yield self.clear_marker(part, intent)
            return AWAY if reply == AWAY else OK
        if state == AWAY:
            return AWAY
        return (yield from self.settle(intent, state))

    def settle(self, intent: int, state: str) -> Generator[list[Wire], tuple[Any, ...], str]:
        if state == "C":
            return (yield from self.finish(intent))
        if state == "P":
            [young] = yield [Wire("clock", effect="read")]
            if young:
                return "waiting"
        if (yield from self.undo(intent)) == "C":
            return (yield from self.finish(intent))
        return OK

    def settled(self, part: int) -> Generator[list[Wire], tuple[Any, ...], Any]:
        """A relation read, as one attempt of `settled` does it."""
        [intent] = yield self.get_marker(part)
        [value] = yield [Wire("read", part, effect="read")]
        if AWAY in (intent, value):
            return AWAY
        if intent == 0:
            return value
        if (yield from self.settle_marker(part)) == AWAY:
            return AWAY
        [state] = yield self.look_up(intent)
        return value if state == "P" else None

    def reader(self) -> Program:
        """Read both sides of a relation, the one that is written first before the other."""
        if self.setting.parts[-1]:
            first = yield from self.settled(self.parts[-1])
        else:
            [first] = yield [Wire("read", self.parts[-1], effect="read")]
        return End(AWAY) if first in (AWAY, None) else Then("reader_of_the_other", (first,))

    def reader_of_the_other(self, first: tuple[int, ...]) -> Program:
        second = yield from self.settled(0)
        return End(AWAY) if second in (AWAY, None) else End("read", seen=(first, second))

    def recoverer(self) -> Program:
        """Settle one intent that is in the journal, whichever it is."""
        [found] = yield [Wire("list_intents", effect="read")]
        return End("recovered") if found in ((), AWAY) else Then("recovering", found)

    def recovering(self, intent: int, state: str) -> Program:
        yield from self.settle(intent, state)
        return End("recovered")

    def one_slot_writer(self, number: int) -> Program:
        """A commit on one exclusive part alone: `_in_one_slot`."""
        [value] = yield [Wire("read", 0, effect="read")]
        if value == AWAY:
            return End(AWAY)
        intent = self.intent_of(number, 0)
        [reply] = yield self.in_one_script(0, intent, (value[-1],))
        if reply == BUSY:
            yield from self.settle_marker(0)
        return End("done" if reply == OK else REFUSED if reply in (BUSY, REFUSED) else str(reply))

    def intent_of(self, number: int, attempt: int) -> int:
        return 1 + number * self.setting.attempts + attempt

    def first_servers(self) -> Servers:
        count, parts = 1 + self.intents, len(self.setting.parts)
        nothing = frozenset[int]()
        return Servers(("",) * count, ((0,),) * parts, (0,) * parts, (nothing,) * parts, ((),) * count)

    def action(self, process: Process) -> list[Wire] | Then | End:
        """Return the wires of a process's round trip, or what follows if it has all replies it needs."""
        key = process[:3]
        if key not in self._memo:
            program: Program = getattr(self, process.program)(*process.arguments)
            try:
                wires = next(program)
                for replies in process.history:
                    wires = program.send(replies)
                self._memo[key] = wires
            except StopIteration as stop:
                self._memo[key] = stop.value
        return self._memo[key]


def execute(protocol: Protocol, servers: Servers, wire: Wire) -> list[tuple[Servers, Any]]:
    """Execute one command. Return the possible servers after it, each with the reply."""
    return _SCRIPTS[wire.step](protocol, servers, wire)


def _put(protocol: Protocol, servers: Servers, wire: Wire) -> list[tuple[Servers, Any]]:
    if servers.journal[wire.intent]:
        return [(servers, OK)]
    expected = tuple(each for each in wire.extra if isinstance(each, int))
    plans = _with(servers.plans, wire.intent, expected)
    if "unstored" in wire.extra:
        return [(servers._replace(plans=plans), OK)]
    return [(servers._replace(journal=_with(servers.journal, wire.intent, "P"), plans=plans), OK)]


def _decide(protocol: Protocol, servers: Servers, wire: Wire) -> list[tuple[Servers, Any]]:
    state, then, *whatever = wire.extra
    found = servers.journal[wire.intent]
    if found != state and not (whatever and found):
        return [(servers, found)]
    if then == "C":
        servers = servers._replace(committed=servers.committed | {wire.intent})
    return [(servers._replace(journal=_with(servers.journal, wire.intent, then)), then)]


def _prepare(protocol: Protocol, servers: Servers, wire: Wire) -> list[tuple[Servers, Any]]:
    part, intent = wire.part, wire.intent
    if part in protocol.exclusive:
        if servers.held[part] not in (0, intent) and "occupied" not in wire.extra:
            return [(servers, BUSY)]
        expected = servers.plans[intent][protocol.exclusive.index(part)]
        if servers.values[part][-1] != expected and "unchecked" not in wire.extra:
            return [(servers, REFUSED)]
        marked = servers._replace(held=_with(servers.held, part, intent))
    else:
        marked = servers._replace(shared=_with(servers.shared, part, servers.shared[part] | {intent}))
    if servers.journal[intent] != "P":
        marked = marked._replace(zombies=marked.zombies | {intent})
    return [(marked, OK)]


def _marked(protocol: Protocol, servers: Servers, wire: Wire) -> bool:
    if wire.part in protocol.exclusive:
        return servers.held[wire.part] == wire.intent
    return wire.intent in servers.shared[wire.part]


def _apply(protocol: Protocol, servers: Servers, wire: Wire) -> list[tuple[Servers, Any]]:
    part, intent = wire.part, wire.intent
    if not _marked(protocol, servers, wire) and "unmarked" not in wire.extra:
        return [(servers, OK)]
    if intent not in servers.committed:
        raise Violation("an undecided intent was carried out")
    if intent in servers.values[part]:
        raise Violation("an intent was applied twice")
    if part in protocol.exclusive:
        expected = servers.plans[intent][protocol.exclusive.index(part)]
        if servers.values[part][-1] != expected:
            raise Violation("an update was lost: a key changed between its check and its write")
    written = servers._replace(values=_with(servers.values, part, (*servers.values[part], intent)))
    return [(written if "keep" in wire.extra else _unmarked(protocol, written, wire), OK)]


def _unmarked(protocol: Protocol, servers: Servers, wire: Wire) -> Servers:
    part, intent = wire.part, wire.intent
    if part not in protocol.exclusive:
        return servers._replace(shared=_with(servers.shared, part, servers.shared[part] - {intent}))
    return servers._replace(held=_with(servers.held, part, 0)) if servers.held[part] == intent else servers


def _release(protocol: Protocol, servers: Servers, wire: Wire) -> list[tuple[Servers, Any]]:
    return [(_unmarked(protocol, servers, wire), OK)]


def _one_script(protocol: Protocol, servers: Servers, wire: Wire) -> list[tuple[Servers, Any]]:
    part = wire.part
    if servers.held[part] and "occupied" not in wire.extra:
        return [(servers, BUSY)]
    if servers.values[part][-1] != wire.extra[0]:
        return [(servers, REFUSED)]
    return [(servers._replace(values=_with(servers.values, part, (*servers.values[part], wire.intent))), OK)]


def _list_intents(protocol: Protocol, servers: Servers, wire: Wire) -> list[tuple[Servers, Any]]:
    found = [(servers, (intent, state)) for intent, state in enumerate(servers.journal) if state]
    return list(found) or [(servers, ())]


_Script: TypeAlias = Callable[[Protocol, Servers, Wire], list[tuple[Servers, Any]]]
_SCRIPTS: dict[str, _Script] = {
    "put": _put,
    "prepare": _prepare,
    "decide": _decide,
    "apply": _apply,
    "release": _release,
    "clear_marker": _release,
    "one_script": _one_script,
    "list_intents": _list_intents,
    "get_intent": lambda _, servers, wire: [(servers, servers.journal[wire.intent])],
    "get_marker": lambda _, servers, wire: [(servers, servers.held[wire.part])],
    "read": lambda _, servers, wire: [(servers, servers.values[wire.part])],
    "clock": lambda _, servers, __: [(servers, True), (servers, False)],
}


def _with(items: tuple[Any, ...], index: int, item: Any) -> tuple[Any, ...]:
    return (*items[:index], item, *items[index + 1 :])


class Explored(NamedTuple):
    """The result of a run: how many states and events there are, and in how many states all had ended."""

    setting: str
    states: int
    events: int
    ends: int
    results: frozenset[str]
    seconds: float

    def __str__(self) -> str:
        return (
            f"{self.setting}: {self.states:,} states, {self.events:,} events, {self.ends:,} ends, "
            f"{self.seconds:.1f} s"
        )


class Table(Generic[T]):
    """Objects by number, so that a state is a few small integers."""

    def __init__(self) -> None:
        self.items: list[T] = []
        self._numbers: dict[T, int] = {}

    def number(self, item: T) -> int:
        found = self._numbers.setdefault(item, len(self.items))
        if found == len(self.items):
            self.items.append(item)
        return found


packed = msgspec.msgpack.encode  # a state in a few bytes


class State(NamedTuple):
    """A state of everything, in the numbers of the checker's tables."""

    servers: int
    processes: tuple[int, ...]  # -1 is a dead one
    late: tuple[int, ...]
    crashes: int
    losses: int


class Event(NamedTuple):
    """What leads from one state to the next: a process, if it is one's, its wire, and what became of it."""

    process: int | None
    wire: int | None
    outcome: Any


class Checker:
    """Explores every state of one setting, depth first."""

    def __init__(self, setting: Setting, protocol: type[Protocol] = Protocol) -> None:
        self.setting = setting
        self.protocol = protocol(setting)
        self._servers: Table[Servers] = Table()
        self._processes: Table[Process | End] = Table()
        self._wires: Table[Wire] = Table()
        self._executed: dict[tuple[int, int], list[tuple[int, Any]]] = {}
        self._next: dict[tuple[int, int, Any], int] = {}
        self._due: dict[int, list[tuple[int, int, Wire]]] = {}
        self._judged: dict[tuple[int, tuple[int, ...]], Servers] = {}

    def run(self) -> Explored:
        """Raise Violation if an invariant does not hold in a reachable state."""
        gc.disable()  # it would look through all states again and again, and there are no cycles
        try:
            return self._explored()
        finally:
            gc.enable()

    def _explored(self) -> Explored:
        started = time.perf_counter()
        first = self.first_state()
        seen = {packed(first)}
        path: list[tuple[Event | None, Iterator[tuple[Event, State]]]] = [(None, self.successors(first))]
        events = ends = 0
        results: set[str] = set()
        while path:
            event = None
            try:
                event, state = next(path[-1][1])
                events += 1
                key = packed(state)
                if key in seen:
                    continue
                seen.add(key)
                if not any(each >= 0 and self._due_wires(each) for each in state.processes):
                    ends += 1
                    results |= self._judge(state)
            except StopIteration:
                path.pop()
                continue
            except Violation as violation:
                trace = [self._told(step) for step, _ in path[1:]]
                raise Violation(
                    violation.invariant, [*trace, *([self._told(event)] if event else [])]
                ) from None
            path.append((event, self.successors(state)))
        seconds = time.perf_counter() - started
        return Explored(self.setting.name, len(seen), events, ends, frozenset(results), seconds)

    def first_state(self) -> State:
        processes = [
            Process(program, (number,) if program in ("writer", "one_slot_writer") else ())
            for number, program in enumerate(self.setting.processes)
        ]
        return State(
            self._servers.number(self.protocol.first_servers()),
            tuple(self._processes.number(self.begun(process)) for process in processes),
            (),
            self.setting.crashes,
            self.setting.losses,
        )

    def successors(self, state: State) -> Iterator[tuple[Event, State]]:
        for number, process in enumerate(state.processes):
            # What a clock says depends on nothing, and nothing on when it is asked: no other order matters.
            if process >= 0 and [command.step for _, _, command in self._due_wires(process)] == ["clock"]:
                yield from self._steps(state, number, *self._due_wires(process)[0])
                return
        for number, process in enumerate(state.processes):
            due = self._due_wires(process) if process >= 0 else ()
            for index, wire, command in due:
                yield from self._steps(state, number, index, wire, command)
            if due and state.crashes:
                sent = [wire for _, wire, command in due if command.effect != "read"]
                dead = _with(state.processes, number, -1)
                late = tuple(sorted((*state.late, *sent)))
                yield (
                    Event(number, None, "crashes"),
                    State(state.servers, dead, late, state.crashes - 1, state.losses),
                )
        for wire in dict.fromkeys(state.late):
            left = list(state.late)
            left.remove(wire)
            for servers, reply in self._execute(state.servers, wire):
                yield Event(None, wire, reply), state._replace(servers=servers, late=tuple(left))

    def _steps(
        self, state: State, number: int, index: int, wire: int, command: Wire
    ) -> Iterator[tuple[Event, State]]:
        process = state.processes[number]
        outcomes = self._execute(state.servers, wire)
        for servers, reply in outcomes:
            after = self._answered(state._replace(servers=servers), number, process, index, reply)
            yield Event(number, wire, reply), after
        if not state.losses or command.step == "clock":
            return
        poorer = state._replace(losses=state.losses - 1)
        yield Event(number, wire, AWAY), self._answered(poorer, number, process, index, AWAY)
        if command.effect == "read":
            return
        in_flight = poorer._replace(late=tuple(sorted((*state.late, wire))))
        for lost in (in_flight, *(poorer._replace(servers=servers) for servers, _ in outcomes)):
            if command.effect == "once":
                yield Event(number, wire, UNKNOWN), self._answered(lost, number, process, index, UNKNOWN)
            else:
                yield Event(number, wire, "lost, sent again"), lost

    def _execute(self, servers: int, wire: int) -> list[tuple[int, Any]]:
        key = servers, wire
        if key not in self._executed:
            found = execute(self.protocol, self._servers.items[servers], self._wires.items[wire])
            self._executed[key] = [(self._servers.number(after), reply) for after, reply in found]
        return self._executed[key]

    def _due_wires(self, process: int) -> list[tuple[int, int, Wire]]:
        """Return the commands that a process waits for: place, number, command. None if it has ended."""
        if process not in self._due:
            found = self._processes.items[process]
            wires = [] if isinstance(found, End) else self.wires_of(found)
            self._due[process] = [
                (index, self._wires.number(wire), wire)
                for index, wire in enumerate(wires)
                if isinstance(found, Process) and found.replies[index] is None
            ]
        return self._due[process]

    def wires_of(self, process: Process) -> list[Wire]:
        wires = self.protocol.action(process)
        assert isinstance(wires, list)
        return wires

    def _answered(self, state: State, number: int, process: int, index: int, reply: Any) -> State:
        key = process, index, reply
        if key not in self._next:
            found = self._processes.items[process]
            assert isinstance(found, Process)
            replies = _with(found.replies, index, reply)
            after: Process | End = found._replace(replies=replies)
            if None not in replies:
                after = self.begun(found._replace(history=(*found.history, replies)))
            self._next[key] = self._processes.number(after)
        following = self._next[key]
        end = self._processes.items[following]
        if isinstance(end, End):
            self._check_end(end, state)
        return state._replace(processes=_with(state.processes, number, following))

    def begun(self, process: Process) -> Process | End:
        """Return a process with its next round trip before it."""
        while True:
            action = self.protocol.action(process)
            if isinstance(action, End):
                return action
            if isinstance(action, Then):
                process = Process(action.program, action.arguments)
            elif action:
                return process._replace(replies=(None,) * len(action))
            else:
                process = process._replace(history=(*process.history, ()))

    def _check_end(self, end: End, state: State) -> None:
        if end.result == "read":
            first, second = end.seen
            if not set(first) <= set(second):
                raise Violation("a reader saw one side of a commit and then the other before it")
        if end.result in ("done", REFUSED, BUSY) and state.losses == self.setting.losses:
            servers = self._servers.items[state.servers]
            if any(servers.journal[intent] or intent in _marked_by(servers) for intent in end.intents):
                raise Violation("a process that ended by itself left an intent or a marker")

    def _judge(self, state: State) -> set[str]:
        """Recover, let all that is late arrive, recover again, and write once more. Return the results."""
        key = state.servers, state.late
        if key not in self._judged:
            servers = self._recovered(self._servers.items[state.servers], "after recovery")
            for wire in state.late:
                [(servers, _)] = execute(self.protocol, servers, self._wires.items[wire])
            servers = self._judged[key] = self._recovered(servers, "after late commands")
            self._check_writable(servers)
        results = set()
        for number, process in enumerate(state.processes):
            end = self._processes.items[process] if process >= 0 else None
            if isinstance(end, End):
                results.add(end.result)
                if self.setting.processes[number] == "writer":
                    self._check_report(number, end.result, self._judged[key])
        return results

    def _recovered(self, servers: Servers, when: str) -> Servers:
        for intent, found in enumerate(servers.journal):
            if found:
                servers, _ = self._driven(servers, Process("recovering", (intent, found)))
        if any(servers.journal):
            raise Violation(f"an intent is left {when}")
        if _marked_by(servers) - servers.zombies:
            raise Violation(f"a marker is left {when}")
        if len({tuple(filter(self._spans, value)) for value in servers.values}) > 1:
            raise Violation(f"one side was written and not the other, or in another order, {when}")
        return servers

    def _spans(self, intent: int) -> bool:
        """Return whether an intent is one of a commit across slots."""
        number = (intent - 1) // self.setting.attempts
        return intent > 0 and self.setting.processes[number] == "writer"

    def _check_report(self, number: int, result: str, servers: Servers) -> None:
        own = {self.protocol.intent_of(number, attempt) for attempt in range(self.setting.attempts)}
        applied = own & {*servers.values[0]}
        if result in ("done", "unfinished") and not applied:
            raise Violation("a commit was reported as applied and was not")
        if result in (AWAY, REFUSED, BUSY) and applied:
            raise Violation("a commit was reported as not applied and was")
        if len(applied) > 1:
            raise Violation("one call was applied twice")

    def _check_writable(self, servers: Servers) -> None:
        """Write by a process of its own, which may meet markers without an intent."""
        for _ in range(1 + len(self.setting.parts)):
            expected = tuple(servers.values[part][-1] for part in self.protocol.exclusive)
            judge = Process("across_slots", (len(self.setting.processes), 0, expected))
            servers, end = self._driven(servers, judge)
            if end.result == "done":
                return
        raise Violation("keys cannot be written any more")

    def _driven(self, servers: Servers, begun: Process) -> tuple[Servers, End]:
        """Run one process to its end without interruption; everything is old by its clock."""
        process = self.begun(begun)
        while isinstance(process, Process):
            replies = []
            for wire in self.wires_of(process):
                servers, reply = execute(self.protocol, servers, wire)[-1]
                replies.append(reply)
            process = self.begun(process._replace(history=(*process.history, tuple(replies))))
        return servers, process

    def _told(self, event: Event | None) -> str:
        assert event is not None
        who = "late" if event.process is None else f"process {event.process}"
        if event.wire is None:
            return f"{who} {event.outcome}"
        wire = self._wires.items[event.wire]
        place = "the journal" if wire.part < 0 else f"part {wire.part}"
        return f"{who}: {wire.step} {wire.intent or ''} {wire.extra or ''} on {place} -> {event.outcome!r}"


def _marked_by(servers: Servers) -> set[int]:
    return {*servers.held, *(each for part in servers.shared for each in part)} - {0}


SMALL = (
    Setting("a writer alone", ("writer",)),
    Setting("a writer and lost replies", ("writer",), losses=2),
    Setting("a writer and one of a single slot", ("writer", "one_slot_writer"), crashes=1),
    Setting("a writer and a reader of two exclusive keys", ("writer", "reader"), (True, True), crashes=1),
    Setting("a writer and a reader", ("writer", "reader"), crashes=1, losses=1),
    Setting("two writers that try again", ("writer", "writer"), attempts=2),
    Setting("two writers of two exclusive keys", ("writer", "writer"), (True, True), crashes=1),
    Setting("a writer and a recoverer", ("writer", "recoverer"), crashes=1, losses=1, attempts=2),
    Setting("two writers that may both die", ("writer", "writer"), crashes=2, losses=1),
    Setting("a writer, a reader and a recoverer", ("writer", "reader", "recoverer"), crashes=1),
    Setting("two writers and a recoverer", ("writer", "writer", "recoverer"), crashes=1),
)
"""For every run of the tests. The smallest first, since a mutation is stopped by the first that finds it."""

LARGE = (
    Setting("a writer of three parts and a recoverer", ("writer", "recoverer"), (True, False, False), 1, 1),
    Setting("two writers of two exclusive keys, a lost reply", ("writer", "writer"), (True, True), 1, 1),
    Setting("a writer, a recoverer, two lost replies", ("writer", "recoverer"), (True, False), 1, 2, 2),
    Setting("two writers, a reader and a recoverer", ("writer", "writer", "reader", "recoverer"), crashes=1),
)
"""On request, in some minutes and a gigabyte."""


if __name__ == "__main__":
    for chosen in LARGE if sys.argv[1:] == ["large"] else SMALL:
        sys.stdout.write(f"{Checker(chosen).run()}\n")
        sys.stdout.flush()
