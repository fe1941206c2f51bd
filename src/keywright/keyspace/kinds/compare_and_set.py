"""Compare-and-set on one value: an optimistic lock, written only if the value did not change meanwhile."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar

from keywright.errors import ConflictError, DeclarationError, KeywrightError
from keywright.keyspace.call import Call, Command, Pause, Steps, as_is, bound_context, procedure
from keywright.keyspace.checks import Check, equals
from keywright.keyspace.commits.journal import commit
from keywright.keyspace.commits.work import Outcome
from keywright.keyspace.kinds.value import GET, Value
from keywright.keyspace.misuse import explained
from keywright.keyspace.wires import Reply

if TYPE_CHECKING:
    from keywright.keyspace.context import Context

T = TypeVar("T")
# What a change returns: T, None or either. Spelled T | None, mypy takes every key for a Value[T | None].
N = TypeVar("N")

ATTEMPTS = 24


@explained
def replace_if(key: Value[T], expected: T | None, new: T | None) -> Call[bool]:
    """Write `new` if the key holds `expected`. Return whether it did. None means no key, on both sides.

    One script. The declared expiry starts again. The comparison is by the bytes that the codec
    writes for `expected`: a value that another program wrote in other bytes does not equal it.
    """
    if key._sealed:
        raise DeclarationError(
            type(key).__name__,
            "a sealed value has other bytes each time it is written, so it cannot be compared",
            "Use modify(), which compares what it read.",
        )
    check = equals(key, None if expected is None else key._encode(expected))
    return _written(key, check, new).map(bool)


@procedure
def modify(key: Value[T], change: Callable[[T | None], N], *, attempts: int = ATTEMPTS) -> Steps[N]:
    """Read, change and write back; retry if another writer came in between. Return the value written.

    `change` gets None for a key that does not exist and returns None to delete it; it may run several
    times, so it must do nothing else. The declared expiry starts again. Raise ConflictError after `attempts`;
    OutcomeUnknownError where the reply of a write was lost, as running `change` again could count twice.
    """
    context = yield bound_context()
    for attempt in range(attempts):
        if key._upgrades:
            yield key.get()  # brings an older shape up to date
        stored: bytes | None = yield _Stored(GET, key, (), as_is)
        new = change(Command[T | None](GET, key, (), key._decode).read(stored, context))
        if (new is None and stored is None) or (yield _written(key, equals(key, stored), new)):
            return new
        yield Pause(context.random.uniform(0, 0.002 * min(attempt + 1, 16)))
    raise ConflictError(f"modify {key!r}", attempts)


class _Stored(Command[bytes | None]):
    """GET that leaves a sealed value sealed: the stored bytes are compared."""

    def read(self, reply: Reply, context: Context) -> bytes | None:
        if isinstance(reply, KeywrightError):
            raise reply
        stored: bytes | None = reply
        return stored


def _written(key: Value[Any], check: Check, new: object) -> Call[Outcome]:
    write: Call[bool] = key.delete() if new is None else key.set(new)
    return commit(f"write {type(key).__name__}", [check], [write], subject=key)
