"""The topology of a cluster: the node that serves each slot."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple

from keywright.engine.address import Address
from keywright.engine.replies import reading_a_reply
from keywright.engine.retry import NEVER
from keywright.engine.settings import Settings
from keywright.errors import KeywrightError
from keywright.keyspace.slots import SLOTS


class Node(NamedTuple):
    """The address of a node, and whether it is used as a replica, on read-only connections."""

    host: str
    port: int
    replica: bool = False

    def __str__(self) -> str:
        return f"{self.host}:{self.port}"


def known_nodes(address: Address) -> list[Node | None]:
    """Return the nodes that may be asked for the topology first; None stands for the address itself."""
    return [None, *(Node(host, port) for host, port in address.others)]


class Topology:
    """The slots of a cluster as one node last described them, corrected by redirections."""

    source: Node | None = None
    """The node that described it; None stands for the address of the database."""

    def __init__(self, owners: list[Node | None], replicas: dict[Node, list[Node]]) -> None:
        self._owners = owners
        self.replicas = replicas

    @classmethod
    def parse(cls, reply: list[Any], asked: Node) -> Topology:
        """Parse CLUSTER SLOTS. A node without an address has that of the node that was asked."""
        owners: list[Node | None] = [None] * SLOTS
        replicas: dict[Node, list[Node]] = {}
        for first, last, primary, *others in reply:
            node = _node(primary, asked)
            owners[first : last + 1] = [node] * (last - first + 1)
            replicas[node] = [_node(other, asked)._replace(replica=True) for other in others]
        return cls(owners, replicas)

    def owner(self, slot: int) -> Node | None:
        return self._owners[slot]

    def moved(self, slot: int, node: Node) -> None:
        self._owners[slot] = node
        self.replicas.setdefault(node, [])

    @property
    def primaries(self) -> list[Node]:
        return sorted({node for node in self._owners if node is not None})

    @property
    def sources(self) -> Iterable[Node | None]:
        """Return every node that may be asked for the topology, first the one that answered last."""
        listed = list(self.replicas.values())  # at once: another thread may learn of a node meanwhile
        replicas = [node._replace(replica=False) for nodes in listed for node in nodes]
        return dict.fromkeys([self.source, *self.primaries, *replicas, None])


# A silent node must not hold up the question to the next one. Later attempts wait longer, for slow networks.
BRIEF_SECONDS = 0.25


def brief(settings: Settings, attempt: int) -> Settings:
    """Return the settings for asking one node of several for the topology, at an attempt of a delivery."""
    seconds = min(BRIEF_SECONDS * 2.0 ** min(attempt, 10), settings.timeout_seconds)
    return settings._replace(retry=NEVER, durability=None, timeout_seconds=seconds)


@reading_a_reply("CLUSTER SLOTS")
def described(reply: Any, node: Node | None, address: Address) -> Topology | KeywrightError | None:
    """Return the topology in a reply to CLUSTER SLOTS; None if the node knows of no slots."""
    if isinstance(reply, KeywrightError) or not reply:
        return reply or None
    settings = address.settings
    asked = node or Node(settings.get("host", "localhost"), settings.get("port", 6379))
    topology = Topology.parse(reply, asked)
    topology.source = node
    return topology


class Redirection(NamedTuple):
    """A MOVED or ASK reply."""

    slot: int
    node: Node
    asking: bool


@reading_a_reply("a command of a cluster")
def parse_redirection(text: str, asked: Node) -> Redirection:
    kind, slot, address = text.split(" ")[:3]
    host, _, port = address.rpartition(":")
    return Redirection(int(slot), _at(host, int(port), asked), kind == "ASK")


def _node(entry: list[Any], asked: Node) -> Node:
    return _at(entry[0].decode() if entry[0] else "", entry[1], asked)


def _at(host: str, port: int, asked: Node) -> Node:
    """Return a node. No host, or `?` for a hostname that is not set, stands for the host that was asked."""
    return Node(asked.host if host in ("", "?") else host, port)
