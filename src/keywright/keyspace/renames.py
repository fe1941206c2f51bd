"""Renamed keys: found under their former names, and moved to the present one before every operation.

A class that is declared with `moved_from` keeps its former templates. Every operation on one of its keys
first brings the key home, so that old and new names are readable together while a sweep is under way.

Where both names share a slot that is one script, atomic. Across the slots of a cluster no server can do it:
the key is copied with its expiry, then the former one is removed if it is still what was copied; if it is
not, the copy is taken back and made again. A process that dies in between leaves both, and the next caller
sees that they are equal and removes the former. Where both are there and differ, an older program wrote to
the former name after the move: the present name is the one that is read, and nothing is removed, until
somebody decides. Two movers that meet across slots agree, unless one stalls between reading and copying
while the other finishes and the key is then deleted: that key comes back.
"""

from __future__ import annotations

import enum
import functools
import types
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple

from keywright.errors import ConflictError
from keywright.keyspace.call import Call, Plain, Prepared, Steps, bound_context, procedure
from keywright.keyspace.composition import gather_list
from keywright.keyspace.script import BoundScript, Script
from keywright.keyspace.wires import Effect, Operation

if TYPE_CHECKING:
    from keywright.keyspace.context import Context
    from keywright.keyspace.key import Key

__all__ = ["Arrival", "move_first", "moved", "moved_from_name"]


ATTEMPTS = 8
RENAME = Script("keywright.keyspace", "rename_former", Effect.REPEATABLE)
CARRY = Script("keywright.keyspace", "carry", Effect.REPEATABLE)
EXISTS = Operation("move", b"EXISTS", Effect.READ)


class Arrival(enum.Enum):
    """The outcome of looking for a former name."""

    NOTHING = "there was nothing under it"
    MOVED = "what it had is under the present name"
    BOTH = "both names hold something, and not the same"

    @classmethod
    def worst(cls, arrivals: list[Arrival]) -> Arrival:
        return max(arrivals, key=list(cls).index, default=cls.NOTHING)


class _Taken(NamedTuple):
    """A serialised key, a digest of its content, and its expiry in epoch ms (0: no expiry)."""

    payload: bytes
    digest: bytes
    expires_ms: int


@procedure
def moved(key: Key, *, discard: bool = False) -> Steps[Arrival]:
    """Rename a key from its former names. With `discard` a former name that differs is deleted.

    The expiry is kept. Raise ConflictError if an older program keeps writing meanwhile.
    """
    context = yield bound_context()
    arrivals = []
    for kind in key._former:
        former = context.name(kind.made(key._values))
        arrivals.append((yield from _brought(former, key, context, discard=discard)))
    return Arrival.worst(arrivals)


@procedure
def moved_from_name(key: Key, former: bytes, *, discard: bool = False) -> Steps[Arrival]:
    """Rename a key from a full name without a template, as in another version of the keyspace."""
    context = yield bound_context()
    return (yield from _brought(former, key, context, discard=discard))


def move_first(cls: type[Key]) -> None:
    """Make every operation of a class rename its key first.

    An operation is a public method whose result is a Call; that is seen when it is called, so methods of a
    user's own class count, however they are annotated.
    """
    for name in dir(cls):
        method = getattr(cls, name)
        if isinstance(method, types.FunctionType) and not name.startswith("_"):
            setattr(cls, name, _after_moving(method))


def _after_moving(method: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(method)
    def operation(self: Key, *arguments: Any, **named: Any) -> Any:
        result = method(self, *arguments, **named)
        if not isinstance(result, Call):
            return result
        # Operations on two keys, as a move from one list to another, rename both.
        keys = [key for key in (self, *arguments, *named.values()) if getattr(key, "_former", ())]
        # An operation made of other operations has renamed its key already.
        if not keys or (isinstance(result, Prepared) and result.keys >= set(keys)):
            return result
        return Prepared(gather_list(moved(key) for key in keys), result, frozenset(keys))

    return operation


def _brought(former: bytes, key: Key, context: Context, *, discard: bool) -> Steps[Arrival]:
    # Asked first, since it is nearly always so, and a user that may only read cannot run a script.
    if not (yield Plain(EXISTS, (former,), former)):
        return Arrival.NOTHING
    names = context.name(key), former
    if context.one_slot(names):
        found: int = yield BoundScript(RENAME, names, (int(discard),), type(key))
        return (Arrival.NOTHING, Arrival.MOVED, Arrival.BOTH)[found]
    return (yield from _carried(former, key, context, discard=discard))


def _carried(old: bytes, key: Key, context: Context, *, discard: bool) -> Steps[Arrival]:
    """Copy, verify, delete across slots; the next caller finishes an interrupted move."""
    new = context.name(key)
    for _ in range(ATTEMPTS):
        taken = yield from _taken(old)
        if taken is None:
            return Arrival.NOTHING
        copy = yield BoundScript(CARRY, [new], (b"copy", taken.payload, taken.expires_ms), type(key))
        there = None if copy else (yield from _taken(new))
        if there is not None and there.digest != taken.digest and not discard:
            return Arrival.BOTH
        if there is None and not copy:
            continue  # it was there, and is not any more
        if (yield BoundScript(CARRY, [old], (b"drop", taken.digest), type(key))):
            return Arrival.MOVED
        # An older program wrote to it meanwhile: what was copied is not the latest any more.
        if copy and not (yield BoundScript(CARRY, [new], (b"drop", copy), type(key))):
            return Arrival.BOTH
    raise ConflictError(f"moving to {key!r}", ATTEMPTS)


def _taken(name: bytes) -> Steps[_Taken | None]:
    found = yield BoundScript(CARRY, [name], (b"take",))
    return _Taken(*found) if found else None
