"""The checksum at the end of a dump: CRC-64 of Jones, of all bytes before it.

A table and a loop over bytes would take a second for 10 MB in Python. Here a block is cut into thousands of
lanes, and one step processes a byte of every lane with operations on whole byte strings.
"""

from __future__ import annotations

from functools import cache

from keywright.tools.rdb.files import DumpFile

__all__ = ["check_checksum", "crc64"]

_POLYNOMIAL = 0x95AC9329AC4BC9B5  # of Jones, with its bits reversed
LANES = 1 << 12
STEPS = 1 << 9
BLOCK = LANES * STEPS


def check_checksum(file: DumpFile) -> None:
    """Raise DumpError unless the last bytes of a file are the checksum of the others.

    A file without a checksum passes: servers write 0 where rdbchecksum is off. So does one with commands
    behind the dump, since it is not known where the dump ends.
    """
    end = file.size - 8
    if file.header.version < 5 or end <= file.header.end or file.read(end - 1, 1) != b"\xff":
        return
    stated = int.from_bytes(file.read(end, 8), "little")
    if not stated:
        return
    found = 0
    for offset in range(0, end, BLOCK):
        found = crc64(file.read(offset, min(BLOCK, end - offset)), found)
    if found != stated:
        raise file.malformed(end, "its checksum is wrong, so it is damaged")


def crc64(data: bytes, before: int = 0) -> int:
    """Return the checksum of some bytes, or of all up to these, given that of the bytes before."""
    crc = before
    while len(data) >= BLOCK:
        for lane in _lanes(data[:BLOCK]):
            crc = _advanced(crc, _after_lane()) ^ lane
        data = data[BLOCK:]
    table = _table()
    for byte in data:
        crc = table[(crc ^ byte) & 0xFF] ^ crc >> 8
    return crc


def _lanes(block: bytes) -> list[int]:
    """Return the checksum of each lane of a block, as if nothing came before it."""
    tables = _translations()
    state = [bytes(LANES)] * 8
    for step in range(STEPS):
        index = _xor(state[0], block[step::STEPS])
        changes = [index.translate(table) for table in tables]
        state = [_xor(part, change) for part, change in zip(state[1:], changes, strict=False)]
        state.append(changes[7])
    return [int.from_bytes(lane, "little") for lane in zip(*state, strict=True)]


def _xor(one: bytes, other: bytes) -> bytes:
    return (int.from_bytes(one, "little") ^ int.from_bytes(other, "little")).to_bytes(LANES, "little")


def _advanced(crc: int, tables: list[list[int]]) -> int:
    found = 0
    for table in tables:
        found ^= table[crc & 0xFF]
        crc >>= 8
    return found


@cache
def _table() -> list[int]:
    found = []
    for byte in range(256):
        crc = byte
        for _ in range(8):
            crc = crc >> 1 ^ (_POLYNOMIAL if crc & 1 else 0)
        found.append(crc)
    return found


@cache
def _translations() -> list[bytes]:
    """Return the table as eight tables of single bytes."""
    return [bytes(entry >> 8 * place & 0xFF for entry in _table()) for place in range(8)]


@cache
def _after_lane() -> list[list[int]]:
    """Return the effect of the bytes of a lane on the checksum before it, by byte of the checksum."""
    table = _table()
    bits = []
    for bit in range(64):
        crc = 1 << bit
        for _ in range(STEPS):
            crc = table[crc & 0xFF] ^ crc >> 8
        bits.append(crc)
    tables = []
    for place in range(8):
        found = [0] * 256
        for byte in range(1, 256):
            lowest = byte & -byte
            found[byte] = found[byte ^ lowest] ^ bits[8 * place + lowest.bit_length() - 1]
        tables.append(found)
    return tables
