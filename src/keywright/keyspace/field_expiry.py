"""When the fields of a hash expire on their own: every entry of a map, or some members of a record.

A write gives its fields their expiry in the same transaction or script, so a process that dies leaves no
field without one. Servers before Redis 7.4 and Valkey 9 have no such expiry: calls that need it are refused
before anything is written.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import timedelta
from typing import TYPE_CHECKING, Any, TypeVar

from keywright.errors import CapabilityError, DeclarationError
from keywright.keyspace.call import Call, Command, Steps, bound_context
from keywright.keyspace.expiry import Expiry
from keywright.keyspace.wires import Arguments, Effect, Operation, Reply, Wire

if TYPE_CHECKING:
    from keywright.keyspace.context import Context
    from keywright.keyspace.key import Key

__all__ = [
    "FIELD_VERBS",
    "FieldCommand",
    "FieldExpiry",
    "changed",
    "declared",
    "expiries_given",
    "expiries_kept",
    "required_of_server",
    "ttls_of",
]

T = TypeVar("T")

MOST_FIELDS = 1000  # in one command: a commit takes a few thousand arguments
FIELD_VERBS = frozenset([b"HPEXPIRE", b"HPEXPIREAT"])
TTLS = Operation("field_ttls", b"HPTTL", Effect.READ)
MOMENTS = Operation("field_moments", b"HPEXPIRETIME", Effect.READ)
EXPIRE_AT = Operation("expire_field", b"HPEXPIREAT", Effect.REPEATABLE)


class FieldExpiry:
    """The declared expiries: by stored field, and of all fields that are not named."""

    def __init__(self, named: Mapping[bytes, Expiry | None], others: Expiry | None = None) -> None:
        self.named = dict(named)
        self.others = others

    def of(self, field: bytes) -> Expiry | None:
        """Return the expiry of a field; None if it is declared without one."""
        return self.named.get(field, self.others)

    def following(self, key: Key, verb: bytes, operands: Arguments, context: Context) -> list[Arguments]:
        """Return the commands that follow a write in its transaction, and give its fields their expiries."""
        fields = _written(verb, operands)
        if not fields:
            return []
        together: dict[Expiry, list[bytes]] = {}
        for field in fields:
            declared = self.of(field)
            expiry = None if declared is None else declared.of_key(key)
            if expiry is not None:
                together.setdefault(expiry, []).append(field)
        if together:
            require(context)
        name = context.name(key)
        return [
            command
            for expiry, those in together.items()
            for command in _commands(expiry, verb, name, those, context)
        ]


def _written(verb: bytes, operands: Arguments) -> Sequence[Any]:
    """Return the fields that a command writes."""
    if verb == b"HSET":
        return operands[::2]
    return operands[:1] if verb in (b"HSETNX", b"HINCRBY") else ()


def _commands(
    expiry: Expiry, verb: bytes, name: bytes, fields: list[bytes], context: Context
) -> Iterator[Arguments]:
    option, amount = expiry.arguments(context)
    # HSET makes the field again, without an expiry. HSETNX may have written nothing.
    first = verb == b"HSETNX" or (verb == b"HINCRBY" and expiry.since == "first write")
    condition = (b"NX",) if first and option == b"PX" else ()
    command = b"HPEXPIRE" if option == b"PX" else b"HPEXPIREAT"
    for start in range(0, len(fields), MOST_FIELDS):
        part = fields[start : start + MOST_FIELDS]
        yield (command, name, amount, *condition, b"FIELDS", len(part), *part)


def declared(
    owner: str, others: Expiry | None, named: Mapping[bytes, tuple[str, Expiry]] | None = None
) -> FieldExpiry:
    """Return the expiries of a declaration. Raise DeclarationError for one that a field cannot have."""
    for place, expiry in (("its fields", others), *(named or {}).values()):
        if expiry is not None and not isinstance(expiry, Expiry):
            raise DeclarationError(
                owner, f"{place}: {expiry!r} is not an expiry", "Use expires_in, expires_at or may_expire."
            )
        if expiry is not None and expiry.sliding:
            raise DeclarationError(
                owner,
                f"{place}: the expiry of a field cannot count since the last use",
                "Use since='first write' or since='last write'.",
            )
        if expiry is not None and callable(expiry.moment):
            raise DeclarationError(
                owner,
                f"{place}: the expiry of a field cannot follow from a value",
                "Use expires_in, expires_at with a fixed moment, or may_expire with expire_field.",
            )
    return FieldExpiry({field: expiry for field, (_, expiry) in (named or {}).items()}, others)


def require(context: Context) -> None:
    """Raise CapabilityError if the server is known to have no expiry of fields."""
    if context.field_expiry is False:
        raise CapabilityError("expiry of single fields", context.server, "Redis 7.4 or Valkey 9")


class FieldCommand(Command[T]):
    """A command on the expiries of fields, which is not sent to a server that has none."""

    def lower(self, context: Context) -> Wire:
        require(context)
        return Command.lower(self, context)


def ttls_of(key: Key, fields: Sequence[bytes]) -> Call[list[timedelta | None]]:
    """Return the times to live of fields; None for one that does not expire or does not exist."""
    return FieldCommand(TTLS, key, (b"FIELDS", len(fields), *fields), _times)


def _times(reply: Reply) -> list[timedelta | None]:
    return [None if each < 0 else timedelta(milliseconds=each) for each in reply]


def changed(reply: Reply) -> bool:
    """Return whether a command on the expiry of one field changed it."""
    return bool(reply and reply[0] > 0)


def required_of_server(names: Sequence[tuple[bytes, type[Key]]], context: Context) -> Steps[None]:
    """Ask a server that is not known yet whether it has the feature, before a script writes anything."""
    if not names:
        return
    if context.field_expiry is None:
        name, kind = names[0]
        try:
            yield _Probe(name, kind)
        except CapabilityError:
            context.field_expiry = False
        else:
            context.field_expiry = True
    require(context)


class _Probe(Call[None]):
    __slots__ = ("kind", "name")

    def __init__(self, name: bytes, kind: type[Key]) -> None:
        self.name = name
        self.kind = kind

    def rounds(self, context: Context) -> Any:
        replies = yield [Wire((b"HPTTL", self.name, b"FIELDS", 1, b"x"), self.name, TTLS, self.kind)]
        if isinstance(replies[0], CapabilityError):  # any other error is that of the write, which follows
            raise replies[0]


def expiries_given(key: Key, fields: Sequence[bytes], context: Context) -> list[Command[Any]]:
    """Return the writes that give fields their declared expiries, as a write of the fields does."""
    if key._field_expiry is None:
        return []
    operands = tuple(part for field in fields for part in (field, b""))
    return [
        Command(Operation("expire_field", verb, Effect.REPEATABLE), key, tuple(rest), list)
        for verb, _, *rest in key._field_expiry.following(key, b"HSET", operands, context)
    ]


def expiries_kept(key: Key, source: Key, fields: Iterable[bytes]) -> Steps[list[Command[Any]]]:
    """Return writes that give fields of a key the expiries they have in `source`, since HSET removes them."""
    asked = list(fields)
    context = yield bound_context()
    if key._field_expiry is None or context.field_expiry is False or not asked:
        return []
    found = yield FieldCommand(MOMENTS, source, (b"FIELDS", len(asked), *asked), list)
    return [
        Command(EXPIRE_AT, key, (moment, b"FIELDS", 1, field), list)
        for field, moment in zip(asked, found, strict=False)
        if moment > 0
    ]
