"""The commands that read one page of names, in one batch with bounded replies.

Every key of a template with an expiry is asked for its TTL, every collection for its memory. Of strings,
whose memory follows from their length, and of keys that need not expire, a sample is asked. Strings are
read by MGET on one server. A collection is read by its first page; the rest follows if there is one.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from itertools import chain

from keywright.errors import CapabilityError, KeywrightError, WrongTypeError
from keywright.keyspace.key import Key
from keywright.keyspace.layouts import Ask
from keywright.keyspace.wires import Effect, Operation, Reply, Wire
from keywright.tools.audit.value_checks import Checker

__all__ = ["MEMORY", "MOST_BYTES", "TTL", "Reading", "checked_replies", "on_name"]

TOGETHER = 128
MOST_BYTES = 1 << 20  # of a string that is read whole; a larger one is measured, not read

TTL = Operation("ttl", b"PTTL", Effect.READ)
MEMORY = Operation("memory", b"MEMORY", Effect.READ)


class Reading:
    """The names of one template on one page, the commands that read them, and their replies."""

    def __init__(
        self,
        checker: Checker,
        names: list[bytes],
        *,
        together: bool,
        timed: Sequence[int],
        measured: Sequence[int],
        field_expiry: bool,
    ) -> None:
        self.checker = checker
        self.names = names
        strings = checker.kind.redis_type == "string"
        self._together = together and strings
        self.timed, self.measured = timed, measured
        """The places of the names that are asked for their TTL, and for their memory."""
        self._field_expiry = field_expiry and bool(checker.required)
        self.timed_fields = field_expiry and checker.field_rules is not None
        self.ttls: list[int] = []
        self.field_ttls: list[Reply] = []
        self.sizes: list[int | None] = []
        self.stored: list[Reply] = []

    def commands(self) -> list[Wire]:
        names, kind = self.names, self.checker.kind
        wires = [Wire((b"PTTL", name), name, TTL, kind) for name in _at(names, self.timed)]
        wires += [Wire((b"MEMORY", b"USAGE", name), name, MEMORY, kind) for name in _at(names, self.measured)]
        if self._together:
            operation = _operation(b"MGET")
            for start in range(0, len(names), TOGETHER):
                part = names[start : start + TOGETHER]
                wires.append(Wire((b"MGET", *part), part[0], operation, kind))
        else:
            verb, operands = self.checker.storage.layout.first_page()
            operation = _operation(verb)
            wires += [Wire((verb, name, *operands), name, operation, kind) for name in names]
        if self._field_expiry:
            wires += [on_name(self.checker.field_expiry(), name, kind) for name in names]
        return wires

    def take(self, replies: list[Reply], start: int) -> int:
        """Take the replies to `commands`, from an index of all replies on. Return the index after them."""
        middle = start + len(self.timed)
        end = middle + len(self.measured)
        self.ttls = checked_replies(replies[start:middle])
        self.sizes = replies[middle:end]  # some servers refuse MEMORY USAGE, and sizes are not findings
        after = end + (-(-len(self.names) // TOGETHER) if self._together else len(self.names))
        stored = checked_replies(replies[end:after])
        self.stored = list(chain.from_iterable(stored)) if self._together else stored
        if not self._field_expiry:
            return after
        self.field_ttls = replies[after : after + len(self.names)]  # a user may lack the right to ask
        return after + len(self.names)


def on_name(ask: Ask, name: bytes, source: type[Key] | None) -> Wire:
    """Return a reading command on a name; observers see its verb."""
    verb, operands = ask
    if verb == b"XINFO":  # its subcommand comes before the key
        return Wire((verb, *operands, name), name, _operation(verb), source)
    return Wire((verb, name, *operands), name, _operation(verb), source)


def checked_replies(replies: list[Reply]) -> list[Reply]:
    """Return the replies, WrongTypeError among them where a key is of another type.

    Raise the first other error, such as NOPERM: keys that were not read must not pass as valid.
    """
    if any(issubclass(kind, KeywrightError) for kind in set(map(type, replies))):
        for reply in replies:
            if isinstance(reply, KeywrightError) and not _is_of_another_type(reply):
                raise reply
    return replies


def _is_of_another_type(error: KeywrightError) -> bool:
    """Return whether a key is of another type than declared: no key is JSON where the server has no JSON."""
    no_json = isinstance(error, CapabilityError) and error.feature.startswith("JSON.")
    return no_json or isinstance(error, WrongTypeError)


@cache
def _operation(verb: bytes) -> Operation:
    return Operation(verb.decode().lower(), verb, Effect.READ)


def _at(names: list[bytes], places: Sequence[int]) -> list[bytes]:
    return [names[place] for place in places]
