"""A six-node Redis Cluster on loopback: real slots, real redirections, real failover."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path
from types import TracebackType
from typing import Self

from keywright.errors import KeywrightError, ServerRefusedError, UsageError
from keywright.keyspace.slots import SLOTS, slot_of
from keywright.testing.conditions import wait_until
from keywright.testing.servers import LOOPBACK, RedisServer
from keywright.testing.wire import RawConnection

__all__ = ["RedisCluster"]

_MASTERS = 3
_MOVE_AT_ONCE = 100
_MOVE_TIMEOUT_MS = 5_000
_FAILOVER_SECONDS = 6.0


class RedisCluster:
    """Three masters with one replica each. Every node is a RedisServer that a test may kill or freeze.

    A dead master is replaced after about twice `node_timeout_ms`. Which nodes are masters changes with
    failovers: ask master_of().
    """

    def __init__(
        self,
        *,
        node_timeout_ms: int = 2_000,
        options: Mapping[str, str] | None = None,
        password: str | None = None,
        binary: Path | None = None,
    ) -> None:
        self._password = password
        settings = {
            "cluster-enabled": "yes",
            "cluster-config-file": "nodes.conf",
            "cluster-node-timeout": str(node_timeout_ms),
            "repl-ping-replica-period": "1",
            **({} if password is None else {"masterauth": password}),
            **(options or {}),
        }
        self.nodes = tuple(
            RedisServer(tcp=True, password=password, options=settings, binary=binary)
            for _ in range(2 * _MASTERS)
        )
        self._formed = False

    @property
    def url(self) -> str:
        """Return the URL of the first living node; a cluster client finds the others."""
        return self._living()[0].tcp_url

    def start(self) -> Self:
        """Start the nodes and join them. Return when every node reports ok and every replica is in sync."""
        if self._formed:
            return self
        try:
            for node in self.nodes:
                node.start()
            self._form()
        except BaseException:
            self.close()
            raise
        self._formed = True
        return self

    def close(self) -> None:
        """Kill every node and remove the folders."""
        for node in self.nodes:
            node.close()
        self._formed = False

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def masters(self) -> tuple[RedisServer, ...]:
        """Return the living nodes that own slots."""
        return tuple(node for node in self._living() if _itself(node).slots)

    def replicas_of(self, master: RedisServer) -> tuple[RedisServer, ...]:
        """Return the living replicas of a living master."""
        master_id = _itself(master).id
        return tuple(node for node in self._living() if _itself(node).master_id == master_id)

    def master_of(self, slot: int, *, seconds: float = 30.0) -> RedisServer:
        """Return the living node that owns the slot. Wait for a failover if there is none."""
        return wait_until(lambda: self._claimant(slot), f"a living node owns slot {slot}", seconds=seconds)

    def kill(self, node: RedisServer) -> None:
        """Crash one node with SIGKILL."""
        node.kill()

    def hand_over(self, master: RedisServer) -> RedisServer:
        """Make the replica of a living master the master and return it: CLUSTER FAILOVER.

        A node gives an attempt up when the others do not answer within 5 s, so it is asked again then.
        """
        (replica,) = self.replicas_of(master)
        asked_at = -_FAILOVER_SECONDS

        def is_demoted() -> bool:
            nonlocal asked_at
            if "role:slave" in master.text("INFO", "replication"):
                return True
            if time.monotonic() - asked_at > _FAILOVER_SECONDS:
                asked_at = time.monotonic()
                replica.call("CLUSTER", "FAILOVER")
            return False

        wait_until(is_demoted, "the master was demoted", seconds=60)
        return replica

    def heal(self) -> None:
        """Wake frozen nodes, start dead ones, and wait until the cluster is whole again."""
        for node in self.nodes:
            node.resume()
            node.start()
        self._wait_until_whole()

    def flush(self) -> None:
        """Delete every key, on the masters and, as far as they follow, on the replicas."""
        for master in self.masters():
            with master.wire() as wire:
                wire.call("FLUSHALL")
                wire.call("WAIT", 1, 1_000)

    def migrate_slot(self, slot: int, to: RedisServer) -> None:
        """Migrate a slot with its keys, as resharding does."""
        self.begin_migration(slot, to)
        self.finish_migration(slot, to)

    def begin_migration(self, slot: int, to: RedisServer) -> None:
        """Begin to migrate a slot: from now on its owner answers ASK for a key that it does not hold."""
        source = self.master_of(slot)
        if source is to:
            raise UsageError(f"slot {slot} is on that node already. Choose another master.")
        to.call("CLUSTER", "SETSLOT", slot, "IMPORTING", _itself(source).id)
        source.call("CLUSTER", "SETSLOT", slot, "MIGRATING", _itself(to).id)

    def move_key(self, key: str | bytes, to: RedisServer) -> None:
        """Move one key of an open slot."""
        source = self.master_of(slot_of(key.encode() if isinstance(key, str) else key))
        with source.wire() as wire:
            self._move(wire, [key], to)

    def finish_migration(self, slot: int, to: RedisServer) -> None:
        """Move the remaining keys and assign the slot to its new owner. Return when every node agrees."""
        source = self.master_of(slot)
        target_id = _itself(to).id
        with source.wire() as wire:
            while keys := wire.call("CLUSTER", "GETKEYSINSLOT", slot, _MOVE_AT_ONCE):
                assert isinstance(keys, list)
                self._move(wire, [key for key in keys if isinstance(key, bytes)], to)
        # The target first: if it missed the change, no node would own the slot.
        for master in dict.fromkeys((to, source, *self.masters())):
            master.call("CLUSTER", "SETSLOT", slot, "NODE", target_id)
        wait_until(
            lambda: all(_owner_id(node, slot) == target_id for node in self._living()),
            f"every node knows the new owner of slot {slot}",
        )

    def _move(self, wire: RawConnection, keys: Sequence[str | bytes], to: RedisServer) -> None:
        login = () if self._password is None else ("AUTH", self._password)
        wire.call("MIGRATE", LOOPBACK, to.port, "", 0, _MOVE_TIMEOUT_MS, *login, "KEYS", *keys)

    def _form(self) -> None:
        masters, replicas = self.nodes[:_MASTERS], self.nodes[_MASTERS:]
        for epoch, node in enumerate(self.nodes, start=1):
            node.call("CLUSTER", "SET-CONFIG-EPOCH", epoch)
        for number, master in enumerate(masters):
            _take_slots(master, SLOTS * number // _MASTERS, SLOTS * (number + 1) // _MASTERS - 1)
        # Everyone meets everyone: waiting for gossip to introduce them takes seconds.
        for node, other in combinations(self.nodes, 2):
            node.call("CLUSTER", "MEET", LOOPBACK, other.port)
        wait_until(lambda: all(_knows_all(node) for node in self.nodes), "the six nodes know each other")
        for replica, master in zip(replicas, masters, strict=True):
            replica.call("CLUSTER", "REPLICATE", _itself(master).id)
        self._wait_until_whole()

    def _wait_until_whole(self) -> None:
        wait_until(
            lambda: all(_is_settled(node) for node in self.nodes),
            "the cluster is ok and its replicas are in sync",
        )

    def _living(self) -> tuple[RedisServer, ...]:
        living = tuple(node for node in self.nodes if node.answers)
        if not living:
            raise UsageError(
                "no node of this cluster answers. Call start(), or heal() after killing them all."
            )
        return living

    def _claimant(self, slot: int) -> RedisServer | None:
        # An old master that just came back still claims its slots; the higher epoch wins.
        views = ((_itself(node), node) for node in self._living())
        claims = [(view.epoch, node) for view, node in views if any(slot in span for span in view.slots)]
        return max(claims, key=lambda claim: claim[0])[1] if claims else None


@dataclass(frozen=True)
class _View:
    """One line of CLUSTER NODES."""

    id: str
    flags: tuple[str, ...]
    master_id: str
    epoch: int
    slots: tuple[range, ...]


def _views(node: RedisServer) -> Iterator[_View]:
    for line in node.text("CLUSTER", "NODES").splitlines():
        node_id, _, flags, master_id, _, _, epoch, _, *slots = line.split(" ")
        yield _View(node_id, tuple(flags.split(",")), master_id, int(epoch), tuple(_spans(slots)))


def _spans(slots: Sequence[str]) -> Iterator[range]:
    for span in slots:
        if not span.startswith("["):  # an open slot is listed again in brackets
            first, _, last = span.partition("-")
            yield range(int(first), int(last or first) + 1)


def _itself(node: RedisServer) -> _View:
    return next(view for view in _views(node) if "myself" in view.flags)


def _owner_id(node: RedisServer, slot: int) -> str | None:
    return next((view.id for view in _views(node) if any(slot in span for span in view.slots)), None)


def _knows_all(node: RedisServer) -> bool:
    views = list(_views(node))
    return len(views) == 2 * _MASTERS and not any("handshake" in view.flags for view in views)


def _is_settled(node: RedisServer) -> bool:
    """Return whether the node sees every slot replicated, and follows its master if it has one."""
    try:
        with node.wire() as wire:
            covered = "cluster_state:ok" in wire.text("CLUSTER", "INFO")
            followed = (
                "role:master" in (info := wire.text("INFO", "replication")) or "master_link_status:up" in info
            )
            ranges = wire.call("CLUSTER", "SLOTS")
    except KeywrightError:
        return False  # still loading its data
    assert isinstance(ranges, list)
    return (
        covered
        and followed
        and all(isinstance(entry, list) and len(entry) > _MASTER_ONLY for entry in ranges)
    )


_MASTER_ONLY = 3  # a CLUSTER SLOTS entry: first slot, last slot, master, then the replicas


def _take_slots(master: RedisServer, first: int, last: int) -> None:
    try:
        master.call("CLUSTER", "ADDSLOTSRANGE", first, last)
    except ServerRefusedError:  # before Redis 7.0
        master.call("CLUSTER", "ADDSLOTS", *range(first, last + 1))
