"""Operations of every kind from TypeScript, with both clients, and what it refuses."""

from __future__ import annotations

import pytest

from keywright.testing import RedisServer
from typescript_project import NodeProject

CLIENTS = pytest.mark.parametrize("client", ["ioredis", "node-redis"])


@CLIENTS
def test_operations_return_what_they_document(project: NodeProject, client: str, tcp_url: str) -> None:
    assert project.run("kinds", client, tcp_url) == {
        "counter": str(2**63 - 1),
        "overflow": "ReplyError",
        "taken": str(2**63 - 1),
        "window": True,
        "setAbsent": [True, False],
        "sliding": ["one", True],
        "swapped": "one",
        "lease": [True, False, True, "a"],
        "guarded": [False, True, "kept"],
        "released": [False, True],
        "claim": ["free", True, False, "held"],
        "finished": [False, True, "done", "with the claim"],
        "claimed": ["due", "also"],
        "settled": [True, False, True],
        "again": ["also"],
        "group": [True, False],
        "consumed": [True, [0, 255]],
        "pending": [["one", 1]],
        "reclaimed": 1,
        "acknowledged": [1, 0, True],
        "unknownGroup": "ValueRefusedError",
        "popped": [["x", 1], [["y", 2.5]]],
        "visitors": [True, 2],
        "near": ["paris"],
        "transaction": [True, 1, "in"],
        "rolledBack": [True, 2],
        "refused": ["VariableError", "VariableError", "ValueRefusedError", "UsageError", "UsageError"],
        "wrongType": ["ReplyError", True],
        "secret": ["Secret(…)", "UsageError"],
    }


@CLIENTS
def test_a_relation_is_refused_on_a_cluster(project: NodeProject, client: str) -> None:
    with RedisServer(tcp=True, options={"cluster-enabled": "yes"}) as server:
        refused = project.run("cluster", client, server.tcp_url)["refused"]

    assert refused == (
        "assign ChannelOfSeries ↔ SeriesOfChannel: a commit on a cluster needs the journal, which only "
        "Python writes. Use a single server, or do it in Python."
    )
