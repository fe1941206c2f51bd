"""The library on one server: with faults of all kinds, clock jumps, a full disk, and eviction."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from keywright.testing import Proxy, RedisServer, wait_until
from soak.clock import ClockedRedis, clocked_server
from soak.disk import TinyDisk
from soak.faults import clock_faults, memory_fault, program_faults, proxy_faults, server_faults
from soak.judge.findings import Findings
from soak.judge.keyspace import judge_keyspace, relation_violations
from soak.judge.raw import everything
from soak.programs import Program
from soak.scenario import Fault, Scenario

__all__ = [
    "ALWAYS",
    "ClockScenario",
    "DiskScenario",
    "EvictionScenario",
    "LibraryScenario",
    "SingleScenario",
    "number_in",
]

ROOT = Path(__file__).parents[2]
ALWAYS = {"appendfsync": "always"}
EVICTED, LOWERED_BYTES = 30, 2_000


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
        findings = judge_keyspace(map(self.acknowledged, "ab"), everything([self.server.port]))
        facts = dict(
            line.split(":", 1) for line in self.server.text("INFO", "server").splitlines() if ":" in line
        )
        version = facts.get("valkey_version") or facts["redis_version"]
        findings.notes.append(f"the server that starts with libfaketime is of version {version}")
        return findings


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
        self.server.kill()  # acknowledged writes must be in the file
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
            limit = number_in(wire.text("INFO", "memory"), "used_memory")
            before = number_in(wire.text("INFO", "stats"), "evicted_keys")
            while number_in(wire.text("INFO", "stats"), "evicted_keys") < before + EVICTED:
                limit -= LOWERED_BYTES
                wire.call("CONFIG", "SET", "maxmemory", limit)
            wire.call("CONFIG", "SET", "maxmemory", 0)

    def judge(self) -> Findings:
        """Eviction breaks relations, as documented. The audit must see all of it, and the repair mend it."""
        self.settle(self.server.tcp_url)
        keys = everything([self.server.port])
        broken = relation_violations(keys)
        findings = judge_keyspace([self.acknowledged("a")], keys, evicts=True)
        evicted = number_in(self.server.text("INFO", "stats"), "evicted_keys")
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


def number_in(info: str, name: str) -> int:
    """Return a number of the reply to INFO."""
    return int(info.split(f"{name}:")[1].split()[0])
