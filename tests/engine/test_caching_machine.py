"""A cache beside a second writer, over connections that are cut: what is read, and what it may be.

Every value is written once, so a value that is read tells which write it shows. What this client wrote or
read, and what was written before all changes were delivered or the connection was lost, is the oldest
that a read may show. Reads never go back.
"""

from __future__ import annotations

from contextlib import ExitStack
from itertools import count

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from cached_keys import Cached, Tags, Word
from engines import Asyncio, Blocking
from keywright import Caching, RoundTrip, Settings, atomic, gather
from keywright.testing import Proxy, RedisServer, wait_until
from keywright.testing.wire import RawConnection

WORDS = ["a", "b", "c"]
MOST_ENTRIES = 2
MOST_BYTES = 1000


class CacheMachine(RuleBasedStateMachine):
    """One cached database behind a proxy, and a writer that reaches the server without it."""

    server: RedisServer
    kind: type[Blocking | Asyncio]

    def __init__(self) -> None:
        super().__init__()
        self.opened = ExitStack()
        self.numbers = count(1)
        self.written: dict[str, list[str | None]] = {}
        self.seen: dict[str, int] = {}

    @initialize()
    def open(self) -> None:
        self.server.call("FLUSHALL")
        self.writer: RawConnection = self.opened.enter_context(self.server.wire())
        self.proxy = self.opened.enter_context(Proxy(self.server.tcp_url))
        trips: list[RoundTrip] = []
        limits = Settings(caching=Caching(most_entries=MOST_ENTRIES, most_bytes=MOST_BYTES))
        engine = self.kind(self.proxy.url, limits, [trips.append])
        self.opened.callback(engine.close)
        self.cached = Cached(engine, trips)
        self.written = {word: [None] for word in WORDS}
        self.seen = dict.fromkeys(WORDS, 0)
        self.cached.warm()

    def teardown(self) -> None:
        self.opened.close()

    def _wrote(self, word: str, value: str | None, *, here: bool) -> None:
        self.written[word].append(value)
        if here:
            self.seen[word] = len(self.written[word]) - 1

    def _all_seen(self) -> None:
        for word in WORDS:
            self.seen[word] = len(self.written[word]) - 1

    def _check(self, word: str, value: str | None) -> None:
        allowed = self.written[word][self.seen[word] :]
        assert value in allowed, f"{word}: read {value}, which is older than {allowed}"
        self.seen[word] += allowed.index(value)

    @rule(word=st.sampled_from(WORDS))
    def another_client_writes(self, word: str) -> None:
        value = str(next(self.numbers))
        self.writer.call("SET", f"word:{word}", value)
        self._wrote(word, value, here=False)

    @rule(word=st.sampled_from(WORDS))
    def another_client_deletes(self, word: str) -> None:
        self.writer.call("DEL", f"word:{word}")
        self._wrote(word, None, here=False)

    @rule()
    def another_client_empties_the_server(self) -> None:
        self.writer.call("FLUSHDB")
        for word in WORDS:
            self._wrote(word, None, here=False)

    @rule(word=st.sampled_from(WORDS), how=st.sampled_from(["set", "many", "atomic"]))
    def it_writes(self, word: str, how: str) -> None:
        value = str(next(self.numbers))
        write = Word(word).set(value)
        calls = {"set": write, "many": Word.set_many([(word, value)]), "atomic": atomic(write)}
        self.cached.run(calls[how])
        self._wrote(word, value, here=True)

    @rule(word=st.sampled_from(WORDS))
    def it_reads(self, word: str) -> None:
        self._check(word, self.cached.run(Word(word).get()))

    @rule()
    def it_reads_all(self) -> None:
        found = self.cached.run(gather(*(Word(word).get() for word in WORDS), Tags("none").members()))
        for word, value in zip(WORDS, found, strict=False):
            self._check(word, value)

    @rule()
    def all_changes_are_delivered(self) -> None:
        self.cached.settle()
        self._all_seen()

    @rule(word=st.sampled_from(WORDS))
    def an_unchanged_key_is_read_without_a_round_trip(self, word: str) -> None:
        self.all_changes_are_delivered()
        self.it_reads(word)  # perhaps on a connection that was doomed just now: a second attempt is not kept
        self.it_reads(word)
        before = self.cached.stats
        assert self.cached.trips_of(Word(word).get()) == 0, f"{before}, then {self.cached.stats}"

    @rule()
    def connections_are_cut(self) -> None:
        self.proxy.cut()

    @rule(word=st.sampled_from(WORDS))
    def the_connection_is_lost_while_another_client_writes(self, word: str) -> None:
        self.proxy.refuse()
        self.proxy.cut()
        wait_until(lambda: not self.cached.stats.tracking, "the loss is noticed")
        self.another_client_writes(word)
        self.proxy.heal()
        self._all_seen()  # nothing is served from before

    @rule(after=st.integers(0, 3), word=st.sampled_from(WORDS))
    def the_next_commands_are_cut(self, after: int, word: str) -> None:
        self.proxy.cut_after_commands(after)
        self.it_reads(word)
        self.proxy.heal()

    @precondition(lambda self: self.written)
    @invariant()
    def its_memory_is_bounded(self) -> None:
        assert self.cached.stats.entries <= MOST_ENTRIES
        assert self.cached.stats.bytes <= MOST_BYTES


@pytest.mark.parametrize("kind", [Blocking, Asyncio], ids=["blocking", "asyncio"])
def test_no_read_is_stale_once_a_change_was_delivered_or_the_connection_lost(
    keywright_server: RedisServer, redis_url: str, kind: type[Blocking | Asyncio]
) -> None:
    machine = type("Machine", (CacheMachine,), {"server": keywright_server, "kind": kind})
    run_state_machine_as_test(
        machine, settings=settings(max_examples=80, stateful_step_count=25, deadline=None)
    )
