"""The same in Python and with redis-cli: texts that read a key, for programs and terminals."""

from __future__ import annotations

from typing import Any, NamedTuple

from keywright.explorer.key_reader import Facts
from keywright.keyspace import (
    BitFields,
    Claim,
    Context,
    Counter,
    Geo,
    HyperLogLog,
    Key,
    Lease,
    List,
    Map,
    Record,
    Set,
    SortedSet,
    Stream,
    Value,
)
from keywright.keyspace.codecs import CodecError
from keywright.keyspace.layouts import LAYOUTS, Ask
from keywright.tools.repair.commands import quoted

__all__ = ["Snippets", "snippets_of"]

MANY = 1000
LONG_BYTES = 64 * 1024
_SIMPLE = (str, int, bytes, bool, type(None))
_READS: tuple[tuple[type[Key], str, str], ...] = (
    # The class, its read, and its read if there are many entries.
    (Value, "get()", "get()"),
    (Counter, "get()", "get()"),
    (Record, "get()", "get()"),
    (BitFields, "get()", "get()"),
    (Map, "all()", "scan()"),
    (Set, "members()", "scan()"),
    (SortedSet, "range()", "range(0, 99)"),
    (List, "range()", "range(0, 99)"),
    (Stream, "newest(10)", "newest(10)"),
    (Geo, "members()", "members()"),
    (HyperLogLog, "estimate()", "estimate()"),
    (Lease, "holder()", "holder()"),
    (Claim, "state()", "state()"),
)
_ENTRY_READS: tuple[tuple[type[Key], str], ...] = ((Map, "get"), (Set, "has"), (SortedSet, "score"))


class Snippets(NamedTuple):
    """The texts for one key. `python` is None if the module of its class cannot be imported."""

    python: str | None
    redis_cli: str


def snippets_of(key: Key, context: Context, facts: Facts, entry: bytes | None = None) -> Snippets:
    """Return the texts that read a key, or one entry of it."""
    kind = type(key)
    importable = kind.__module__ != "__main__" and kind.__qualname__ == kind.__name__
    return Snippets(
        _python(key, context, facts, entry) if importable else None,
        _redis_cli(context.name(key), facts, key.redis_type, entry),
    )


def _python(key: Key, context: Context, facts: Facts, entry: bytes | None) -> str:
    kind = type(key)
    lines = ["from keywright import connect", f"from {kind.__module__} import {kind.__name__}", ""]
    if key.declaration.sealed:
        lines.append("# Its values are sealed: bind the keyring of its keyspace too.")
    lines.append(f"with connect({_binding(key, context)}) as db:  # the server that REDIS_URL names")
    lines.append(f"    print(db.run({_made(key)}.{_read(key, facts, entry)}))")
    return "\n".join(lines)


def _binding(key: Key, context: Context) -> str:
    """Return the arguments that bind the keyspace as it is here, if that is not as it is declared."""
    space = key.declaration.space
    binding = context.bindings.get(space)
    given = {}
    if binding is not None and binding.prefix != space.prefix:
        given["prefix"] = binding.prefix
    if binding is not None and binding.version != space.version:
        given["version"] = binding.version
    if not given:
        return ""
    words = ", ".join(f"{name}={value!r}" for name, value in given.items())
    return f"None, {type(key).__name__}.declaration.space.bind({words})"


def _made(key: Key) -> str:
    values = key.declaration.values(key)
    if all(type(value) in _SIMPLE for value in values):
        return f"{type(key).__name__}({', '.join(map(repr, values))})"
    return f"{type(key).__name__}.parse({bytes(key)!r})"


def _read(key: Key, facts: Facts, entry: bytes | None) -> str:
    if entry is not None:
        method = next((name for kind, name in _ENTRY_READS if isinstance(key, kind)), None)
        value = _entry(key, entry)
        if method is not None and type(value) in _SIMPLE:
            return f"{method}({value!r})"
        if isinstance(key, Stream):
            return f"range({entry.decode('latin-1')!r}, {entry.decode('latin-1')!r})"
    many = (facts.size or 0) > MANY
    found = next((each for each in _READS if isinstance(key, each[0])), None)
    return "stored_type()" if found is None else found[2] if many else found[1]


def _entry(key: Key, entry: bytes) -> Any:
    codec = key.declaration.storage.field or key.declaration.storage.item
    try:
        return codec.decode(entry)
    except (CodecError, AttributeError):
        return object()


def _redis_cli(name: bytes, facts: Facts, declared: str, entry: bytes | None) -> str:
    stored = facts.stored_type if facts.exists else declared
    asked = [Ask(b"TYPE"), Ask(b"PTTL")]
    layout = LAYOUTS.get(stored)
    if layout is not None and entry is not None and stored != "string":
        asked.append(layout.find(entry))
    elif layout is not None:
        asked.append(_whole(stored, facts))
    return "\n".join(_command(each, name) for each in asked)


def _whole(stored: str, facts: Facts) -> Ask:
    size = facts.size or 0
    if stored == "string":
        return Ask(b"GETRANGE", (0, 1023)) if size > LONG_BYTES else Ask(b"GET")
    if stored == "stream":
        return Ask(b"XREVRANGE", (b"+", b"-", b"COUNT", 10))
    layout = LAYOUTS[stored]
    if size <= MANY:
        return layout.everything
    return layout.head(100) or layout.first_page(100)


def _command(asked: Ask, name: bytes) -> str:
    words = (word if isinstance(word, bytes) else b"%d" % word for word in asked.on(name))
    return " ".join(quoted(word, longest=1 << 20) for word in words)
