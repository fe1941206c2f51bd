"""The steps of the code on a cluster are those of the model, in the same order, with and without faults."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from datetime import timedelta
from typing import Any, NamedTuple

import pytest

from keywright import Call, Database, recover
from keywright.errors import ConnectionLostError, KeywrightError, OutcomeUnknownError
from keywright.keyspace.commits.plans import Intents, Marker
from keywright.operations import Effect, Outcome, commit, equals
from keywright.operations import Wire as Command
from keywright.testing.runs import Raw
from kinship import DeskOf, HomeOf, Mortal, Residents, desk
from relations.journal_model import AWAY, UNKNOWN, Checker, Process, Protocol, Setting, Wire, execute

Opener = Callable[..., Database]

ERRORS: dict[str, KeywrightError] = {
    UNKNOWN: OutcomeUnknownError("a node", "EVALSHA", b"a key"),
    AWAY: ConnectionLostError("a node", "it closed"),
}


EFFECTS = {Effect.READ: "read", Effect.REPEATABLE: "repeatable", Effect.ONCE: "once"}


class Fault(NamedTuple):
    """The reply that a step gets instead of its own, and whether the step was executed."""

    reply: str
    executed: bool = True


Faults = Mapping[str, Fault]


# The code: its commands, recognised by what they do.


def _script(command: Command) -> tuple[list[bytes], list[list[Any]], list[list[Any]]]:
    """Return the names, checks and writes of a run of commit.lua."""
    count = command.arguments[2]
    names, rest = list(command.arguments[3 : 3 + count]), list(command.arguments[3 + count :])
    totals, items = (rest.pop(0), rest.pop(0)), []
    while rest:
        word, key, size = rest[:3]
        items.append([word, names[key - 1], *rest[3 : 3 + size]])
        del rest[: 3 + size]
    return names, items[: totals[0]], items[totals[0] :]


def step_of(command: Command) -> str | None:
    """Return the model's word for a command; None for another command."""
    operation = command.operation.name.partition(" ")[0], command.operation.verb
    if operation[0] in ("pause", "topology") or operation == ("journal", b"HLEN"):
        return None
    if operation == ("journal", b"HGET"):
        return {Marker: "get_marker", Intents: "get_intent"}[command.source]  # type: ignore[index]  # else fail
    if operation[0] == "decide":
        return f"decide {command.arguments[-2].decode()}→{command.arguments[-1].decode()}"
    if operation[0] == "commit":
        return _step_of_script(*_script(command))
    return {("journal", b"HSETNX"): "put", ("journal", b"HGETALL"): "list_intents", ("get", b"GET"): "read"}[
        operation
    ]


def _step_of_script(names: list[bytes], checks: list[list[Any]], writes: list[list[Any]]) -> str:
    markers = [name for name in names if name.startswith(b"keywright:held:")]
    if names[0] not in markers:
        assert ["field-absent", markers[0], b"x"] in checks
        return "one_script"
    if len(names) == 1:
        assert (checks[0][0], writes) == ("field", [[b"HDEL", markers[0], b"x"]])
        return "clear_marker"
    if writes[0][:2] == [b"HSET", markers[0]]:
        kind = "exclusive" if writes[0][2] == b"x" else "shared"
        assert (checks[0][0] == "field-vacant") is (kind == "exclusive")
        return f"prepare {kind}"
    [[_, _, field, _]] = [check for check in checks if check[0] == "field"]
    assert writes[-1] == [b"HDEL", markers[0], field]
    return f"{'apply' if writes[1:] else 'release'} {'exclusive' if field == b'x' else 'shared'}"


class Code:
    """A call on the cluster, whose steps are written down."""

    def __init__(self, database: Database, call: Call[Any], faults: Faults | None = None) -> None:
        self.process = Mortal(database, call)
        self.faults = dict(faults or {})
        self.steps: list[str] = []

    def run(self, until: str | None = None) -> list[str]:
        """Run to the end, or until this step is due. Return the steps."""
        try:
            while until is None or until not in map(step_of, self.process.wires):
                self.process.receive([self._reply(number) for number in range(len(self.process.wires))])
        except (StopIteration, KeywrightError):
            pass
        return self.steps

    def _reply(self, number: int) -> Any:
        step = step_of(self.process.wires[number])
        named = f"{step}, {EFFECTS[self.process.wires[number].operation.effect]}"
        if step is not None and not (step == "list_intents" and self.steps[-1:] == [named]):
            self.steps.append(named)  # the shards of a journal are one to the model
        fault = self.faults.pop(step or "", None)
        replies = self.process.send([number] if fault is None or fault.executed else [])
        return replies[0] if fault is None else ERRORS[fault.reply]


# The model: one process at a time, on the same servers.


class Model:
    """The model's servers, on which processes run one after the other."""

    def __init__(self, young: bool = False) -> None:
        self.setting = Setting("", ("writer",) * 3, attempts=2)
        self.checker = Checker(self.setting)
        self.protocol = Protocol(self.setting)
        self.young = young
        self.servers = self.protocol.first_servers()

    def run(self, process: Process, faults: Faults | None = None, until: str | None = None) -> list[str]:
        left = dict(faults or {})
        steps: list[str] = []
        state = self.checker.begun(process)
        while isinstance(state, Process):
            wires = self.checker.wires_of(state)
            if until is not None and until in map(self.step_of, wires):
                return steps
            replies = []
            for wire in wires:
                step = self.step_of(wire)
                steps += [] if step is None else [f"{step}, {wire.effect}"]
                fault = left.pop(step or "", None)
                if fault is None or fault.executed:
                    outcomes = execute(self.protocol, self.servers, wire)
                    self.servers, reply = outcomes[0 if self.young else -1]
                replies.append(reply if fault is None else fault.reply)
            state = self.checker.begun(state._replace(history=(*state.history, tuple(replies))))
        return steps

    def step_of(self, wire: Wire) -> str | None:
        if wire.step == "clock":
            return None
        if wire.step == "decide":
            return f"decide {'→'.join(wire.extra[:2])}"
        if wire.step in ("prepare", "apply", "release"):
            return f"{wire.step} {'exclusive' if wire.part in self.protocol.exclusive else 'shared'}"
        return wire.step


# The scenarios.


def _write(home: str = "one") -> Call[Outcome]:
    """A commit of one exclusive and one shared part that expects that ann has no home."""
    writes = [HomeOf("ann").set(home), Residents(home).add("ann")]
    return commit("write", [equals(HomeOf("ann"), None)], writes)


def _across(number: int = 0, expected: int = 0) -> Process:
    return Process("across_slots", (number, 0, (expected,)))


@pytest.fixture
def database(cluster_url: str, open_database: Opener) -> Database:
    return open_database(cluster_url)


@pytest.fixture
def rescue(cluster_url: str, open_database: Opener) -> Database:
    return open_database(cluster_url, timedelta(minutes=1))


FAULTS: dict[str, Faults] = {
    "no fault": {},
    "put lost": {"put": Fault(UNKNOWN, executed=False)},
    "reply to put lost": {"put": Fault(UNKNOWN)},
    "put away": {"put": Fault(AWAY, executed=False)},
    "prepare lost": {"prepare exclusive": Fault(UNKNOWN, executed=False)},
    "reply to prepare lost": {"prepare shared": Fault(UNKNOWN)},
    "prepare away": {"prepare shared": Fault(AWAY, executed=False)},
    "decide lost": {"decide P→C": Fault(UNKNOWN, executed=False)},
    "reply to decide lost": {"decide P→C": Fault(UNKNOWN)},
    "decide away": {"decide P→C": Fault(AWAY, executed=False)},
    "look-up away": {"decide P→C": Fault(UNKNOWN), "get_intent": Fault(AWAY, executed=False)},
    "apply away": {"apply shared": Fault(AWAY, executed=False)},
    "last apply away": {"apply exclusive": Fault(AWAY, executed=False)},
    "drop away": {"decide C→": Fault(AWAY, executed=False)},
}


@pytest.mark.parametrize("name", FAULTS)
def test_a_commit_takes_the_steps_of_the_model(name: str, database: Database) -> None:
    steps = Code(database, _write(), FAULTS[name]).run()
    assert steps == Model().run(_across(), FAULTS[name])
    assert steps[0] == "put, once"


def test_a_refused_commit_takes_the_steps_of_the_model(database: Database, raw_cluster: Raw) -> None:
    raw_cluster("SET", "person:ann:home", "six")
    assert Code(database, _write()).run() == Model().run(_across(expected=7))


MEETINGS = {
    "undecided": "decide P→C",
    "decided": "apply shared",
    "half applied": "apply exclusive",
    "applied": "decide C→",
}
OTHERS: dict[str, tuple[Callable[[], Call[Any]], Callable[[], Process]]] = {
    "a writer": (lambda: _write("two"), lambda: _across(1)),
    "a recoverer": (recover, lambda: Process("recoverer", ())),
}


@pytest.mark.parametrize("other", OTHERS)
@pytest.mark.parametrize("meeting", MEETINGS)
def test_meeting_a_commit_takes_the_steps_of_the_model(
    meeting: str, other: str, database: Database, rescue: Database
) -> None:
    code, model = OTHERS[other]
    Code(database, _write()).run(until=MEETINGS[meeting])
    modelled = Model()
    modelled.run(_across(), until=MEETINGS[meeting])
    assert Code(rescue, code()).run() == modelled.run(model())


def test_meeting_a_young_commit_takes_the_steps_of_the_model(database: Database) -> None:
    Code(database, _write()).run(until="decide P→C")
    modelled = Model(young=True)
    modelled.run(_across(), until="decide P→C")
    steps, expected = Code(database, _write("two")).run(), modelled.run(_across(1))
    assert steps[: len(expected)] == expected
    assert modelled.run(Process("recoverer", ())) == Code(database, recover(grace=timedelta(hours=1))).run()


def _orphaned(raw: Raw) -> None:
    for name in raw.names():
        if name.startswith(b"keywright:intents:"):
            raw("DEL", name)


def test_meeting_a_marker_without_an_intent_takes_the_steps_of_the_model(
    database: Database, raw_cluster: Raw
) -> None:
    Code(database, _write()).run(until="decide P→C")
    _orphaned(raw_cluster)
    modelled = Model()
    modelled.run(_across(), until="decide P→C")
    modelled.servers = modelled.servers._replace(journal=("",) * len(modelled.servers.journal))
    assert Code(database, _write("two")).run() == modelled.run(_across(1))


@pytest.mark.parametrize("meeting", [*MEETINGS, "no intent"])
def test_a_relation_read_takes_the_steps_of_the_model(
    meeting: str, database: Database, rescue: Database, raw_cluster: Raw
) -> None:
    until = MEETINGS.get(meeting, "decide P→C")
    Code(database, _write_desk()).run(until=until)
    modelled = Model()
    modelled.run(_across(), until=until)
    if meeting == "no intent":
        _orphaned(raw_cluster)
        modelled.servers = modelled.servers._replace(journal=("",) * len(modelled.servers.journal))
    steps = Code(rescue, desk.of("ann")).run()
    expected = modelled.run(Process("reader_of_the_other", ((0,),)))
    assert steps[: len(expected)] == expected
    assert steps[len(expected) :] in (
        [],
        ["get_marker, read", "read, read"],
    )  # what the model leaves to the next attempt


def _write_desk() -> Call[Outcome]:
    writes = [DeskOf("ann").set("one"), Residents("one").add("ann")]
    return commit("write", [equals(DeskOf("ann"), None)], writes)


@pytest.mark.parametrize("meeting", [*MEETINGS, "nothing"])
def test_a_commit_in_one_slot_takes_the_steps_of_the_model(
    meeting: str, database: Database, rescue: Database
) -> None:
    modelled = Model()
    if meeting != "nothing":
        Code(database, _write()).run(until=MEETINGS[meeting])
        modelled.run(_across(), until=MEETINGS[meeting])
    call = commit("one", [equals(HomeOf("ann"), None)], [HomeOf("ann").set("six")])
    steps, expected = Code(rescue, call).run(), modelled.run(Process("one_slot_writer", (1,)))[1:]
    assert steps[: len(expected)] == expected
    assert steps[len(expected) :] in ([], ["one_script, once"])  # what the model leaves to the next attempt


def test_the_scenarios_reach_every_step_of_the_model() -> None:
    """So a step that the code does not take cannot stay in the model."""
    model = Model()
    steps = {model.step_of(wire) for wire in _all_wires(model.protocol)}
    assert steps - {None} == {
        *("put", "prepare exclusive", "prepare shared", "decide P→C", "get_intent"),
        *(
            "apply shared",
            "apply exclusive",
            "decide C→",
            "decide P→A",
            "release exclusive",
            "release shared",
        ),
        *("decide A→", "get_marker", "clear_marker", "one_script"),
    }


def _all_wires(protocol: Protocol) -> Iterator[Wire]:
    arguments: dict[str, tuple[Any, ...]] = {
        "put": (1, (0,)),
        "get_marker": (0,),
        "clear_marker": (0, 1),
        "in_one_script": (0, 1, (0,)),
    }
    names = [name for name in vars(Protocol) if vars(Protocol)[name].__class__.__name__ == "function"]
    for name in names:
        found = getattr(protocol, name)
        if found.__annotations__.get("return") == "list[Wire]":
            yield from found(*arguments.get(name, (1,)))
