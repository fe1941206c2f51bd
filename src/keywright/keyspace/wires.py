"""Commands as the engine sends them: wires, their effects, and the shapes of their replies.

A reply is what the server sent (bytes, int, list, None), or the KeywrightError that took its place.
"""

from __future__ import annotations

import enum
import operator
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence, Set
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, TypeAlias, TypeVar, overload

import msgspec

if TYPE_CHECKING:
    from keywright.keyspace.call import Command
    from keywright.keyspace.key import Key
    from keywright.keyspace.script import Script

T = TypeVar("T")

Argument: TypeAlias = bytes | str | int
Arguments: TypeAlias = tuple[Any, ...]
Reply: TypeAlias = Any
"""A reply of the server, as the protocol has it."""
ManyDecoder: TypeAlias = Callable[[Sequence[Reply]], list[Any]]
"""Returns the values of replies; raises anything if one of them is malformed."""
FindDecoder: TypeAlias = Callable[[], ManyDecoder | None]
"""Finds the decoder that the replies of a batch share, where they do."""


class Effect(enum.Enum):
    """The effect of sending a command twice; decides whether it is retried after a lost connection."""

    READ = "reads"
    REPEATABLE = "writes, and writing again leaves the same state"
    ONCE = "must not be sent twice"


class Operation(NamedTuple):
    """One verb with its effect; `blocking` is how many seconds the server may wait."""

    name: str
    verb: bytes
    effect: Effect
    script: Script | None = None
    blocking: float = 0.0


class Wire(msgspec.Struct, gc=False, eq=False, frozen=True):
    """One command with its bound names, ready to be packed; it has exactly one reply.

    Wires and commands are made once a call and thrown away, so both are structs: the cheapest objects
    there are, and not tracked by the garbage collector, since they cannot be part of a cycle.
    """

    arguments: Arguments
    name: bytes
    operation: Operation
    source: type[Key] | None

    def with_arguments(self, arguments: Arguments) -> Wire:
        """Return the command with other arguments."""
        return Wire(arguments, self.name, self.operation, self.source)


class Waiting(Wire, frozen=True):
    """A command that makes the server wait, `operation.blocking` seconds at most."""


class Resting(Wire, frozen=True):
    """No command at all: a pause of so many seconds."""


class Transaction(Wire, frozen=True):
    """Several commands between MULTI and EXEC; `arguments` holds those of each."""


class CommandBatch(Sequence[Wire]):
    """The wires of many commands that need neither a seal nor an expiry, each made when it is looked at.

    Mostly none is: the engine packs the columns, in six tenths of the time that wires take.
    """

    __slots__ = ("_decoders", "commands", "leads")
    sorts: ClassVar[Set[type[Wire]]] = frozenset([Wire])

    def __init__(self, commands: Sequence[Command[Any]], leads: Mapping[type[Key], bytes]) -> None:
        self.commands = commands
        self.leads = leads
        self._decoders: list[ManyDecoder | None] = []

    def names(self, part: slice) -> list[bytes]:
        """Return the full names of the keys of a part of the commands."""
        leads, commands = self.leads, self.commands[part]
        if len(leads) == 1:
            (lead,) = leads.values()
            return [lead + command.key._name for command in commands]
        return [leads[(key := command.key).__class__] + key._name for command in commands]

    def operations(self, part: slice) -> list[Operation]:
        return list(map(_operation, self.commands[part]))

    def operands(self) -> list[Arguments]:
        return list(map(_operands, self.commands))

    def shared_decoder(self) -> ManyDecoder | None:
        """Return what decodes the replies of any of the commands, if they have the same decoder; kept."""
        if not self._decoders:
            self._decoders.append(shared_decoder(self.commands))
        return self._decoders[0]

    def __len__(self) -> int:
        return len(self.commands)

    def __iter__(self) -> Iterator[Wire]:
        return map(self._wire, self.commands, self.names(slice(None)))

    @overload
    def __getitem__(self, index: int) -> Wire: ...
    @overload
    def __getitem__(self, index: slice) -> list[Wire]: ...
    def __getitem__(self, index: int | slice) -> Wire | list[Wire]:
        if isinstance(index, slice):
            return list(map(self._wire, self.commands[index], self.names(index)))
        command = self.commands[index]
        return self._wire(command, self.leads[command.key.__class__] + command.key._name)

    @staticmethod
    def _wire(command: Command[Any], name: bytes) -> Wire:
        operation = command.operation
        return Wire((operation.verb, name, *command.operands), name, operation, command.key.__class__)


class ReplacementBatch(CommandBatch):
    """Writes of one operation, each in a transaction that deletes the key before."""

    __slots__ = ()
    sorts = frozenset([Transaction])

    @staticmethod
    def _wire(command: Command[Any], name: bytes) -> Wire:
        write = command.operation.verb, name, *command.operands
        return Transaction(((REPLACE.verb, name), write), name, REPLACED, command.key.__class__)


class DecodedAlong(list[Wire]):
    """Commands whose replies are arrays that one function decodes, each while the next is on its way."""

    def __init__(self, wires: Iterable[Wire], decode: Callable[[Reply], Any]) -> None:
        super().__init__(wires)
        self._decode = decode

    def shared_decoder(self) -> ManyDecoder | None:
        return lambda replies: list(map(self._decode, replies))


def shared_decoder(commands: Sequence[Command[Any]]) -> ManyDecoder | None:
    """Return what decodes the replies of any of the commands, if they have the same decoder."""
    decoders = set(map(_decoder, commands))
    if len(decoders) > 1:
        return None
    decode = decoders.pop()
    many: ManyDecoder | None = getattr(decode, "many", None)
    return many or (lambda replies: list(map(decode, replies)))


_operation = operator.attrgetter("operation")
_operands = operator.attrgetter("operands")
_decoder = operator.attrgetter("decode")


def sorts_of(wires: Sequence[Wire]) -> Set[type[Wire]]:
    """Return the classes of wires."""
    return wires.sorts if isinstance(wires, CommandBatch) else set(map(type, wires))


Rounds: TypeAlias = Generator[Sequence[Wire], list[Reply], T]
"""The round trips of a call: yields the commands of each, receives their replies, returns the value."""
TRANSACTION = Operation("atomic", b"MULTI", Effect.REPEATABLE)
TRANSACTION_ONCE = Operation("atomic", b"MULTI", Effect.ONCE)
REPLACE = Operation("replace", b"UNLINK", Effect.REPEATABLE)
REPLACED = TRANSACTION._replace(name=REPLACE.name)
TIME = Operation("time", b"TIME", Effect.READ)
PAUSE = Operation("pause", b"", Effect.READ)


class Transacted(list[Reply]):
    """The replies of one MULTI … EXEC, in the order of its commands."""


class Sound(list[Reply]):
    """Replies without errors and transactions."""


class Decoded(list[Any]):
    """The values of all replies to a batch of commands: they were decoded while it was received."""
