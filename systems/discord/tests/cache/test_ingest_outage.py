"""A recording is ingested while the server fails."""

from __future__ import annotations

import io
from collections.abc import Callable

import msgspec
import pytest

from keywright import Retry, Settings, connect
from keywright.testing import Raw, RedisCluster, RedisServer, wait_until
from keywright_discord import ingest as module
from keywright_discord.drc import bind
from keywright_discord.drc.store import DrcCache
from keywright_discord.ingest import IngestError, ingest
from keywright_discord.traffic import Traffic

from .survey import survey

PACKETS = [
    msgspec.json.encode({"op": 0, "t": t, "s": 1, "d": d}) + b"\n" for t, d in Traffic(seed=3).events(500)
]
# The engine reports an outage soon, so that the ingestion itself has to outlast it.
HASTY = Settings(timeout_seconds=0.5, retry=Retry(within_seconds=0.5))


class Recording(io.BytesIO):
    """A recording during which something happens: before a line of this number is read."""

    def __init__(self, number: int, event: Callable[[], None]) -> None:
        super().__init__(b"".join(PACKETS))
        self._left = number
        self._event = event

    def readline(self, size: int | None = -1, /) -> bytes:
        self._left -= 1
        if self._left == 0:
            self._event()
        return super().readline(size)


def test_a_recording_is_ingested_whole_while_a_master_fails_over(
    cluster_url: str, keywright_cluster: RedisCluster, raw_cluster: Raw
) -> None:
    def lose_a_master() -> None:
        master = next(each for each in keywright_cluster.masters() if each.tcp_url != cluster_url)
        (replica,) = keywright_cluster.replicas_of(master)
        wait_until(lambda: _offset(replica) == _offset(master), "the replica has every write")
        keywright_cluster.kill(master)

    with connect(cluster_url, *bind(prefix="failed"), settings=HASTY) as db:
        lines = [line for window in ingest(Recording(250, lose_a_master), DrcCache(), db) for line in window]
    assert [line.problem for line in lines if line.problem] == []
    assert len(lines) == len(PACKETS)
    with connect(cluster_url, *bind(prefix="whole")) as db:
        assert sum(len(window) for window in ingest(Recording(0, _nothing), DrcCache(), db)) == len(PACKETS)
    assert survey(raw_cluster, "failed:") == survey(raw_cluster, "whole:")


def _offset(server: RedisServer) -> str:
    replication = server.text("INFO", "replication").splitlines()
    return next(line for line in replication if line.startswith("master_repl_offset:"))


def _nothing() -> None:
    pass


def test_a_server_that_stays_away_is_reported_with_the_line_to_continue_from(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(module, "PATIENCE_SECONDS", 0.0)
    with RedisServer(tcp=True) as server, connect(server.tcp_url, *bind(), settings=HASTY) as db:
        windows = ingest(Recording(250, server.kill), DrcCache(), db)
        assert len(next(windows)) == 200
        with pytest.raises(IngestError, match=r"^line 201: .*cannot be reached.*again from line 201: "):
            next(windows)
        server.start()
        rest = io.BytesIO(b"".join(PACKETS[200:]))
        assert sum(len(window) for window in ingest(rest, DrcCache(), db)) == 300
