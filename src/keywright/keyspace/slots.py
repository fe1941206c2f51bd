"""Slots of key names in Redis Cluster: the arithmetic. The engine knows which node serves a slot."""

from __future__ import annotations

from binascii import crc_hqx

__all__ = ["SLOTS", "hash_tag", "slot_of"]

SLOTS = 16384


def hash_tag(name: bytes) -> bytes:
    """Return the part of ``name`` that Redis Cluster hashes.

    Redis Cluster specification: "if the key contains a '{...}' pattern only the substring between { and }
    is hashed", taking the first `{` and the first `}` after it; an empty pair does not count.
    """
    opening = name.find(b"{")
    if opening < 0:
        return name
    closing = name.find(b"}", opening + 1)
    if closing <= opening + 1:
        return name
    return name[opening + 1 : closing]


def slot_of(name: bytes) -> int:
    """Return the cluster slot of ``name``, from 0 to 16383."""
    if b"{" in name:
        name = hash_tag(name)
    return crc_hqx(name, 0) % SLOTS
