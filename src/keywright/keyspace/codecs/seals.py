"""The form of a seal, the place that it is bound to, and bytes on their way to be sealed or opened.

A seal is `kw2`, length and id of the key, nonce, ciphertext and tag. Its place is authenticated with it:
prefix, version, name of the key, and member. So a seal that is copied to another member, key, version or
prefix does not open. A seal of the older form `kw1` is bound to the template only. It is read until it is
resealed.

The member is the stored name of a member of a record or of an entry of a stream, or the field of a map. A
value has none, nor has an item of a list: items can be reordered and repeated within their list, and
members be exchanged between the entries of their stream.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from keywright.keyspace.codecs.keyring import Keyring

__all__ = ["NONCE", "Ciphertext", "Plaintext", "Seal", "SealPlace", "Sealable", "is_sealed", "parse_seal"]

MAGIC = b"kw2"
_TEMPLATE_ONLY = b"kw1"
NONCE = 12
_TAG = 16
_LONGEST_ID = 32


class SealPlace(NamedTuple):
    """The place of a sealed value in one database. `name` is the full name of the key."""

    template: bytes
    prefix: bytes
    version: bytes
    name: bytes
    member: bytes = b""

    def authenticated(self) -> bytes:
        """Return the bytes that are authenticated with the value. Different places have different ones."""
        parts = (self.prefix, self.version, self.name, self.member)
        return MAGIC + b"".join(len(part).to_bytes(4, "big") + part for part in parts)


class Plaintext(bytes):
    """Bytes of a sealed value while they are in clear: to be sealed, or just opened."""

    member: bytes = b""

    @classmethod
    def of(cls, data: bytes, member: bytes) -> Plaintext:
        plain = cls(data)
        plain.member = member
        return plain

    def __repr__(self) -> str:
        return "Plaintext(…)"


class Sealable(Plaintext):
    """Bytes that are sealed where a keyring is bound, and written in clear where none is."""


class Ciphertext(bytes):
    """Bytes in the form of a seal, with the place where they were read.

    Only a sealed codec opens them. For any other codec they are bytes that look like a seal.
    """

    place: SealPlace
    keyring: Callable[[], Keyring]
    """Returns the keyring that is bound. Raises DeclarationError if none is."""

    @classmethod
    def at(cls, data: bytes, place: SealPlace, keyring: Callable[[], Keyring]) -> Ciphertext:
        closed = cls(data)
        closed.place, closed.keyring = place, keyring
        return closed

    def opened(self, member: bytes) -> Plaintext:
        """Return the plaintext. Raise SealRefused if it was not sealed as this member of its place."""
        return self.keyring().open(bytes(self), self.place._replace(member=member))


class Seal(NamedTuple):
    """The parts of a seal. `by_template` is set for one of the older form."""

    key_id: str
    nonce: bytes
    ciphertext: bytes
    by_template: bool


def is_sealed(data: bytes) -> bool:
    """Return whether bytes have the form of a seal; it may still not open."""
    return parse_seal(data) is not None


def parse_seal(data: bytes) -> Seal | None:
    """Return the parts of a seal, or None for bytes of another form."""
    start = len(MAGIC) + 1
    if not data.startswith((MAGIC, _TEMPLATE_ONLY)) or len(data) < start:
        return None
    nonce = start + data[start - 1]
    if not start < nonce <= start + _LONGEST_ID or len(data) < nonce + NONCE + _TAG:
        return None
    key_id = data[start:nonce]
    if not key_id.isascii():
        return None
    by_template = data.startswith(_TEMPLATE_ONLY)
    return Seal(key_id.decode(), data[nonce : nonce + NONCE], data[nonce + NONCE :], by_template)
