"""The content of a DRC cache, read with redis-py alone."""

from __future__ import annotations

import json
from typing import Any

from keywright.testing import Raw

PREFIX = "keywright:v1json:"
PRIVATE = "keywright:v1json-private:"


def survey(raw: Raw, prefix: str = PREFIX) -> dict[str, Any]:
    """Return every key below a prefix: documents decoded, hashes as dictionaries, sets as sets.

    Those who left last are left out: their key has the hour in its name.
    """
    names = sorted(name.decode() for name in raw.names() if b":departed:" not in name)
    return {name[len(prefix) :]: read(raw, name) for name in names if name.startswith(prefix)}


def read(raw: Raw, name: str) -> Any:
    kind = raw("TYPE", name)
    if kind == b"string":
        return json.loads(raw("GET", name))
    if kind == b"hash":
        return {field.decode(): _document(value) for field, value in _pairs(raw("HGETALL", name))}
    assert kind == b"set", (name, kind)
    return {member.decode() for member in raw("SMEMBERS", name)}


def _pairs(reply: Any) -> list[tuple[bytes, bytes]]:
    return list(reply.items()) if isinstance(reply, dict) else list(zip(reply[::2], reply[1::2], strict=True))


def _document(value: bytes) -> Any:
    return json.loads(value)
