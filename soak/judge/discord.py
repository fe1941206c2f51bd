"""Judges the gateway: every message of Discord reached a worker, and the cache is as Discord is."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from pathlib import Path

from soak.judge.findings import Findings
from soak.judge.logs import OK, attempts
from soak.judge.messages import handled
from soak.judge.raw import Keys

__all__ = ["judge_discord"]

PRIVATE = "private"
Guilds = dict[str, dict[str, list[str]]]


def judge_discord(
    said: Path, world: Path, keys: Keys, gateways: dict[str, Path], queued: set[str]
) -> Findings:
    """Judge by the log of messages, the world of the simulator, and for each gateway, by the prefix of its
    cache, the log of its worker.
    """
    findings = Findings()
    messages = list(attempts([said]))
    for attempt in messages:
        if attempt.outcome != OK:
            findings.error(attempt.error)
    for prefix, worked in gateways.items():
        received = handled(worked)
        sent = [attempt.item for attempt in messages if attempt.outcome == OK]
        findings.acknowledged += len(sent)
        for message in sent:
            if message not in received and message not in queued:
                findings.lose(f"message {message} did not reach the worker of {prefix}")
        findings.repeated += sum(times - 1 for times in received.values())
    guilds = json.loads(world.read_text())
    caches = [_cache(prefix, keys) for prefix in gateways]
    for prefix, cache in zip(gateways, caches, strict=True):
        _judge_cache(prefix, guilds, cache, findings)
    _judge_agreement(guilds, caches, findings)
    return findings


def _cache(prefix: str, keys: Keys) -> Keys:
    public, private = f"{prefix}:v1json:", f"{prefix}:v1json-private:"
    return {
        name.removeprefix(public).replace(private, f"{PRIVATE}:", 1): value
        for name, value in keys.items()
        if name.startswith((public, private))
    }


def _judge_cache(prefix: str, guilds: Guilds, cache: Keys, findings: Findings) -> None:
    """Everything on Discord is in the cache, and members have their own keys."""
    _require("guilds", guilds, cache, prefix, findings)
    for guild, parts in guilds.items():
        if f"guilds:{guild}" not in cache:
            findings.violate(f"{prefix}: the guild {guild} is not cached")
        for part, ids in parts.items():
            _require(f"{part}:{guild}", ids, cache, prefix, findings)
        present = {
            name.rpartition(":")[2].encode() for name in cache if name.startswith(f"presence:{guild}:")
        }
        for each in present ^ set(cache.get(f"{PRIVATE}:presences:{guild}", ())):
            findings.violate(f"{prefix}: the presence of {each.decode()} in {guild} and its index disagree")
        for member in cache.get(f"members:{guild}", ()):
            if f"members:{guild}:{member.decode()}" not in cache:
                findings.violate(f"{prefix}: the member {member.decode()} of {guild} is not cached")


def _judge_agreement(guilds: Guilds, caches: Sequence[Keys], findings: Findings) -> None:
    """Both gateways got the same events, so their caches have the same entries.

    They may have members who left: the simulator's events name some of them later.
    """
    one, other = caches
    for guild, parts in guilds.items():
        for part in parts:
            for each in set(one.get(f"{part}:{guild}", ())) ^ set(other.get(f"{part}:{guild}", ())):
                findings.violate(f"{part}:{guild} has {each.decode()} in one cache only")


def _require(name: str, wanted: Iterable[str], cache: Keys, prefix: str, findings: Findings) -> None:
    for each in set(wanted) - {each.decode() for each in cache.get(name, ())}:
        findings.violate(f"{prefix}: {name} lacks {each}")
