"""A cluster of any number of masters without replicas, for measurements only."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

from keywright.testing import RedisServer
from keywright.testing.conditions import wait_until

__all__ = ["masters"]

OPTIONS = {"appendonly": "no", "cluster-enabled": "yes", "cluster-config-file": "nodes.conf"}


@contextmanager
def masters(count: int) -> Iterator[str]:
    """Start the nodes and join them. Yield the URL of the first."""
    with ExitStack() as stack:
        nodes = [stack.enter_context(RedisServer(tcp=True, options=OPTIONS)) for _ in range(count)]
        asked = ["redis-cli", "--cluster", "create", *(f"127.0.0.1:{node.port}" for node in nodes)]
        subprocess.run([*asked, "--cluster-replicas", "0", "--cluster-yes"], check=True, capture_output=True)
        wait_until(lambda: all(_is_whole(node, count) for node in nodes), "every node knows all slots")
        yield nodes[0].tcp_url


def _is_whole(node: RedisServer, count: int) -> bool:
    info = node.text("CLUSTER", "INFO")
    return "cluster_state:ok" in info and f"cluster_size:{count}" in info
