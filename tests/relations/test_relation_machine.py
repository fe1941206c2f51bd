"""Several writers at once, dying and losing connections wherever they are: both sides always agree."""

from __future__ import annotations

import threading
from collections.abc import Callable
from datetime import timedelta
from typing import Any, ClassVar, NamedTuple

from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, rule, run_state_machine_as_test

from keywright import Call, Database, erase
from keywright.errors import EngineError, TakenError
from keywright.testing import Proxy
from kinship import (
    Club,
    House,
    Mortal,
    Person,
    assert_whole,
    club,
    desk,
    home,
    people,
    recover_all,
    survey,
)
from running import Raw

WRITERS = 3
PERSONS = st.sampled_from(["ann", "bob"])
PLACES = st.sampled_from(["one", "two", "six"])
LATER = timedelta(days=1)


class Death(NamedTuple):
    """Where a process ends: at which round trip, and how many of its commands still leave."""

    round: int
    sent: int


class Deed(NamedTuple):
    """One operation of one writer, and where it dies, if it does."""

    what: str
    person: str
    place: str
    others: frozenset[str]
    death: Death | None

    def call(self) -> Call[Any]:
        return DEEDS[self.what](self)


DEEDS: dict[str, Callable[[Deed], Call[Any]]] = {
    "move in": lambda deed: home.assign(deed.person, deed.place),
    "move": lambda deed: home.replace(deed.person, deed.place),
    "move out": lambda deed: home.clear(deed.person),
    "empty the house": lambda deed: home.clear_inverse(deed.place),
    "sit down": lambda deed: desk.assign(deed.person, deed.place),
    "take the desk": lambda deed: desk.replace(deed.person, deed.place),
    "stand up": lambda deed: desk.clear(deed.person),
    "free the desk": lambda deed: desk.clear_inverse(deed.place),
    "join": lambda deed: club.assign(deed.person, deed.place),
    "leave": lambda deed: club.clear(deed.person, deed.place),
    "choose clubs": lambda deed: club.replace(deed.person, deed.others),
    "leave all": lambda deed: club.clear_all(deed.person),
    "name": lambda deed: people.put(Person(deed.person), Person(deed.person).set(deed.place)),
    "forget": lambda deed: people.delete(Person(deed.person)),
    "erase": lambda deed: erase(Person(deed.person)),
    "tear down": lambda deed: erase(House(deed.place)),
    "disband": lambda deed: erase(Club(deed.place)),
}

DEATHS = st.builds(Death, st.integers(0, 9), st.integers(0, 5))
DEED = st.builds(
    Deed, st.sampled_from(sorted(DEEDS)), PERSONS, PLACES, st.frozensets(PLACES), st.none() | DEATHS
)
BATCHES = st.tuples(*[st.lists(DEED, min_size=1, max_size=3)] * WRITERS)
FAULTS = st.one_of(
    st.none(),
    st.tuples(st.just("cut_after_commands"), st.integers(0, 6)),
    st.tuples(st.just("cut_before_reply"), st.integers(1, 6)),
    st.just(("truncate_reply",)),
)

QUICK = settings(
    max_examples=60,
    stateful_step_count=10,
    deadline=None,
    derandomize=True,
    database=None,
    phases=[Phase.generate],  # threads interleave differently each time: shrinking would mislead
    suppress_health_check=list(HealthCheck),
)


class Stage(NamedTuple):
    """What the writers work with: a database each, perhaps through a proxy each, and who cleans up."""

    databases: list[Database]
    proxies: list[Proxy]
    rescue: Database
    raw: Raw


class Writers(RuleBasedStateMachine):
    """Each step lets every writer act at once, then recovers and reads everything back."""

    stage: ClassVar[Stage]

    def __init__(self) -> None:
        super().__init__()
        self.stage.raw("FLUSHALL")

    @rule(batches=BATCHES, faults=st.tuples(*[FAULTS] * WRITERS))
    def everyone_acts(self, batches: tuple[list[Deed], ...], faults: tuple[Any, ...]) -> None:
        for proxy, fault in zip(self.stage.proxies, faults, strict=False):
            if fault is not None:
                getattr(proxy, fault[0])(*fault[1:])
        surprises: list[BaseException] = []
        threads = [
            threading.Thread(target=_act, args=(database, deeds, surprises))
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
        assert_whole(survey(self.stage.raw))


def _act(database: Database, deeds: list[Deed], surprises: list[BaseException]) -> None:
    for deed in deeds:
        try:
            _perform(database, deed)
        except (EngineError, TakenError):
            continue
        except BaseException as error:  # noqa: BLE001  # shown by the machine: a thread cannot fail a test
            surprises.append(error)


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


def _play(stage: Stage) -> None:
    class Here(Writers):
        pass

    Here.stage = stage
    run_state_machine_as_test(Here, settings=QUICK)


def test_writers_on_one_server_never_leave_half_a_relation(
    redis_url: str,
    raw: Raw,
    make_proxy: Callable[[str], Proxy],
    open_database: Callable[..., Database],
) -> None:
    proxies = [make_proxy(redis_url) for _ in range(WRITERS)]
    databases = [open_database(proxy.url) for proxy in proxies]
    rescue = open_database(redis_url, LATER)
    _play(Stage(databases, proxies, rescue, raw))


def test_writers_on_a_cluster_never_leave_half_a_relation(
    cluster_url: str, raw_cluster: Raw, open_database: Callable[..., Database]
) -> None:
    databases = [open_database(cluster_url) for _ in range(WRITERS)]
    rescue = open_database(cluster_url, LATER)
    _play(Stage(databases, [], rescue, raw_cluster))


def test_writers_whose_clocks_disagree_never_leave_half_a_relation(
    cluster_url: str, raw_cluster: Raw, open_database: Callable[..., Database]
) -> None:
    """A writer whose clock is ahead takes the living for dead and undoes them; that must be harmless."""
    databases = [open_database(cluster_url, timedelta(hours=hour)) for hour in range(WRITERS)]
    rescue = open_database(cluster_url, LATER)
    _play(Stage(databases, [], rescue, raw_cluster))
