"""Commands over several keys of one kind."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

from keywright.keyspace.call import Command, transaction
from keywright.keyspace.wires import Reply, Transacted, Wire

if TYPE_CHECKING:
    from keywright.keyspace.context import Context
    from keywright.keyspace.key import Key

T = TypeVar("T")


class Several(Command[T]):
    """A command over several keys, which must live in one slot on a cluster."""

    others: tuple[Key, ...]

    @property
    def other_keys(self) -> tuple[Key, ...]:
        return self.others

    def lower(self, context: Context) -> Wire:
        names = [context.name(key) for key in (self.key, *self.others)]
        context.require_one_slot(names)
        arguments = (self.operation.verb, *names, *self.operands)
        return Wire(arguments, names[0], self.operation, type(self.key))


class Moving(Several[T]):
    """A move from one key to another; both get their expiry, in the same transaction."""

    def lower(self, context: Context) -> Wire:
        wire = super().lower(context)
        renewals = [
            expiry.command(context.name(key), context)
            for key in (self.key, *self.others)
            if (expiry := context.expiry_for(key)) is not None
        ]
        if not renewals:
            return wire
        return transaction([wire.arguments, *renewals], wire.name, wire.operation, wire.source)

    def read(self, reply: Reply, context: Context) -> T:
        return super().read(reply[0] if type(reply) is Transacted else reply, context)
