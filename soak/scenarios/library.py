"""The library on a server, on a full disk, with eviction, behind Sentinel, and on a cluster."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path

from keywright.errors import KeywrightError, ServerRefusedError
from keywright.testing import Proxy, RedisCluster, RedisSentinel, RedisServer, wait_until
from soak.clock import ClockedRedis, clocked_server
from soak.disk import TinyDisk
from soak.faults import clock_faults, memory_fault, program_faults, proxy_faults, server_faults
from soak.judge.findings import Findings
from soak.judge.keyspace import judge_keyspace, relation_violations
from soak.judge.raw import everything
from soak.programs import Program
from soak.scenario import Fault, Scenario

__all__ = [
    "ClockScenario",
    "ClusterScenario",
    "DiskScenario",
    "EvictionScenario",
    "SentinelScenario",
    "SingleScenario",
]

ROOT = Path(__file__).parents[2]
ALWAYS = {"appendfsync": "always"}
SLOTS_MOVED = 40
FAILOVERS = 5
EVICTED, LOWERED_BYTES = 30, 2_000
SLOTS = 16384


class LibraryScenario(Scenario):
    """Writers of the keyspace of the soak, and the judge of their logs."""

    def writer(self, name: str, url: str, *options: str) -> Program:
        return self.program(
            url,
            str(self.acknowledged(name)),
            name,
            *options,
            name=f"writer {name}",
            module="soak.loads.library",
        )

    def acknowledged(self, name: str) -> Path:
        return self.folder / f"{name}.acknowledged"

    def settle(self, url: str) -> None:
        """Stop the writers, then finish what the killed ones left."""
        for program in self.programs:
            if (code := program.stop()) != 0:
                raise RuntimeError(f"{program.name} ended with exit code {code}:\n{program.tail()}")
        recovery = [sys.executable, "-m", "soak.loads.recovery", url]
        subprocess.run(recovery, check=True, capture_output=True, timeout=120)


class SingleScenario(LibraryScenario):
    title = "library, one Redis (appendfsync always)"

    def start(self) -> None:
        self.server = self.stack.enter_context(RedisServer(tcp=True, options=ALWAYS))
        self.proxy = self.stack.enter_context(Proxy(self.server.tcp_url))
        self.blocking = self.writer("a", self.proxy.url)
        self.writer("b", self.proxy.url, "--asyncio")

    def faults(self) -> Sequence[Fault]:
        return [
            *server_faults(self, "Redis", self.server),
            *proxy_faults(self, self.proxy),
            memory_fault(self, self.server),
            *program_faults(self, self.blocking),
        ]

    def judge(self) -> Findings:
        self.settle(self.server.tcp_url)
        return judge_keyspace(map(self.acknowledged, "ab"), everything([self.server.port]))


class ClockScenario(LibraryScenario):
    title = "library, one Redis whose clock jumps"

    def start(self) -> None:
        kind = ClockedRedis if clocked_server() else RedisServer
        self.server = self.stack.enter_context(kind(tcp=True, options=ALWAYS))
        self.writer("a", self.server.tcp_url)
        self.writer("b", self.server.tcp_url, "--asyncio")

    def faults(self) -> Sequence[Fault]:
        if isinstance(self.server, ClockedRedis):
            return clock_faults(self, self.server)
        self.unavailable.append("clock jumps: no server starts with libfaketime (Debian: faketime)")
        return server_faults(self, "Redis", self.server)

    def judge(self) -> Findings:
        self.settle(self.server.tcp_url)
        return judge_keyspace(map(self.acknowledged, "ab"), everything([self.server.port]))


class DiskScenario(LibraryScenario):
    title = "library, one Redis on a full disk and without memory"

    def start(self) -> None:
        self.disk = TinyDisk(self.folder / "disk", megabytes=64)
        self.stack.callback(self.disk.close)
        options = {"appendfsync": "everysec", "save": "3600 1000000", "dir": f'"{self.disk.folder}"'}
        self.server = self.stack.enter_context(RedisServer(tcp=True, options=options))
        self.writer("a", self.server.tcp_url)

    def faults(self) -> Sequence[Fault]:
        faults = [memory_fault(self, self.server)]
        if self.disk.available:
            faults += [Fault("disk full (AOF)", self._fill), Fault("disk full (RDB)", self._fail_to_save)]
        else:
            self.unavailable.append("full disk: mounting a tmpfs needs root")
        return faults

    def _fill(self) -> None:
        self.disk.fill()
        self.hold(2.0, 4.0)
        self.disk.free()
        wait_until(lambda: self._reports("aof_last_write_status:ok"), "the server writes its file again")

    def _fail_to_save(self) -> None:
        self.disk.fill()
        self.server.call("BGSAVE")
        wait_until(lambda: self._reports("rdb_last_bgsave_status:err"), "the save fails")
        self.hold(0.5, 2.0)
        self.disk.free()
        wait_until(self._saved, "the server saves again")

    def _saved(self) -> bool:
        if not self._reports("rdb_bgsave_in_progress:1"):
            self.server.call("BGSAVE")
        return self._reports("rdb_last_bgsave_status:ok")

    def _reports(self, line: str) -> bool:
        return line in self.server.text("INFO", "persistence")

    def judge(self) -> Findings:
        self.settle(self.server.tcp_url)
        self.server.kill()  # what was acknowledged must be in the file
        self.server.start()
        return judge_keyspace([self.acknowledged("a")], everything([self.server.port]))


class EvictionScenario(LibraryScenario):
    title = "library, one Redis that evicts (allkeys-lru)"

    def start(self) -> None:
        self.server = self.stack.enter_context(
            RedisServer(tcp=True, options={"maxmemory-policy": "allkeys-lru"})
        )
        self.writer("a", self.server.tcp_url)

    def faults(self) -> Sequence[Fault]:
        return [Fault("memory full (allkeys-lru)", self._evict)]

    def _evict(self) -> None:
        """Lower the limit until some keys have gone, and not all."""
        with self.server.wire() as wire:
            limit = _number(wire.text("INFO", "memory"), "used_memory")
            before = _number(wire.text("INFO", "stats"), "evicted_keys")
            while _number(wire.text("INFO", "stats"), "evicted_keys") < before + EVICTED:
                limit -= LOWERED_BYTES
                wire.call("CONFIG", "SET", "maxmemory", limit)
            wire.call("CONFIG", "SET", "maxmemory", 0)

    def judge(self) -> Findings:
        """Eviction breaks relations, as documented. The audit must see all of it, and the repair mend it."""
        self.settle(self.server.tcp_url)
        keys = everything([self.server.port])
        broken = relation_violations(keys)
        findings = judge_keyspace([self.acknowledged("a")], keys, evicts=True)
        evicted = _number(self.server.text("INFO", "stats"), "evicted_keys")
        audit = self._keywright("audit")
        if (audit.returncode != 0) != bool(broken):
            findings.violate(f"{len(broken)} broken halves, but the audit ended with {audit.returncode}")
        self._keywright("repair", "--yes")
        left = relation_violations(everything([self.server.port]))
        for violation in left:
            findings.violate(f"after the repair: {violation}")
        findings.notes.append(
            f"{evicted} keys evicted, {len(broken)} broken halves, {len(left)} after the repair"
        )
        return findings

    def _keywright(self, *words: str) -> subprocess.CompletedProcess[str]:
        command = [
            sys.executable,
            "-m",
            "keywright",
            *words,
            "soak.loads.keyspace:space",
            "--url",
            self.server.tcp_url,
        ]
        return subprocess.run(
            command,
            capture_output=True,
            text=True,
            check=False,
            timeout=120,
            cwd=self.folder,
            env={**os.environ, "PYTHONPATH": str(ROOT), "COLUMNS": "200"},
        )


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
    return _number(server.text("INFO", "replication"), "master_repl_offset")


def _number(info: str, name: str) -> int:
    return int(info.split(f"{name}:")[1].split()[0])
