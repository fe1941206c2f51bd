"""A state machine with concurrent writers that crash and lose connections at any point, for any keyspace."""

from __future__ import annotations

import threading
from typing import Any, ClassVar, NamedTuple, Protocol

from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, run_state_machine_as_test

from keywright import Call, Database
from keywright.errors import EngineError, KeywrightError, TakenError
from keywright.testing import Proxy
from keywright.testing.runs import Raw
from kinship import Mortal, recover_all

WRITERS = 3


class Death(NamedTuple):
    """The point where a process crashes: its round trip, and how many of its commands are still sent."""

    round: int
    sent: int


class Deed(Protocol):
    """One operation of one writer, and where it crashes, if it does."""

    @property
    def death(self) -> Death | None: ...

    def call(self) -> Call[Any]: ...


_FAULTS = st.one_of(
    st.none(),
    st.tuples(st.just("cut_after_commands"), st.integers(0, 6)),
    st.tuples(st.just("cut_before_reply"), st.integers(1, 6)),
    st.just(("truncate_reply",)),
)
FAULTS = st.tuples(*[_FAULTS] * WRITERS)


def deaths(most_sent: int) -> st.SearchStrategy[Death | None]:
    return st.none() | st.builds(Death, st.integers(0, 9), st.integers(0, most_sent))


class Stage(NamedTuple):
    """The databases of the writers, perhaps each through a proxy, and the recoverer."""

    databases: list[Database]
    proxies: list[Proxy]
    rescue: Database
    raw: Raw


class WritersAtOnce(RuleBasedStateMachine):
    """The state machine. A rule runs all writers at once with `act`, which recovers and reads all back."""

    stage: ClassVar[Stage]
    refusals: ClassVar[tuple[type[KeywrightError], ...]] = (EngineError, TakenError)
    """What a deed may end with."""

    def __init__(self) -> None:
        super().__init__()
        self.stage.raw("FLUSHALL")

    def act(self, batches: tuple[list[Any], ...], faults: tuple[Any, ...]) -> None:
        for proxy, fault in zip(self.stage.proxies, faults, strict=False):
            if fault is not None:
                getattr(proxy, fault[0])(*fault[1:])
        surprises: list[BaseException] = []
        threads = [
            threading.Thread(target=self._perform_all, args=(database, deeds, surprises))
            for database, deeds in zip(self.stage.databases, batches, strict=True)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        for proxy in self.stage.proxies:
            proxy.heal()
        if surprises:
            raise BaseExceptionGroup("outside the error tree", surprises)
        recover_all(self.stage.rescue)

    def _perform_all(self, database: Database, deeds: list[Deed], surprises: list[BaseException]) -> None:
        for deed in deeds:
            try:
                _perform(database, deed)
            except self.refusals:
                continue
            except BaseException as error:  # noqa: BLE001  # shown by `act`: a thread cannot fail a test
                surprises.append(error)


def play(machine: type[WritersAtOnce], stage: Stage, *, examples: int, steps: int) -> None:
    """Run a machine on this stage."""
    here = type(machine.__name__, (machine,), {"stage": stage})
    quick = settings(
        max_examples=examples,
        stateful_step_count=steps,
        deadline=None,
        derandomize=True,
        database=None,
        phases=[Phase.generate],  # threads interleave differently each time: shrinking would mislead
        suppress_health_check=list(HealthCheck),
    )
    run_state_machine_as_test(here, settings=quick)


def _perform(database: Database, deed: Deed) -> None:
    if deed.death is None:
        database.run(deed.call())
        return
    process = Mortal(database, deed.call())
    try:
        for _ in range(deed.death.round):
            process.step()
    except StopIteration:
        return
    process.send(range(min(deed.death.sent, len(process.wires))))
