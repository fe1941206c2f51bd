"""Raw reads of Redis with redis-py: every key of a server, of a cluster's masters, and of streams."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import redis

__all__ = ["Keys", "client", "everything"]

Keys = dict[str, Any]
"""Names with their values: bytes, sets, dicts, lists of bytes, or stream entries."""

_PAGE = 500


def client(port: int) -> Any:
    """Return a client of the server on this loopback port."""
    return redis.Redis(host="127.0.0.1", port=port, socket_timeout=30, protocol=2)


def everything(ports: Iterable[int]) -> Keys:
    """Return all keys of these servers. Replicas are left out."""
    found: Keys = {}
    for port in ports:
        with client(port) as server:
            if server.info("replication")["role"] == "master":
                _read(server, found)
    return found


def _read(server: Any, found: Keys) -> None:
    readers = {
        b"string": lambda pipe, name: pipe.get(name),
        b"set": lambda pipe, name: pipe.smembers(name),
        b"hash": lambda pipe, name: pipe.hgetall(name),
        b"zset": lambda pipe, name: pipe.zrange(name, 0, -1, withscores=True),
        b"list": lambda pipe, name: pipe.lrange(name, 0, -1),
        b"stream": lambda pipe, name: pipe.xrange(name),
    }
    names = list(dict.fromkeys(server.scan_iter(count=_PAGE)))
    for begin in range(0, len(names), _PAGE):
        page = names[begin : begin + _PAGE]
        types = server.pipeline(transaction=False)
        for name in page:
            types.type(name)
        values = server.pipeline(transaction=False)
        read = []
        for name, kind in zip(page, types.execute(), strict=True):
            if kind in readers:  # else it has expired meanwhile
                readers[kind](values, name)
                read.append(name)
        for name, value in zip(read, values.execute(), strict=True):
            found[name.decode("utf-8", "backslashreplace")] = value
