"""Several writers at once, dying and losing connections wherever they are: invariants 1 to 7 always hold."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Any, ClassVar, NamedTuple

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import initialize, rule

from keywright import Call, Keyspace
from keywright.errors import EngineError, TakenError
from keywright.operations import Procedure, Steps
from keywright.testing import Proxy, Raw
from keywright_meetup import account_links, channel_times, channels, intents, series
from keywright_meetup.errors import RefusedChangeError
from keywright_meetup.event_sync import sync
from keywright_meetup.schema import RoleKind, SeriesOfChannel, SeriesOfEvent, meetup
from keywright_meetup.vacuum import vacuum
from kinship import Mortal, recover_all
from writers_at_once import FAULTS, WRITERS, Death, Stage, WritersAtOnce, deaths, play

from .meetup_town import (
    DAY,
    NOW,
    Opener,
    Place,
    announced,
    assert_invariants,
    everything,
    journal,
    tokens,
)

EVENTS = ("e1", "e2", "e3")
LATER = timedelta(days=1)


class Deed(NamedTuple):
    """One operation of one writer, and where it dies, if it does."""

    what: str
    event: str
    other: str
    one: int
    two: int
    death: Death | None

    def call(self) -> Call[Any]:
        return DEEDS[self.what](self)


def of_event(event: str, then: Callable[[str], Call[Any]]) -> Call[Any]:
    """Do something with the series that an event has by then, if it has one."""

    def steps() -> Steps[Any]:
        found = yield SeriesOfEvent(event).get()
        return None if found is None else (yield then(found))

    return Procedure(steps, "with a series")


def made_channel(deed: Deed) -> Call[Any]:
    """Provision a channel from beginning to end, with Discord answering `one`."""

    def steps() -> Steps[Any]:
        found = yield SeriesOfEvent(deed.event).get()
        if found is None:
            return
        begun = yield intents.begin_channel(found, NOW)
        if begun.intent is not None:
            yield intents.finish_channel(found, begun.intent.mark, deed.one)

    return Procedure(steps, "make a channel")


def made_role(made: RoleKind, deed: Deed) -> Call[Any]:
    def steps() -> Steps[Any]:
        if (yield SeriesOfChannel(deed.one).get()) is None:
            return
        begun = yield intents.begin_role(made, deed.one, NOW)
        if begun.intent is not None:
            yield intents.finish_role(made, deed.one, begun.intent.mark, deed.two)

    return Procedure(steps, "make a role")


def synced(deed: Deed) -> Call[Any]:
    code = f"[campaign {deed.other}]" if deed.one % 2 else "[new adventure]"
    return sync([announced(deed.event, code, hosts=[deed.one], guests=[deed.two])])


DEEDS: dict[str, Callable[[Deed], Call[Any]]] = {
    "link": lambda deed: account_links.link(deed.one, deed.two),
    "link with tokens": lambda deed: account_links.link(deed.one, deed.two, tokens()),
    "unlink": lambda deed: account_links.unlink(deed.one),
    "unlink by Discord": lambda deed: account_links.unlink_discord(deed.two),
    "refresh tokens": lambda deed: account_links.store_tokens(deed.one, tokens("b")),
    "sync": synced,
    "sync with a channel": lambda deed: sync(
        [announced(deed.event, f"[new campaign] [channel {deed.one}]", guests=[deed.two])]
    ),
    "sync two": lambda deed: sync([announced(deed.event), announced(deed.other, f"[campaign {deed.event}]")]),
    "event gone": lambda deed: sync([], gone=[deed.event]),
    "remove event": lambda deed: series.remove_event(deed.event),
    "delete series": lambda deed: of_event(deed.event, series.delete_series),
    "attach": lambda deed: of_event(deed.event, lambda found: channels.attach_channel(found, deed.one)),
    "make channel": made_channel,
    "make guest role": lambda deed: made_role("guest_role", deed),
    "make host role": lambda deed: made_role("host_role", deed),
    "replace guest role": lambda deed: intents.finish_role(
        "guest_role", deed.one, "", deed.two, instead_of=deed.one
    ),
    "retire": lambda deed: channels.retire_channel(deed.one),
    "forget": lambda deed: channels.forget_channel(deed.one),
    "channel confirmed": lambda deed: channels.confirm_channel_deleted(deed.one),
    "role confirmed": lambda deed: channels.confirm_role_deleted(deed.two),
    "remove user": lambda deed: channels.remove_user(deed.one, deed.two),
    "remove host": lambda deed: channels.remove_host(deed.one, deed.two),
    "extend": lambda deed: channel_times.extend(deed.one, NOW + deed.two * DAY),
    "remind": lambda deed: channel_times.claim_reminder(deed.one, "campaign", NOW + 9 * DAY),
    "end": lambda deed: channel_times.end(deed.one, NOW + 9 * DAY),
    "vacuum": lambda _: vacuum(NOW + 9 * DAY),
}

IDS = st.integers(1, 3)
DEED = st.builds(
    Deed,
    st.sampled_from(sorted(DEEDS)),
    st.sampled_from(EVENTS),
    st.sampled_from(EVENTS),
    IDS,
    IDS,
    deaths(most_sent=8),
)
MOST_RUNS = 3
BATCHES = st.tuples(*[st.lists(DEED, min_size=1, max_size=4)] * WRITERS)


class Writers(WritersAtOnce):
    reached: ClassVar[set[str]]
    refusals = (EngineError, TakenError, RefusedChangeError)

    @initialize(furnished=st.booleans())
    def begin(self, furnished: bool) -> None:
        if furnished:
            run = self.stage.rescue.run
            run(account_links.link(1, 1, tokens()))
            run(sync([announced("e1", "[new adventure] [channel 1]", hosts=[1], guests=[2])]))
            run(intents.finish_role("guest_role", 1, "", 2))
            run(channel_times.extend(1, NOW + DAY))

    @rule(batches=BATCHES, faults=FAULTS)
    def everyone_acts(self, batches: tuple[list[Deed], ...], faults: tuple[Any, ...]) -> None:
        self.act(batches, faults)
        stored = everything(self.stage.raw)
        assert_invariants(stored)
        assert journal(self.stage.raw) == set()
        self.reached.update(name.split(":")[0] + name.rpartition(":")[2] for name in stored)


def _play(stage: Stage) -> None:
    """Play until the writers got nearly everywhere: threads decide what a run misses."""
    kinds = (kind.declaration.template.source for kind in _written(meetup))
    wanted = {source.split(":")[0] + source.rpartition(":")[2] for source in kinds}
    Writers.reached, missed = set(), wanted
    for _ in range(MOST_RUNS):
        play(Writers, stage, examples=40, steps=12)
        missed = {name for name in wanted if "<" not in name} - Writers.reached
        if len(missed) <= 5:
            return
    raise AssertionError(f"the writers never reached {missed}")


def _written(space: Keyspace) -> list[Any]:
    apart = {"csrf", "lock", "meetup_linking", "orphaned_roles"}
    return [
        kind
        for kind in space
        if kind.declaration.template.source.split(":")[0] not in apart
        and not kind.declaration.template.source.startswith(("meetup_access", "meetup_refresh"))
    ]


def test_writers_on_one_server_keep_the_invariants(
    redis_url: str, raw: Raw, make_proxy: Callable[[str], Proxy], open_database: Opener
) -> None:
    proxies = [make_proxy(redis_url) for _ in range(WRITERS)]
    databases = [open_database(proxy.url) for proxy in proxies]
    _play(Stage(databases, proxies, open_database(redis_url, ahead=LATER), raw))


def test_writers_on_a_cluster_keep_the_invariants(
    cluster_url: str, raw_cluster: Raw, open_database: Opener
) -> None:
    databases = [open_database(cluster_url) for _ in range(WRITERS)]
    _play(Stage(databases, [], open_database(cluster_url, ahead=LATER), raw_cluster))


def settle(place: Place) -> str:
    """Store people, a complete series, and one with events only. Return the latter."""
    place.raw("FLUSHALL")
    run = place.db.run
    run(account_links.link(1, 1, tokens()))
    run(sync([announced("e1", "[new adventure] [channel 5]", hosts=[1], guests=[2])]))
    run(intents.finish_role("guest_role", 5, "", 6))
    run(intents.finish_role("host_role", 5, "", 7))
    run(channels.remove_user(5, 1))
    run(sync([announced("e8", hosts=[1], guests=[2]), announced("e9", "[campaign e8]")]))
    found: str = place.raw("GET", "meetup_event:e8:event_series").decode()
    return found


WHOLE: dict[str, Callable[[str], Call[Any]]] = {
    "link": lambda _: account_links.link(2, 2, tokens()),
    "unlink": lambda _: account_links.unlink(1),
    "new event": lambda _: sync([announced("e2", "[campaign e1]", hosts=[3], guests=[4])]),
    "event gone": lambda _: series.remove_event("e1"),
    "retire": lambda _: channels.retire_channel(5),
    "end of a series": series.delete_series,
    "guest role": lambda _: intents.finish_role("guest_role", 5, "", 66, instead_of=6),
}


@pytest.mark.parametrize("name", WHOLE)
def test_a_process_that_dies_anywhere_leaves_all_of_an_operation_or_nothing(
    name: str, cluster_place: Place, open_database: Opener
) -> None:
    rescue = open_database(cluster_place.url, ahead=LATER)
    seen = set()
    for rounds in range(14):
        sent = 0
        while True:
            found = settle(cluster_place)
            before = everything(cluster_place.raw)
            process = Mortal(cluster_place.db, WHOLE[name](found))
            try:
                for _ in range(rounds):
                    process.step()
            except StopIteration:
                break
            process.send(range(min(sent, len(process.wires))))
            recover_all(rescue)
            stored = everything(cluster_place.raw)
            cluster_place.db.run(WHOLE[name](found))
            after = everything(cluster_place.raw)
            assert stored in (before, after), (rounds, sent)
            seen.add(stored == before)
            if sent >= len(process.wires):
                break
            sent += 3  # commands of one round trip are alike: every third is enough
    assert seen == {True, False}
