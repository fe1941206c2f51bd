"""Compressed values of others: the explorer and the audit unpack no more than 1 MiB, and report the rest."""

from __future__ import annotations

from typing import Annotated, Any

import pytest
import zstandard

from audited import Sample, audited
from exploring import exploring, key_path
from keywright import Codec, Id, Keyspace, Secret, Set, Value, Zstd
from keywright.keyspace.codecs import Raw as RawBytes
from keywright.testing.runs import Raw
from keywright.tools.model import Model

MIB = 1 << 20
unpacked: list[int] = []


class Counted(Codec[bytes]):
    """Bytes, of which it notes how many there were."""

    expected = "bytes"
    python_type = bytes

    def encode(self, value: bytes) -> bytes:
        return value

    def decode(self, data: bytes) -> bytes:
        unpacked.append(len(data))
        return data


attic = Keyspace("attic", "Compressed values.", prefix="attic")


class Bale(Value[Annotated[Any, Zstd(Counted())]], key="bale:<n>", space=attic):
    """A compressed value."""

    n: Id


class Heap(Set[Annotated[Any, Zstd(Counted())]], key="heap:<n>", space=attic):
    """Compressed members."""

    n: Id


class Safe(Value[Secret[Annotated[bytes, Zstd(RawBytes())]]], key="safe:<n>", space=attic):
    """A compressed secret."""

    n: Id


ATTIC = Sample(Model("attic", (attic,)), (), lambda _: None, {})


@pytest.fixture(autouse=True)
def nothing_unpacked() -> None:
    unpacked.clear()


def packed(size: int, mark: int = 0, *, declares_size: bool = True) -> bytes:
    plain = mark.to_bytes(8, "little") + bytes(size - 8)
    return zstandard.ZstdCompressor(write_content_size=declares_size).compress(plain)


@pytest.mark.parametrize("declares_size", [True, False])
def test_the_explorer_unpacks_one_mebibyte_at_most(redis_url: str, raw: Raw, declares_size: bool) -> None:
    raw("SET", "attic:bale:1", packed(8 * MIB, declares_size=declares_size))
    raw("SET", "attic:bale:2", packed(MIB, declares_size=declares_size))
    raw("SADD", "attic:heap:1", *(packed(MIB // 2, mark, declares_size=declares_size) for mark in range(20)))
    with exploring(redis_url, [attic]) as explored:
        assert "Too large to be shown" in explored.get(key_path("attic:bale:1")).text
        assert unpacked == []
        assert "Too large to be shown" not in explored.get(key_path("attic:bale:2")).text
        assert set(unpacked) == {MIB}
        unpacked.clear()
        page = explored.get(key_path("attic:heap:1")).text
        assert page.count("unpacks to more than") == 18, "two fit into one mebibyte"
        assert sum(unpacked) <= 2 * MIB, "once for the value, and once for the table"


@pytest.mark.parametrize("declares_size", [True, False])
def test_the_audit_notes_values_that_unpack_to_more_than_one_mebibyte(
    redis_url: str, raw: Raw, declares_size: bool
) -> None:
    for number in range(4):
        raw("SET", f"attic:bale:{number}", packed(MIB, declares_size=declares_size))
        raw("SET", f"attic:safe:{number}", packed(2 * MIB, declares_size=declares_size))
    raw("SET", "attic:bale:9", packed(8 * MIB, declares_size=declares_size))
    raw("SADD", "attic:heap:1", packed(8 * MIB, 1, declares_size=declares_size), packed(MIB // 2, 2))
    report, findings = audited(redis_url, ATTIC)
    assert report.counts == {"KW502": 6}
    assert not report.failed
    assert {finding.name for finding in findings} == {
        b"attic:bale:9",
        b"attic:heap:1",
        *(b"attic:safe:%d" % number for number in range(4)),
    }
    assert {finding.reason for finding in findings} == {"unpacks to more than 1 MiB, so it was not read"}
    assert max(unpacked) <= MIB
