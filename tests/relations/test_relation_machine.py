"""Several writers at once, dying and losing connections wherever they are: both sides always agree."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Any, NamedTuple

from hypothesis import strategies as st
from hypothesis.stateful import rule

from keywright import Call, Database, erase
from keywright.testing import Proxy
from keywright.testing.runs import Raw
from kinship import Club, House, Person, assert_whole, club, desk, home, people, survey
from writers_at_once import FAULTS, WRITERS, Death, Stage, WritersAtOnce, deaths, play

PERSONS = st.sampled_from(["ann", "bob"])
PLACES = st.sampled_from(["one", "two", "six"])
LATER = timedelta(days=1)


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

DEED = st.builds(
    Deed, st.sampled_from(sorted(DEEDS)), PERSONS, PLACES, st.frozensets(PLACES), deaths(most_sent=5)
)
BATCHES = st.tuples(*[st.lists(DEED, min_size=1, max_size=3)] * WRITERS)


class Writers(WritersAtOnce):
    @rule(batches=BATCHES, faults=FAULTS)
    def everyone_acts(self, batches: tuple[list[Deed], ...], faults: tuple[Any, ...]) -> None:
        self.act(batches, faults)
        assert_whole(survey(self.stage.raw))


def _play(stage: Stage) -> None:
    play(Writers, stage, examples=60, steps=10)


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
