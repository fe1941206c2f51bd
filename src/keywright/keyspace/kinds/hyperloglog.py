"""HyperLogLog: an estimate of how many distinct members were added, in at most 12 KiB."""

from __future__ import annotations

import math
from collections import Counter as Histogram
from collections.abc import Iterable, Sequence
from typing import Any, ClassVar, Generic, TypeVar

from keywright.keyspace.call import Call, Ready, Refreshing, Sliding, nothing
from keywright.keyspace.codecs import Codec, CodecError, codec_of
from keywright.keyspace.key import Key, Unbound, type_arguments
from keywright.keyspace.kinds.encoders import comparable, encoder, many_encoder
from keywright.keyspace.kinds.several import Merging, Several
from keywright.keyspace.misuse import MISUSE, explained, raise_explained
from keywright.keyspace.storage import StringStorage
from keywright.keyspace.wires import Effect, Operation

M = TypeVar("M")

ADD = Operation("add", b"PFADD", Effect.REPEATABLE)
ESTIMATE = Operation("estimate", b"PFCOUNT", Effect.READ)
MERGE = Operation("merge", b"PFMERGE", Effect.REPEATABLE)

HEADER = 16
REGISTERS = 1 << 14
DENSE, SPARSE = 0, 1
DENSE_SIZE = HEADER + REGISTERS * 6 // 8
HIGHEST = 51  # of a register: a hash has 64 bits, of which 14 choose the register
ALPHA = 0.721347520444481703680


class Estimate(int):
    """A number of distinct members, which is off by 0.81 % on average."""

    def __repr__(self) -> str:
        return f"Estimate({int(self)})"


class HyperLogLogCodec(Codec[Estimate]):
    """The codec of the stored bytes. It returns the estimate that PFCOUNT would; members are not stored."""

    python_type = Estimate

    def __init__(self, member: Codec[Any]) -> None:
        self.expected = f"an estimate of distinct members: {member.expected}"
        self.secret = member.secret

    def encode(self, value: Estimate) -> bytes:
        raise self.refusal(value, "a HyperLogLog is written by the server only")

    def decode(self, data: bytes) -> Estimate:
        registers = self.verify(data)
        cached = int.from_bytes(data[8:HEADER], "little")
        return Estimate(_estimated(registers()) if cached >> 63 else cached)

    def verify(self, data: bytes) -> Any:
        """Check header and length. Return a function that counts the registers by value."""
        encoding = data[4] if len(data) >= HEADER else None
        if data[:4] != b"HYLL" or encoding not in (DENSE, SPARSE):
            raise self._malformed(data, "no header of a HyperLogLog")
        if encoding == SPARSE:
            return self._sparse(data).copy
        if len(data) != DENSE_SIZE:
            raise self._malformed(data, f"{len(data)} bytes, not {DENSE_SIZE}")
        return lambda: _dense(data)

    def _sparse(self, data: bytes) -> Histogram[int]:
        found: Histogram[int] = Histogram()
        codes = iter(data[HEADER:])
        for code in codes:
            if code & 0x80:
                found[(code >> 2 & 31) + 1] += (code & 3) + 1
            elif code & 0x40:
                found[0] += ((code & 63) << 8 | next(codes, 0)) + 1
            else:
                found[0] += code + 1
        if found.total() != REGISTERS:
            raise self._malformed(data, f"{found.total()} registers, not {REGISTERS}")
        return found

    def _malformed(self, data: bytes, reason: str) -> CodecError:
        return self.refusal(data[:HEADER], reason)


def _dense(data: bytes) -> Histogram[int]:
    """Count the registers by value: four of them are in three bytes, the lowest bits first."""
    found: Histogram[int] = Histogram()
    for first, second, third in zip(*(data[HEADER + place :: 3] for place in range(3)), strict=True):
        four = first | second << 8 | third << 16
        found.update((four & 63, four >> 6 & 63, four >> 12 & 63, four >> 18))
    return found


def _estimated(registers: Histogram[int]) -> int:
    """Return the estimate of Ertl, "New cardinality estimation algorithms", as the servers compute it."""
    total = REGISTERS * _tau((REGISTERS - registers[HIGHEST]) / REGISTERS)
    for value in range(HIGHEST - 1, 0, -1):
        total = (total + registers[value]) / 2
    total += REGISTERS * _sigma(registers[0] / REGISTERS)
    return math.floor(ALPHA * REGISTERS * REGISTERS / total + 0.5)


def _sigma(share: float) -> float:
    if share == 1:
        return math.inf
    factor, total, before = 1.0, share, -1.0
    while total != before:
        share *= share
        before = total
        total += share * factor
        factor += factor
    return total


def _tau(share: float) -> float:
    if share in (0, 1):
        return 0.0
    factor, total, before = 1.0, 1 - share, -1.0
    while total != before:
        share = math.sqrt(share)
        before = total
        factor /= 2
        total -= (1 - share) ** 2 * factor
    return total / 3


class HyperLogLogStorage(StringStorage):
    """One string with a header. Members cannot be read back."""

    reads = ("pfcount",)
    writes = ("pfadd", "pfmerge")

    def __init__(self, kind: type[Key]) -> None:
        super().__init__(kind)
        self.item = self._codec = HyperLogLogCodec(kind.declaration.codecs[0])

    def verify(self, stored: Sequence[Any]) -> bool:
        for data in stored:
            self._codec.verify(data)
        return True


class HyperLogLog(Key, Generic[M]):
    """How many distinct members were added, as an estimate that is off by 0.81 % on average.

    It needs at most 12 KiB, however many members there are. They cannot be listed, looked up or removed.
    """

    redis_type: ClassVar[str] = "string"
    kind: ClassVar[str] = "hyperloglog"
    _storage = HyperLogLogStorage
    _encode: ClassVar[Unbound]
    _encode_many: ClassVar[Unbound]

    @classmethod
    def _declare(cls) -> Iterable[Codec[Any]]:
        member = comparable(cls, codec_of(type_arguments(cls, HyperLogLog)[0]))
        cls._encode = staticmethod(encoder(cls, member))
        cls._encode_many = staticmethod(many_encoder(cls, member))
        return (member,)

    def add(self, *members: M) -> Call[bool]:
        """Add members in one command. Return whether the estimate changed. Without members send nothing."""
        if not members:
            return Ready(False)
        if len(members) == 1:
            return Refreshing(ADD, self, (self._encode(members[0]),), bool)
        return Refreshing(ADD, self, tuple(self._encode_many(members)), bool)

    def estimate(self, *others: HyperLogLog[M]) -> Call[int]:
        """Estimate the distinct members, of several keys together; on a cluster all must share a slot."""
        if not others:
            return Sliding(ESTIMATE, self, (), int)
        try:
            return Several(ESTIMATE, self, (), int, others)
        except MISUSE as error:
            raise_explained(HyperLogLog.estimate, (self, *others), {}, error)

    @explained
    def merge(self, *others: HyperLogLog[M]) -> Call[None]:
        """Add the members of others to this one, in one command; on a cluster all must share a slot."""
        return Merging(MERGE, self, (), nothing, others)
