"""The library behind Sentinel and on a cluster, with failovers and resharding."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress

from keywright.errors import KeywrightError, ServerRefusedError
from keywright.testing import RedisCluster, RedisSentinel, RedisServer, wait_until
from soak.faults import program_faults
from soak.judge.findings import Findings
from soak.judge.keyspace import judge_keyspace
from soak.judge.raw import everything
from soak.scenario import Fault
from soak.scenarios.library import ALWAYS, LibraryScenario, number_in

__all__ = ["ClusterScenario", "SentinelScenario"]

FAILOVERS = 5
SLOTS = 16384
SLOTS_MOVED = 40


class SentinelScenario(LibraryScenario):
    title = "library, primary and replica behind Sentinel"

    def start(self) -> None:
        self.sentinel = self.stack.enter_context(RedisSentinel(options=ALWAYS))
        self.writer("a", self.sentinel.url, "--wait")
        self.writer("b", self.sentinel.url, "--asyncio")

    def faults(self) -> Sequence[Fault]:
        return [
            Fault("replica killed", lambda: self._kill(self._replica())),
            Fault("primary killed, failover", self._fail_over_by(lambda server: server.kill())),
            Fault("primary frozen, failover", self._fail_over_by(lambda server: server.pause())),
            Fault("planned failover", self._order_failover),
            Fault("sentinel killed", lambda: self._kill(self.chance.choice(self.sentinel.sentinels))),
        ]

    def _replica(self) -> RedisServer:
        return next(server for server in self.sentinel.servers if server is not self.sentinel.master)

    def _kill(self, server: RedisServer) -> None:
        server.kill()
        self.hold(0.5, 2.0)
        server.start()
        self._wait_until_whole()

    def _fail_over_by(self, strike: Callable[[RedisServer], None]) -> Callable[[], None]:
        def inject() -> None:
            old = self.sentinel.master
            strike(old)
            wait_until(lambda: self.sentinel.master is not old, "another server is primary", seconds=60)
            self.hold(0.5, 2.0)
            old.resume()
            old.start()
            self._wait_until_whole()

        return inject

    def _order_failover(self) -> None:
        """Order a failover, again if the sentinel refuses or gives up: it may not know the replica yet."""
        old = self.sentinel.master
        for _ in range(FAILOVERS):
            with suppress(ServerRefusedError, AssertionError):
                self.sentinel.sentinels[0].call("SENTINEL", "FAILOVER", "mymaster")
                wait_until(lambda: self.sentinel.master is not old, "another primary", seconds=15)
                return self._wait_until_whole()
            self.hold(1.0, 2.0)
        raise RuntimeError(f"no replica was promoted in {FAILOVERS} planned failovers")

    def _wait_until_whole(self) -> None:
        def whole() -> bool:
            try:
                return "state=online" in self.sentinel.master.text("INFO", "replication") and all(
                    sentinel.knows_the_others() for sentinel in self.sentinel.sentinels
                )
            except KeywrightError:
                return False  # still loading its data

        wait_until(whole, "the replica follows, and the sentinels know it", seconds=60)

    def judge(self) -> Findings:
        self.settle(self.sentinel.url)
        keys = everything([self.sentinel.master.port])
        return judge_keyspace([self.acknowledged("a")], keys, unsafe=[self.acknowledged("b")])


class ClusterScenario(LibraryScenario):
    title = "library, cluster of three primaries and three replicas (WAIT 1)"

    def start(self) -> None:
        self.cluster = self.stack.enter_context(RedisCluster(options=ALWAYS))
        self.blocking = self.writer("a", self.cluster.url, "--wait")
        self.writer("b", self.cluster.url, "--asyncio", "--wait")

    def faults(self) -> Sequence[Fault]:
        return [
            Fault("primary killed, failover", lambda: self._replace(lambda server: server.kill())),
            Fault("slots moved", self._move_slots),
            Fault("primary frozen, failover", lambda: self._replace(lambda server: server.pause())),
            Fault("planned failover", self._order_failover),
            Fault("primary frozen briefly", self._freeze),
            Fault("replica killed", self._kill_replica),
            *program_faults(self, self.blocking),
        ]

    def _replace(self, strike: Callable[[RedisServer], None]) -> None:
        slot = self.chance.randrange(SLOTS)
        old = self.cluster.master_of(slot)
        strike(old)
        wait_until(lambda: self.cluster.master_of(slot) is not old, "a replica takes over", seconds=60)
        self.hold(0.5, 2.0)
        self._heal()

    def _freeze(self) -> None:
        server = self.chance.choice(self.cluster.masters())
        server.pause()
        self.hold(0.3, 1.0)
        server.resume()
        self._heal()

    def _kill_replica(self) -> None:
        master = self.chance.choice(self.cluster.masters())
        self.cluster.replicas_of(master)[0].kill()
        self.hold(0.5, 3.0)
        self._heal()

    def _order_failover(self) -> None:
        slot = self.chance.randrange(SLOTS)
        old = self.cluster.master_of(slot)
        for _ in range(FAILOVERS):  # the servers give up after five seconds, which a busy machine may need
            self.cluster.replicas_of(old)[0].call("CLUSTER", "FAILOVER")
            with suppress(AssertionError):
                wait_until(lambda: self.cluster.master_of(slot) is not old, "a takeover", seconds=8)
                return self._heal()
        raise RuntimeError(f"no replica took over in {FAILOVERS} planned failovers")

    def _move_slots(self) -> None:
        for _ in range(SLOTS_MOVED):
            slot = self.chance.randrange(SLOTS)
            others = [node for node in self.cluster.masters() if node is not self.cluster.master_of(slot)]
            self.cluster.migrate_slot(slot, self.chance.choice(others))
        self._heal()

    def _heal(self) -> None:
        """Wait until the cluster is whole and every write is on the replicas: the next fault kills one."""
        try:
            self.cluster.heal()
        except AssertionError:
            self.cluster.heal()  # a full resynchronisation on a busy machine
        for master in self.cluster.masters():
            (replica,) = self.cluster.replicas_of(master)
            wait_until(lambda m=master, r=replica: _offset(r) >= _offset(m) - 1000, "the replica has it all")  # type: ignore[misc]

    def judge(self) -> Findings:
        self.settle(self.cluster.url)
        return judge_keyspace(
            map(self.acknowledged, "ab"), everything(node.port for node in self.cluster.nodes)
        )


def _offset(server: RedisServer) -> int:
    return number_in(server.text("INFO", "replication"), "master_repl_offset")
