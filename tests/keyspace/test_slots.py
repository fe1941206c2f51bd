"""Slots agree with Redis Cluster."""

from __future__ import annotations

from binascii import crc_hqx

import pytest

from keywright.keyspace.slots import hash_tag
from keywright.operations import slot_of

PATH_DIGEST = b"6fc8277be731c24196adfdfbbf4fab5a760941f1808efc8e2f37d1fae8b44ac3"


@pytest.mark.parametrize(
    ("name", "slot"),
    [
        (b"123456789", 12739),
        (b"", 0),
        (
            b"registry:db:{repository:gitlab-org:%s}" % PATH_DIGEST,
            4533,
        ),
    ],
)
def test_known_names_fall_in_their_known_slots(name: bytes, slot: int) -> None:
    assert slot_of(name) == slot


@pytest.mark.parametrize(
    ("name", "hashed"),
    [
        (b"{user1000}.following", b"user1000"),
        (b"foo{}{bar}", b"foo{}{bar}"),
        (b"foo{{bar}}zap", b"{bar"),
        (b"foo{bar}{zap}", b"bar"),
        (b"foo{bar", b"foo{bar"),
        (b"foo}bar{", b"foo}bar{"),
        (b"}foo{bar}", b"bar"),
        (b"plain", b"plain"),
    ],
)
def test_only_the_first_filled_pair_of_braces_is_hashed(name: bytes, hashed: bytes) -> None:
    assert hash_tag(name) == hashed
    assert slot_of(name) == crc_hqx(hashed, 0) % 16384


def test_names_with_the_same_tag_share_a_slot() -> None:
    assert slot_of(b"{user1000}.following") == slot_of(b"{user1000}.followers") == slot_of(b"user1000")
