"""The commands of a repair step, as text for a person who decides about it.

A step is one script or transaction that checks its finding again and then sends these commands.
"""

from __future__ import annotations

import re

from keywright.keyspace import Key
from keywright.tools.audit.matcher import Matcher
from keywright.tools.repair.step import Step

__all__ = ["commands_of", "quoted"]

LONGEST = 120
_REMOVALS = {"hash": "HDEL", "set": "SREM", "zset": "ZREM", "stream": "XDEL"}
_PLAIN = re.compile(rb"[!-~]+")


def commands_of(step: Step, matcher: Matcher) -> list[str]:
    """Return the commands of a step in the syntax of redis-cli; a line with # where there is no fixed one."""
    name = quoted(step.name)
    kind = _kind(step.name, matcher)
    if step.action == "remove-key":
        return [f"UNLINK {name}"]
    if step.action in ("remove-entry", "unlist"):
        return [_removal(kind, name, step.member)]
    if step.action == "expire":
        return [f"PEXPIRE {name} (the declared time)"]
    if step.action == "seal":
        field = "" if step.member is None else f" {quoted(step.member)}"
        return [f"{'SET' if step.member is None else 'HSET'} {name}{field} (the sealed value)"]
    if step.action == "move" and step.other is not None:
        return [f"RENAMENX {name} {quoted(step.other)}"]
    if step.action in ("complete", "list", "settle") and step.other is not None:
        added = _addition(_kind(step.other, matcher), quoted(step.other))
        return [added] if step.action != "settle" else [f"{added}, or UNLINK {name} if another key has it"]
    if step.action == "withdraw":
        return [f"UNLINK {name}" if step.member is None else _removal(kind, name, step.member)]
    return [f"# {step.does or f'rewrites {name} in its present shape'}"]


def _kind(name: bytes, matcher: Matcher) -> type[Key] | None:
    known = matcher.match(name)
    return None if known is None else known.kind


def _removal(kind: type[Key] | None, name: str, member: bytes | None) -> str:
    redis_type = "" if kind is None else kind.redis_type
    entry = quoted(member or b"")
    return (
        f"LREM {name} 0 {entry}"
        if redis_type == "list"
        else f"{_REMOVALS.get(redis_type, 'SREM')} {name} {entry}"
    )


def _addition(kind: type[Key] | None, name: str) -> str:
    redis_type = "" if kind is None else kind.redis_type
    return {"string": f"SET {name} (its id)", "zset": f"ZADD {name} 1 (its id)"}.get(
        redis_type, f"SADD {name} (its id)"
    )


def quoted(data: bytes, longest: int = LONGEST) -> str:
    """Return bytes as an argument for redis-cli, shortened if they are long."""
    shown = data[:longest]
    if _PLAIN.fullmatch(shown) and not set(shown) & set(b"\"'\\"):
        text = shown.decode()
    else:
        text = '"' + "".join(_escaped(byte) for byte in shown) + '"'
    return text if len(data) <= longest else f"{text}… ({len(data):,} bytes)"


def _escaped(byte: int) -> str:
    char = chr(byte)
    if char in '"\\':
        return f"\\{char}"
    return char if 32 <= byte < 127 else f"\\x{byte:02x}"
