"""Reads at a chosen node: one reader for each primary, at a replica of it where one is up to date.

`Batch` and the calls below it are about a node itself, or about names that are known already.
"""

from __future__ import annotations

from collections.abc import Sequence
from operator import attrgetter
from typing import TypeAlias

from keywright.engine.scan import SCAN
from keywright.engine.settings import Settings
from keywright.engine.topology import Node, Topology
from keywright.errors import UsageError
from keywright.keyspace.call import Call, Plain
from keywright.keyspace.context import Context
from keywright.keyspace.template import escaped
from keywright.keyspace.wires import Effect, Operation, Reply, Rounds, Wire

__all__ = ["At", "Batch", "NodeReader", "info", "key_count", "name_page"]

REPLICA_CONNECT_SECONDS = 2.0
DBSIZE = Operation("key count", b"DBSIZE", Effect.READ)
INFO = Operation("info", b"INFO", Effect.READ)


class NodeReader:
    """The node that answers reads of one primary's keys: a replica if one is usable, else the primary.

    Pass it to `db.run(call, at=reader)`: every command of the call is sent there, whatever its key, and
    followed to another node where a cluster redirects it. A replica that goes away is replaced by its
    primary for good, and `label` changes. The primary has other SCAN cursors, so a walk over names must
    begin that node again then.
    """

    __slots__ = ("_server", "primary", "replica")

    def __init__(self, primary: Node | None, server: str, replica: Node | None = None) -> None:
        self.primary = primary
        self.replica = replica
        self._server = server

    @property
    def node(self) -> Node | None:
        """Return the node to send to; None means the only server of a database without a cluster."""
        return self.replica or self.primary

    @property
    def label(self) -> str:
        """Return the address, and whether it is a replica's, as text."""
        return f"{self.replica} (replica)" if self.replica else str(self.primary or self._server)

    def fall_back(self) -> None:
        self.replica = None

    def __repr__(self) -> str:
        return f"<NodeReader {self.label}>"


At: TypeAlias = NodeReader | Sequence[NodeReader]


def readers_of(at: At) -> Sequence[NodeReader]:
    return (at,) if isinstance(at, NodeReader) else at


_effect = attrgetter("operation.effect")


def require_reads(wires: Sequence[Wire]) -> None:
    """Raise UsageError if one of the commands writes: a replica would refuse it."""
    effects = list(map(_effect, wires))
    if effects.count(Effect.READ) != len(wires):
        culprit = next(wire for wire in wires if wire.operation.effect is not Effect.READ)
        raise UsageError(
            f"{culprit.operation.name!r} on {culprit.name!r} may write, and a chosen node is only read. "
            f"Run the call without `at`."
        )


def replica_candidates(primary: Node | None, topology: Topology | None, info: Reply) -> list[Node]:
    """Return the replicas of a primary, as the topology or the server's INFO lists them."""
    if topology is not None:
        return [] if primary is None else topology.replicas.get(primary, [])
    return _listed(info.decode("utf-8", "replace")) if isinstance(info, bytes) else []


def is_up_to_date(info: Reply) -> bool:
    """Return whether INFO says that a replica follows its primary; False if INFO is not permitted."""
    return isinstance(info, bytes) and b"master_link_status:up" in info


def impatient(settings: Settings) -> Settings:
    """Return settings with a short connect timeout: INFO may report a replica at an unreachable address."""
    return settings._replace(connect_seconds=min(settings.connect_seconds, REPLICA_CONNECT_SECONDS))


def _listed(info: str) -> list[Node]:
    """Return the replicas in INFO: `slave0:ip=10.0.0.2,port=6379,state=online,…`."""
    nodes = []
    for line in info.splitlines():
        name, _, described = line.partition(":")
        if name.startswith("slave") and "state=online" in described:
            facts = dict(part.split("=", 1) for part in described.split(",") if "=" in part)
            nodes.append(Node(facts["ip"], int(facts["port"]), replica=True))
    return nodes


class Batch(Call[list[Reply]]):
    """A batch of commands on bound names. It returns the raw replies, with errors as values."""

    __slots__ = ("wires",)

    def __init__(self, wires: Sequence[Wire]) -> None:
        self.wires = wires

    def rounds(self, context: Context) -> Rounds[list[Reply]]:
        return (yield list(self.wires))


def key_count() -> Call[int]:
    """Return the number of keys of a node, of any keyspace."""
    return Plain(DBSIZE).map(int)


def info(section: bytes | None = None) -> Call[dict[str, str]]:
    """Return the fields of INFO, of one section (servers before 7.0 take no more) or of the usual ones."""
    return Plain(INFO, () if section is None else (section,)).map(info_fields)


def name_page(cursor: int, count: int, *, lead: bytes = b"", pattern: bytes = b"") -> Call[Names]:
    """Return one page of SCAN: the next cursor, and the names that begin with `lead` or match a pattern."""
    pattern = pattern or (escaped(lead) + b"*" if lead else b"")
    match = (b"MATCH", pattern) if pattern else ()
    return Plain(SCAN, (cursor, *match, b"COUNT", count)).map(_page)


Names = tuple[int, list[bytes]]


def _page(reply: Reply) -> Names:
    return int(reply[0]), reply[1]


def info_fields(reply: bytes) -> dict[str, str]:
    """Return the fields of a reply to INFO."""
    lines = (line.partition(":") for line in reply.decode("utf-8", "replace").splitlines() if ":" in line)
    return {name: value for name, _, value in lines}
