"""Bitmap: many bits in one string, each by its offset."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from itertools import islice
from typing import Any, ClassVar, Literal, Unpack

from keywright.errors import DeclarationError, ValueRefusedError, excerpt
from keywright.keyspace.call import Call, Ready, Refreshing, Sliding
from keywright.keyspace.codecs import Codec
from keywright.keyspace.key import Key, KeyOptions
from keywright.keyspace.layouts import Ask
from keywright.keyspace.misuse import explained
from keywright.keyspace.storage import EntryPart, StoredEntry, StringStorage
from keywright.keyspace.wires import Effect, Operation, Reply

SET = Operation("set", b"SETBIT", Effect.REPEATABLE)
SET_MANY = Operation("set_many", b"BITFIELD", Effect.REPEATABLE)
GET = Operation("get", b"GETBIT", Effect.READ)
GET_MANY = Operation("get_many", b"BITFIELD_RO", Effect.READ)
COUNT = Operation("count", b"BITCOUNT", Effect.READ)
FIRST = Operation("first", b"BITPOS", Effect.READ)

MOST_BITS = 1 << 32  # a string has at most 512 MiB
SHOWN = 100

Unit = Literal["byte", "bit"]
_UNITS: dict[str, tuple[bytes, ...]] = {"byte": (), "bit": (b"BIT",)}


class BitmapCodec(Codec[bytes]):
    """The codec of the bytes of a bitmap with a bounded number of bits."""

    python_type = bytes
    samples = (b"", b"\x80")

    def __init__(self, bits: int | None) -> None:
        self.bits = MOST_BITS if bits is None else bits
        self.expected = "bits" if bits is None else f"at most {bits:,} bits"

    @property
    def most_bytes(self) -> int:
        return -(-self.bits // 8)

    def encode(self, value: bytes) -> bytes:
        return self.decode(value)

    def decode(self, data: bytes) -> bytes:
        if not isinstance(data, bytes):
            raise self.refusal(data)
        if len(data) > self.most_bytes:
            raise self.refusal(data, f"{len(data):,} bytes")
        return data


class BitmapStorage(StringStorage):
    """The bytes of a string, in which the first bit is the highest of the first byte."""

    reads = ("getbit", "bitcount", "bitpos", "bitfield_ro")
    writes = ("setbit", "bitfield")

    def __init__(self, kind: type[Key]) -> None:
        super().__init__(kind)
        (codec,) = kind.declaration.codecs
        assert isinstance(codec, BitmapCodec)
        self._codec = codec

    def entries(self, stored: Any, key: Key | None = None) -> Iterator[StoredEntry]:
        yield StoredEntry([EntryPart(self.item, stored)], _only, _shown)

    def malformed(self, refused: Any, key: Key) -> Ask | None:
        if self._codec.bits == MOST_BITS:
            return None
        return self.layout.addition(bytes(self._codec.most_bytes + 1))


class Bitmap(Key):
    """Bits by their offset, which all are 0 at first. `bits=` limits the offsets.

    The server allocates the memory up to the highest bit that is set: without a limit one wrong offset may
    allocate 512 MiB.
    """

    redis_type: ClassVar[str] = "string"
    kind: ClassVar[str] = "bitmap"
    _storage = BitmapStorage
    _most_bits: ClassVar[int] = MOST_BITS

    def __init_subclass__(cls, *, bits: int | None = None, **options: Unpack[KeyOptions]) -> None:
        if bits is not None:
            if type(bits) is not int or not 0 < bits <= MOST_BITS:
                remedy = f"Give bits= from 1 to {MOST_BITS:,}."
                raise DeclarationError(cls.__name__, f"a bitmap cannot have {bits!r} bits", remedy)
            cls._most_bits = bits
        super().__init_subclass__(**options)

    @classmethod
    def _declare(cls) -> Iterable[Codec[Any]]:
        return (BitmapCodec(cls._most_bits),)

    def set(self, offset: int, bit: bool = True) -> Call[bool]:
        """Set a bit, or clear it. Return what it was before."""
        if type(offset) is not int or not 0 <= offset < self._most_bits:
            self._checked(offset)  # raises
        return Refreshing(SET, self, (offset, 1 if bit is True else self._bit(bit)), bool)

    @explained
    def set_many(self, bits: Mapping[int, bool]) -> Call[dict[int, bool]]:
        """Set and clear many bits in one command. Return what each was before."""
        offsets = list(bits)
        if not offsets:
            return Ready({})
        checked = [(self._checked(offset), self._bit(bit)) for offset, bit in bits.items()]
        operands = tuple(x for offset, bit in checked for x in (b"SET", b"u1", offset, bit))
        return Refreshing(SET_MANY, self, operands, _by_offset(offsets))

    def get(self, offset: int) -> Call[bool]:
        """Return a bit; it is 0 beyond the stored bytes."""
        if type(offset) is not int or not 0 <= offset < self._most_bits:
            self._checked(offset)  # raises
        return Sliding(GET, self, (offset,), bool)

    @explained
    def get_many(self, offsets: Iterable[int]) -> Call[dict[int, bool]]:
        """Return many bits by their offsets, in one command."""
        asked = list(offsets)
        if not asked:
            return Ready({})
        operands = tuple(x for each in asked for x in (b"GET", b"u1", self._checked(each)))
        return Sliding(GET_MANY, self, operands, _by_offset(asked))

    @explained
    def count(self, start: int = 0, end: int = -1, *, unit: Unit = "byte") -> Call[int]:
        """Count the bits that are set, between two bytes or bits, both included, negative from the end.

        The unit "bit" needs Redis 7.0.
        """
        return Sliding(COUNT, self, (_place(start), _place(end), *_UNITS[unit]), int)

    @explained
    def first(
        self, bit: bool = True, start: int = 0, end: int | None = None, *, unit: Unit = "byte"
    ) -> Call[int | None]:
        """Return the offset of the first bit that is set, or clear, between two bytes or bits; or None.

        Without `end` the bits after the stored ones count as clear. The unit "bit" needs Redis 7.0.
        """
        if end is None and unit == "bit":
            end = -1
        ends = () if end is None else (_place(end), *_UNITS[unit])
        return Sliding(FIRST, self, (self._bit(bit), _place(start), *ends), _found)

    def _checked(self, offset: int) -> int:
        if type(offset) is not int or not 0 <= offset < self._most_bits:
            expected = f"an offset from 0 to {self._most_bits - 1:,}"
            raise ValueRefusedError(self._template.source, expected, excerpt(offset))
        return offset

    def _bit(self, bit: bool) -> int:
        if type(bit) not in (bool, int) or bit not in (0, 1):
            raise ValueRefusedError(self._template.source, "a bit: True or False", excerpt(bit))
        return int(bit)


def offsets_of(data: bytes) -> Iterator[int]:
    """Yield the offsets of the bits that are set."""
    for place, byte in enumerate(data):
        if byte:
            yield from (place * 8 + bit for bit in range(8) if byte & 0x80 >> bit)


def _place(place: int) -> int:
    if type(place) is not int:
        raise TypeError(f"{place!r} is not a number of bytes or bits")
    return place


def _by_offset(offsets: list[int]) -> Any:
    def bits(reply: Reply) -> dict[int, bool]:
        return {offset: bool(bit) for offset, bit in zip(offsets, reply, strict=True)}

    return bits


def _found(reply: Reply) -> int | None:
    return None if reply < 0 else int(reply)


def _only(values: Any) -> Any:
    return values[0]


def _shown(values: Any) -> Any:
    """Return how many bits are set, and the first of them, for people."""
    data = values[0]
    if not isinstance(data, bytes):
        return data
    return {
        "bits": len(data) * 8,
        "set": int.from_bytes(data).bit_count(),
        "first": list(islice(offsets_of(data), SHOWN)),
    }
