"""Commands over several keys of one kind."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar

from keywright.keyspace.call import Command, Operation, Reply, Wire

if TYPE_CHECKING:
    from keywright.keyspace.context import Context
    from keywright.keyspace.key import Key

T = TypeVar("T")


class Several(Command[T]):
    """A command over several keys, which must live in one slot on a cluster."""

    __slots__ = ("others",)

    def __init__(
        self,
        operation: Operation,
        key: Key,
        others: tuple[Key, ...],
        decode: Callable[[Reply], T],
        operands: tuple[Any, ...] = (),
    ) -> None:
        super().__init__(operation, key, operands, decode)
        self.others = others

    def lower(self, context: Context) -> Wire:
        names = [context.name(key) for key in (self.key, *self.others)]
        context.require_one_slot(names)
        arguments = (self.operation.verb, *names, *self.operands)
        return Wire(arguments, names[0], self.operation, type(self.key))
