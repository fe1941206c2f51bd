"""The guarantees of keys and relations to concurrent readers and writers, in words."""

from __future__ import annotations

from keywright.keyspace.key import Key
from keywright.keyspace.relations import Index, Link
from keywright.tools.describe.words import own_doc

__all__ = ["key_guarantees", "link_guarantees"]

_ONE_COMMAND = "Every operation is one command: it happens whole or not at all, for every reader."
_KINDS = {
    "value": _ONE_COMMAND,
    "counter": "Adding is one command, so no addition is lost between concurrent writers.",
    "record": (
        "Written whole in one transaction, so no reader sees half of it; changed only while it exists, "
        "in one script."
    ),
    "map": _ONE_COMMAND,
    "set": _ONE_COMMAND,
    "sorted set": _ONE_COMMAND,
    "list": _ONE_COMMAND,
    "stream": _ONE_COMMAND,
    "bitmap": _ONE_COMMAND,
    "bit fields": (
        "Every operation is one command on any number of members. An addition is not lost between concurrent "
        "writers."
    ),
    "geo": _ONE_COMMAND,
    "json": "Every operation is one command, also on a part of the document: no addition is lost.",
    "hyperloglog": (
        "Adding, estimating and merging are one command each. Adding a member twice changes nothing, so a "
        "repeated command is harmless."
    ),
}
_FIELDS = (
    "A field that is written gets its declared expiry in the same transaction. A server without expiry of "
    "fields refuses the call before anything is written."
)
_UPGRADED = (
    "An older version is brought up to date when it is read, by compare-and-set: two readers that do so at "
    "once agree, and a writer in between wins."
)
_TOGETHER = "Both sides and their indexes change in one script: all of them or none."
_INDEXED = "The key and its entry in the index change in one script: both or neither."
_JOURNAL = (
    "The keys live in several slots, which no server writes atomically. An intent goes to the journal first, "
    "then each side is written, then the intent is dropped. A process that dies in between leaves an intent "
    "that the next writer, a reader of the relation or the recoverer finishes or undoes; until then a reader "
    "of single keys may see one side without the other."
)


def key_guarantees(kind: type[Key]) -> tuple[str, ...]:
    """Return the guarantees of the operations of a key."""
    known = _KINDS.get(kind.kind)
    promises = (known,) if known else _contract(kind)
    if kind.declaration.field_expiry is not None:
        promises = (*promises, _FIELDS)
    return (*promises, _UPGRADED) if kind.declaration.upgrades else promises


def link_guarantees(link: Link, *, together: bool) -> tuple[str, str]:
    """Return the guarantees of a relation on one server, and on a cluster."""
    alone = _INDEXED if isinstance(link, Index) else _TOGETHER
    return alone, "The keys share a slot, so it is the same on a cluster." if together else _JOURNAL


def _contract(kind: type[Key]) -> tuple[str, ...]:
    """Return the guarantees of a user's own kind: the paragraphs of its docstring."""
    declared = next(base for base in kind.__mro__ if "kind" in vars(base))
    return tuple(filter(None, own_doc(declared).split("\n\n")))
