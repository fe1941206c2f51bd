"""Audits of a project at work, and the repair of faults that are planted in its data."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from foreign.projects import Length, Workload
from invoking import invoke_keywright
from keywright.testing import RedisServer, wait_until

__all__ = ["Fault", "Figures", "Report", "audited", "audits_during_load", "check_repair"]

LOAD_SECONDS = 120
SHORT_MS = 3000
"""Keys that expire sooner are given the time to do so before a fault is planted."""
TTL_SLACK_MS = 1000

Report = dict[str, Any]


def audited(model: str, server: RedisServer) -> Report:
    """Return the report of `keywright audit`."""
    done = invoke_keywright(
        "audit", model, "--url", server.url, "--format", "json", "--show-ids", "--full-speed"
    )
    assert done.exit_code in (0, 1), done.output
    report: Report = json.loads(done.stdout)
    return report


def audits_during_load(model: str, server: RedisServer, load: Workload, length: Length) -> list[Report]:
    """Audit several times while the project writes, each time after some changes of its own."""
    reports = []
    for _ in range(length.audits):
        enough = _changes(server) + length.changes
        wait_until(
            lambda: not load.running or _changes(server) > enough,  # noqa: B023
            "the workload writes",
            seconds=LOAD_SECONDS,
        )
        reports.append(audited(model, server))
        assert load.running, load.log
    return reports


@dataclass(frozen=True)
class Figures:
    """What the audits of a project saw."""

    name: str
    reports: Sequence[Report]
    seconds: float

    @property
    def text(self) -> str:
        keys = sum(report["names"] + report["outside"] for report in self.reports)
        matched = sum(row["keys"] for report in self.reports for row in report["templates"])
        findings = sum(sum(report["counts"].values()) for report in self.reports)
        share = matched / keys if keys else 0.0
        return (
            f"{self.name:15} {len(self.reports):3} audits {keys:9,} keys  {share:7.2%} matched "
            f"{findings:4} findings {self.seconds:6.1f} s"
        )


def _changes(server: RedisServer) -> int:
    found = re.search(r"rdb_changes_since_last_save:(\d+)", server.text("INFO", "persistence"))
    assert found is not None
    return int(found[1])


@dataclass(frozen=True)
class Fault:
    """One fault: how it is planted, its code, and the word of `--remove`."""

    name: str
    code: str
    word: str
    plant: Callable[[Any], object]
    within: bytes | None = None
    """The key that holds it beside sound data. None: the fault is a key of its own."""

    def __str__(self) -> str:
        return self.name


class Stored(NamedTuple):
    """One key: its serialized value, and its time to live in milliseconds (-1: no expiry)."""

    dump: bytes
    ttl: int


def check_repair(fault: Fault, model: str, server: RedisServer, client: Any, folder: Path) -> None:
    """Plant a fault, assert that the audit finds it alone, and that the repair restores what was before."""
    wait_until(
        lambda: not any(0 <= ttl < SHORT_MS for _, ttl in _stored(client).values()),
        "no key expires within seconds",
    )
    assert audited(model, server)["counts"] == {}
    started = time.monotonic()  # before the first time to live is read
    before = _stored(client)
    content = None if fault.within is None else _content(client, fault.within)
    try:
        fault.plant(client)
        assert audited(model, server)["counts"] == {fault.code: 1}
        options = ("--remove", fault.word, "--undo-to", str(folder / "undo.jsonl"), "--yes", "--full-speed")
        done = invoke_keywright("repair", model, "--url", server.url, *options)
        after, passed = _stored(client), (time.monotonic() - started) * 1000 + TTL_SLACK_MS
        assert after.keys() <= before.keys()
        for name, (dump, ttl) in before.items():
            if name not in after:
                assert 0 <= ttl < passed, f"{name!r} is gone"
                continue
            assert after[name].ttl == ttl == -1 or ttl - passed < after[name].ttl <= ttl
            if name == fault.within:
                assert _content(client, name) == content
            else:
                assert after[name].dump == dump, f"{name!r} was changed"
        assert done.exit_code == 0, done.output
        assert audited(model, server)["counts"] == {}
    finally:
        _restore(client, before)


def _restore(client: Any, before: dict[bytes, Stored]) -> None:
    """Undo what a test that failed has left, for the tests that follow."""
    for name, found in _stored(client).items():
        if name not in before:
            client.delete(name)
        elif found.dump != before[name].dump:
            client.restore(name, max(0, before[name].ttl), before[name].dump, replace=True)
    for name in before.keys() - _stored(client).keys():
        client.restore(name, max(0, before[name].ttl), before[name].dump)


def _stored(client: Any) -> dict[bytes, Stored]:
    names = list(client.scan_iter(count=1000))
    with client.pipeline(transaction=False) as pipe:
        for name in names:
            pipe.dump(name).pttl(name)
        replies = iter(pipe.execute())
    found = zip(names, replies, replies, strict=True)
    return {name: Stored(dump, ttl) for name, dump, ttl in found if dump is not None}


def _content(client: Any, name: bytes) -> Any:
    """Return the entries of a collection: a removal may leave another encoding behind, so DUMP may differ."""
    reads = {
        b"list": lambda: client.lrange(name, 0, -1),
        b"set": lambda: client.smembers(name),
        b"zset": lambda: client.zrange(name, 0, -1, withscores=True),
        b"hash": lambda: client.hgetall(name),
    }
    return reads[client.type(name)]()
