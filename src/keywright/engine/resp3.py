"""Replies in RESP3 become those of RESP2, so that every call reads one form."""

from __future__ import annotations

import json
from typing import Any

from keywright.keyspace.wires import Reply

__all__ = ["in_resp2"]

DEEPEST = 32
"""No reply of a server is nested deeper. What a hostile one nests below is left as it is."""

# Members with their scores or values: pairs in RESP3, one flat array in RESP2.
_IN_PAIRS = frozenset(
    [
        b"HRANDFIELD",
        b"ZDIFF",
        b"ZINTER",
        b"ZPOPMAX",
        b"ZPOPMIN",
        b"ZRANDMEMBER",
        b"ZRANGE",
        b"ZRANGEBYSCORE",
        b"ZREVRANGE",
        b"ZREVRANGEBYSCORE",
        b"ZUNION",
    ]
)
# Streams with their entries: a map in RESP3, an array of pairs in RESP2.
_BY_STREAM = frozenset([b"XREAD", b"XREADGROUP"])
# Numbers: an array in RESP3, its JSON text in RESP2.
_IN_JSON = frozenset([b"JSON.NUMINCRBY", b"JSON.NUMMULTBY"])


def in_resp2(reply: Any, verb: Any) -> Reply:
    """Return the reply to a command in the form that it has in RESP2."""
    kind = type(reply)
    if kind is bytes or kind is int or reply is None:
        return reply
    if kind is dict and verb in _BY_STREAM:
        return [[name, _converted(entries, 1)] for name, entries in reply.items()]
    if kind is list and verb in _IN_JSON and all(isinstance(each, int | float | None) for each in reply):
        return json.dumps(reply, separators=(",", ":")).encode()
    converted = _converted(reply, 0)
    if kind is list and converted and type(converted[0]) is list and verb in _IN_PAIRS:
        return [item for pair in converted for item in (pair if type(pair) is list else [pair])]
    return converted


def _converted(reply: Any, depth: int) -> Any:
    """Return a reply without maps, doubles and booleans."""
    if isinstance(reply, list):  # sets too, and pushes inside a reply
        return reply if depth > DEEPEST else [_converted(item, depth + 1) for item in reply]
    if isinstance(reply, dict):
        if depth > DEEPEST:
            return reply
        return [_converted(item, depth + 1) for pair in reply.items() for item in pair]
    if isinstance(reply, bool):
        return int(reply)
    if isinstance(reply, float):
        return repr(reply).removesuffix(".0").encode()
    return reply
