"""BitFields: small integers with names, side by side in the bits of one string."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, ClassVar, Generic, Literal, TypeVar

from keywright.errors import DeclarationError, UsageError, ValueRefusedError, excerpt
from keywright.keyspace.call import Call, Ready, Refreshing, Sliding, nothing
from keywright.keyspace.codecs import Codec, CodecError
from keywright.keyspace.fields import Member, Shape
from keywright.keyspace.key import Key, Unbound, type_arguments
from keywright.keyspace.layouts import Ask
from keywright.keyspace.member_functions import bits_reader, bits_writer
from keywright.keyspace.misuse import explained, explained_constructor
from keywright.keyspace.storage import Defect, EntryPart, Fault, Storage, StoredEntry
from keywright.keyspace.wires import Effect, Operation, Reply

S = TypeVar("S")

PUT = Operation("put", b"BITFIELD", Effect.REPEATABLE)
ADD = Operation("add", b"BITFIELD", Effect.ONCE)
GET = Operation("get", b"BITFIELD_RO", Effect.READ)

Overflow = Literal["wrap", "saturate", "refuse"]
_OVERFLOW: dict[str, bytes] = {"wrap": b"WRAP", "saturate": b"SAT", "refuse": b"FAIL"}


@explained_constructor
class Bits(Codec[int]):
    """An integer of `width` bits, for a member of BitFields: ``level: Annotated[int, Bits(5)]``.

    `overflow` is what an addition beyond its range does: it wraps around, stops at the limit, or changes
    nothing. Without `at` a member follows the one before it.
    """

    python_type = int

    def __init__(
        self, width: int, *, signed: bool = False, overflow: Overflow = "refuse", at: int | None = None
    ) -> None:
        most = 64 if signed else 63
        if type(width) is not int or not 1 <= width <= most:
            raise UsageError(f"a member cannot have {width!r} bits. Use 1 to {most}, or 64 with signed=True.")
        if at is not None and (type(at) is not int or not 0 <= at < 1 << 20):
            raise UsageError(f"a member cannot begin at bit {at!r}. Use 0 to {(1 << 20) - 1:,}.")
        self.width, self.signed = width, bool(signed)
        self.follows = at is None
        self.at = at or 0
        self.overflow: Overflow = overflow
        self.policy = _OVERFLOW[overflow]
        self.lowest = -(1 << width - 1) if signed else 0
        self.highest = (1 << width - signed) - 1
        self.samples = tuple(dict.fromkeys((self.lowest, 0, self.highest)))
        place = "" if at is None else f", from bit {at}"
        self.expected = f"an integer from {self.lowest} to {self.highest} ({width} bits{place})"

    @property
    def type(self) -> bytes:
        """The type as the server names it: u8, i5."""
        return b"%s%d" % (b"i" if self.signed else b"u", self.width)

    def placed(self, at: int) -> Bits:
        """Return the same bits at this offset."""
        return Bits(self.width, signed=self.signed, overflow=self.overflow, at=at)

    def encode(self, value: int) -> bytes:
        if type(value) is not int or not self.lowest <= value <= self.highest:
            raise self.refusal(value)
        return b"%d" % value

    def decode(self, data: bytes) -> int:
        try:
            value = int(data)
        except ValueError:
            raise self.refusal(data) from None
        if not self.lowest <= value <= self.highest or data != b"%d" % value:
            raise self.refusal(data)
        return value

    def in_bytes(self, data: bytes) -> int:
        """Return the value in the bytes of a string, which ends with any number of zeros."""
        first, end = self.at // 8, -(-(self.at + self.width) // 8)
        window = int.from_bytes(data[first:end].ljust(end - first, b"\0"))
        value = window >> (end * 8 - self.at - self.width) & (1 << self.width) - 1
        return value - (1 << self.width) if value > self.highest else value


class BitFieldsStorage(Storage):
    """One string, in which each member has its bits."""

    whole = True
    reads = ("bitfield_ro",)
    writes = ("bitfield",)

    def __init__(self, kind: type[BitFields[Any]]) -> None:
        super().__init__(kind)
        self.fields: Shape[Any] = kind._fields
        self.most_bytes = -(-max(bits.at + bits.width for bits in map(_bits, self.fields.members)) // 8)

    def verify(self, stored: Sequence[Any]) -> bool:
        if any(len(data) > self.most_bytes for data in stored):
            raise CodecError(f"at most {self.most_bytes} bytes", "more")
        return True

    def value(self, stored: Any, key: Key | None = None) -> Any:
        self.verify([stored])
        return self.fields.type(**{m.attribute: _bits(m).in_bytes(stored) for m in self.fields.members})

    def entries(self, stored: Any, key: Key | None = None) -> Iterator[StoredEntry]:
        parts = [
            EntryPart(member.codec, b"%d" % _bits(member).in_bytes(stored), None, f" as {member.attribute!r}")
            for member in self.fields.members
        ]
        yield StoredEntry(parts, self._built, self._named, self._defects(stored))

    def joined(self, values: list[Any]) -> Any:
        return values[0]

    def listed(self, values: list[Any]) -> Any:
        return values[0]

    def malformed(self, refused: Any, key: Key) -> Ask | None:
        return self.layout.addition(bytes(self.most_bytes + 1))

    def _defects(self, stored: bytes) -> list[Defect]:
        if len(stored) <= self.most_bytes:
            return []
        error = CodecError(f"at most {self.most_bytes} bytes", f"{len(stored)} bytes")
        return [Defect(Fault.MALFORMED, f"expected {error.expected}", error)]

    def _built(self, values: Sequence[Any]) -> Any:
        return self.fields.type(
            **{m.attribute: value for m, value in zip(self.fields.members, values, strict=True)}
        )

    def _named(self, values: Sequence[Any]) -> Any:
        return {m.stored.decode(): value for m, value in zip(self.fields.members, values, strict=True)}


class BitFields(Key, Generic[S]):
    """The members of a struct or dataclass as integers of some bits each; all are 0 at first.

    Each member is an `Annotated[int, Bits(…)]`.
    """

    redis_type: ClassVar[str] = "string"
    kind: ClassVar[str] = "bit fields"
    _storage = BitFieldsStorage
    _fields: ClassVar[Shape[Any]]
    _all: ClassVar[tuple[bytes | int, ...]]
    """The operands that ask for all members."""
    _read: ClassVar[Unbound]
    _write: ClassVar[Unbound]

    @classmethod
    def _declare(cls) -> Iterable[Codec[Any]]:
        cls._fields = Shape(cls, type_arguments(cls, BitFields)[0])  # type: ignore[arg-type]  # it is checked
        cls._fields.members = tuple(_placed(cls, cls._fields.members))
        cls._all = _asked(cls._fields.members)
        cls._read = staticmethod(bits_reader(cls._fields, cls._read_plainly))
        bits = [_bits(member) for member in cls._fields.members]
        cls._write = staticmethod(bits_writer(cls._fields, bits, cls._write_plainly))
        return tuple(member.codec for member in cls._fields.members)

    def get(self) -> Call[S]:
        """Return all members, in one command."""
        return Sliding(GET, self, self._all, self._read)

    def pick(self, *members: str) -> Call[dict[str, int]]:
        """Return some members by name, in one command."""
        chosen = [self._fields.member(name) for name in members]
        if not chosen:
            return Ready({})
        return Sliding(GET, self, _asked(chosen), lambda reply: _by_name(chosen, reply))

    def put(self, value: S) -> Call[None]:
        """Write all members in one command."""
        return Refreshing(PUT, self, self._write(value), nothing)

    def update(self, **members: int) -> Call[dict[str, int]]:
        """Write some members by name, in one command. Return what they were before."""
        if not members:
            return Ready({})
        chosen = [self._fields.member(name) for name in members]
        return Refreshing(PUT, self, self._written(members), lambda reply: _by_name(chosen, reply))

    @explained
    def add(self, member: str, by: int = 1) -> Call[int | None]:
        """Add to a member and return it.

        Beyond its range it follows the declared overflow; None if that refuses, and nothing is changed.
        """
        bits = _bits(self._fields.member(member))
        if type(by) is not int or not -(1 << 63) <= by < 1 << 63:
            raise ValueRefusedError(self._template.source, "a number of 64 bits to add", excerpt(by))
        operands = (b"OVERFLOW", bits.policy, b"INCRBY", bits.type, bits.at, by)
        return Refreshing(ADD, self, operands, _first)

    @classmethod
    def _read_plainly(cls, reply: Reply) -> Any:
        return cls._fields.type(**_by_name(cls._fields.members, reply))

    @classmethod
    def _write_plainly(cls, value: Any) -> tuple[bytes | int, ...]:
        cls._fields.write(value)  # refuses what is not of the type
        return cls._written({m.attribute: getattr(value, m.attribute) for m in cls._fields.members})

    @classmethod
    def _written(cls, members: dict[str, int]) -> tuple[bytes | int, ...]:
        operands: list[bytes | int] = []
        for name, value in members.items():
            bits = _bits(cls._fields.member(name))
            try:
                operands += (b"SET", bits.type, bits.at, bits.encode(value))
            except CodecError as error:
                expected = f"{error.expected} as {name!r}"
                raise ValueRefusedError(cls._template.source, expected, error.found) from error
        return tuple(operands)


def _placed(cls: type[Key], members: Sequence[Member]) -> Iterator[Member]:
    """Yield the members with their offsets. Raise DeclarationError if two share a bit."""
    end = 0
    taken: dict[int, str] = {}
    for member in members:
        bits = member.codec
        if not isinstance(bits, Bits):
            raise DeclarationError(
                cls.__name__,
                f"{member.attribute!r} does not say how many bits it has",
                "Annotate it: Annotated[int, Bits(8)].",
            )
        start = end if bits.follows else bits.at
        end = start + bits.width
        for bit in range(start, end):
            other = taken.setdefault(bit, member.attribute)
            if other != member.attribute:
                raise DeclarationError(
                    cls.__name__, f"{other!r} and {member.attribute!r} share bit {bit}", "Change `at`."
                )
        yield member._replace(codec=bits.placed(start))


def _asked(members: Sequence[Member]) -> tuple[bytes | int, ...]:
    return tuple(x for bits in map(_bits, members) for x in (b"GET", bits.type, bits.at))


def _bits(member: Member) -> Bits:
    assert isinstance(member.codec, Bits)
    return member.codec


def _by_name(members: Sequence[Member], reply: Reply) -> dict[str, int]:
    return {member.attribute: value for member, value in zip(members, reply, strict=True)}


def _first(reply: Reply) -> int | None:
    found: int | None = reply[0]
    return found
