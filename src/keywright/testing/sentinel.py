"""One master, one replica and the three sentinels that watch them."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import Self

from keywright.engine.embedded import ServerProcess
from keywright.testing.conditions import wait_until
from keywright.testing.servers import LOOPBACK, RedisServer

__all__ = ["RedisSentinel"]

_NAME = "mymaster"
_SENTINELS = 3
_QUORUM = 2


class RedisSentinel:
    """A real Sentinel deployment; kill the master and a replacement is elected within a few seconds."""

    def __init__(self, *, options: Mapping[str, str] | None = None, binary: Path | None = None) -> None:
        first = RedisServer(tcp=True, options=options, binary=binary)
        second = RedisServer(tcp=True, options=options, replica_of=first, binary=binary)
        self.servers = (first, second)
        self.sentinels = tuple(_Sentinel(first, binary) for _ in range(_SENTINELS))

    @property
    def url(self) -> str:
        """Return the URL of the service, with all sentinels."""
        hosts = ",".join(f"{LOOPBACK}:{sentinel.port}" for sentinel in self.sentinels)
        return f"redis+sentinel://{hosts}/{_NAME}/0"

    @property
    def master(self) -> RedisServer:
        """Return the server that the first living sentinel reports as master."""
        sentinel = next(sentinel for sentinel in self.sentinels if sentinel.answers)
        address = sentinel.call("SENTINEL", "GET-MASTER-ADDR-BY-NAME", _NAME)
        assert isinstance(address, list)
        return next(server for server in self.servers if str(server.port).encode() == address[1])

    def hand_over(self) -> RedisServer:
        """Make the replica the master and return it. The former master stays alive, with its connections.

        So does a planned failover with `SENTINEL FAILOVER … COORDINATED` or `FAILOVER`; a kill does not.
        """
        former = self.master
        chosen = next(server for server in self.servers if server is not former)
        chosen.call("REPLICAOF", "NO", "ONE")
        for sentinel in self.sentinels:
            sentinel.call("SENTINEL", "REMOVE", _NAME)
            sentinel.call("SENTINEL", "MONITOR", _NAME, LOOPBACK, chosen.port, _QUORUM)
        former.call("REPLICAOF", LOOPBACK, chosen.port)
        return chosen

    def start(self) -> Self:
        """Start all five. Return when each sentinel knows the replica and the other two."""
        try:
            for server in (*self.servers, *self.sentinels):
                server.start()
            wait_until(
                lambda: all(s.knows_the_others() for s in self.sentinels), "the sentinels know each other"
            )
        except BaseException:
            self.close()
            raise
        return self

    def close(self) -> None:
        """Kill all five and remove their folders."""
        for server in (*self.sentinels, *self.servers):
            server.close()

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


class _Sentinel(RedisServer):
    def __init__(self, watched: RedisServer, binary: Path | None) -> None:
        super().__init__(tcp=True, binary=binary)
        self._watched = watched

    def knows_the_others(self) -> bool:
        fields = self.call("SENTINEL", "MASTER", _NAME)
        assert isinstance(fields, list)
        state = dict(zip(fields[::2], fields[1::2], strict=True))
        return (
            state[b"num-other-sentinels"] == b"2"
            and state[b"num-slaves"] == b"1"
            and state[b"flags"] == b"master"
        )

    def make_process(self, folder: Path) -> ServerProcess:
        return ServerProcess(folder, binary=self._binary, flags=["--sentinel"])

    def _settings(self, folder: Path) -> dict[str, str]:
        return self._listening(folder) | {
            f"sentinel monitor {_NAME}": f"{LOOPBACK} {self._watched.port} {_QUORUM}",
            f"sentinel down-after-milliseconds {_NAME}": "1000",
            f"sentinel failover-timeout {_NAME}": "3000",
            f"sentinel parallel-syncs {_NAME}": "1",
        }
