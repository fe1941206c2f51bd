"""The keys that seal values, by id, so that they can be rotated, and the form of a seal.

A sealed value is `kw1`, length and id of the key, nonce, ciphertext and tag. Its template is authenticated
with it, so a value copied under another template does not open; one copied between two keys of the same
template does.
"""

from __future__ import annotations

import base64
import binascii
import os
import re
import secrets
from collections.abc import Mapping
from typing import TYPE_CHECKING, NamedTuple, NoReturn

from keywright.errors import DeclarationError, dependencies_of
from keywright.keyspace.codecs.contract import SealRefused
from keywright.keyspace.codecs.secret import Secret
from keywright.keyspace.misuse import explained, explained_constructor, raise_explained

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.ciphers.aead import AESGCM

__all__ = ["Keyring", "Plaintext", "Sealable", "Unopened", "is_sealed"]

_KEY_ID = re.compile(r"[A-Za-z0-9_.-]{1,32}")
_KEY_SIZES = (16, 24, 32)
_MAGIC = b"kw1"
_NONCE = 12
_TAG = 16
_LONGEST_ID = 32
_ENTRY_FORM = "Write it as id:base64,id2:base64 with the sealing key first."

SEAL_KEYS = "KEYWRIGHT_SEAL_KEYS"
"""The default environment variable of a keyring."""


class Plaintext(bytes):
    """Bytes of a sealed value while they are in clear: to be sealed, or just opened."""

    def __repr__(self) -> str:
        return "Plaintext(…)"


class Sealable(Plaintext):
    """Bytes that are sealed where a keyring is bound, and written in clear where none is."""


class Unopened(bytes):
    """Bytes in the form of a seal that do not open. Where no seal is declared, they are just such bytes."""

    refusal: SealRefused

    @classmethod
    def because(cls, data: bytes, refusal: SealRefused) -> Unopened:
        unopened = cls(data)
        unopened.refusal = refusal
        return unopened


@explained_constructor
class Keyring:
    """AES-GCM keys: the primary seals, every key opens.

    To rotate, put a new key first, reseal what `needs_resealing` names, then drop the old key.
    Nonces are random, so a key should be retired well before it has sealed 2**32 values.
    """

    __slots__ = ("_ciphers", "_keys", "primary")

    def __init__(self, primary: str, keys: Mapping[str, bytes]) -> None:
        if primary not in keys:
            raise _unsound(
                f"the primary key {primary!r} is not among the keys", "Add it, or name another primary."
            )
        for key_id, key in keys.items():
            _check_key(key_id, key)
        self.primary = primary
        self._keys = {key_id: Secret(bytes(key)) for key_id, key in keys.items()}
        self._ciphers: dict[str, AESGCM] = {}

    @classmethod
    @explained
    def generate(cls, key_id: str) -> Keyring:
        return cls(key_id, {key_id: secrets.token_bytes(32)})

    @classmethod
    @explained
    def from_env_if_set(cls, name: str = SEAL_KEYS) -> Keyring | None:
        """Return the keyring of an environment variable, or None if it is not set or empty."""
        return cls.from_env(name) if os.environ.get(name) else None

    @classmethod
    @explained
    def from_env(cls, name: str = SEAL_KEYS) -> Keyring:
        """Return the keyring of an environment variable; the first key is the primary."""
        text = os.environ.get(name, "").strip()
        if not text:
            raise _unsound(f"the environment variable {name} is not set", _ENTRY_FORM)
        keys: dict[str, bytes] = {}
        for position, entry in enumerate(text.split(","), start=1):
            key_id, key = _parse_entry(entry.strip(), f"entry {position} of {name}")
            if key_id in keys:
                raise _unsound(f"{name} names {key_id!r} twice", "Give each key its own id.")
            keys[key_id] = key
        return cls(next(iter(keys)), keys)

    def export(self) -> str:
        """Return the text that `from_env` reads. It holds the keys in clear: store it as a secret."""
        ordered = [self.primary, *(key_id for key_id in self._keys if key_id != self.primary)]
        return ",".join(
            f"{key_id}:{base64.b64encode(self._keys[key_id].reveal()).decode()}" for key_id in ordered
        )

    @property
    def key_ids(self) -> tuple[str, ...]:
        return tuple(self._keys)

    def cipher(self, key_id: str) -> AESGCM | None:
        cipher = self._ciphers.get(key_id)
        if cipher is None and key_id in self._keys:
            cipher = self._ciphers[key_id] = _cipher_of(self._keys[key_id])
        return cipher

    def seal(self, plain: bytes, template: bytes) -> bytes:
        """Encrypt under the primary key."""
        key_id = self.primary.encode()
        cipher = self.cipher(self.primary)
        assert cipher is not None, "a keyring holds its primary key"
        nonce = os.urandom(_NONCE)
        try:
            sealed = cipher.encrypt(nonce, bytes(plain), template)
        except (TypeError, ValueError) as error:
            raise_explained(Keyring.seal, (self, plain, template), {}, error)
        return b"%b%c%b%b%b" % (_MAGIC, len(key_id), key_id, nonce, sealed)

    def open(self, data: bytes, template: bytes) -> Plaintext:
        """Decrypt with the key that sealed it. Raise SealRefused for an unknown key or a broken seal."""
        try:
            seal = _parse_seal(data)
        except (AttributeError, TypeError) as error:
            raise_explained(Keyring.open, (self, data, template), {}, error)
        if seal is None:
            raise SealRefused("a sealed value", "a damaged seal" if data.startswith(_MAGIC) else "plaintext")
        cipher = self.cipher(seal.key_id)
        if cipher is None:
            raise SealRefused("a sealed value", f"a seal by the unknown key {seal.key_id!r}")
        try:
            return Plaintext(cipher.decrypt(seal.nonce, seal.ciphertext, template))
        except Exception as exc:
            found = f"a seal by {seal.key_id!r} that does not open: altered, or from another template"
            raise SealRefused("a sealed value", found) from exc

    @explained
    def needs_resealing(self, data: bytes) -> bool:
        """Return whether a stored value is in clear, or sealed by another key than the primary."""
        seal = _parse_seal(data)
        return seal is None or seal.key_id != self.primary

    def __repr__(self) -> str:
        return f"Keyring(primary={self.primary!r}, keys={list(self._keys)})"

    def __reduce_ex__(self, protocol: object) -> NoReturn:
        raise TypeError("a Keyring is not pickled; make it from the environment in each process")


class _Seal(NamedTuple):
    key_id: str
    nonce: bytes
    ciphertext: bytes


def is_sealed(data: bytes) -> bool:
    """Return whether bytes have the form of a seal; it may still not open."""
    return _parse_seal(data) is not None


def _parse_seal(data: bytes) -> _Seal | None:
    start = len(_MAGIC) + 1
    if not data.startswith(_MAGIC) or len(data) < start:
        return None
    nonce = start + data[start - 1]
    if not start < nonce <= start + _LONGEST_ID or len(data) < nonce + _NONCE + _TAG:
        return None
    key_id = data[start:nonce]
    if not key_id.isascii():
        return None
    return _Seal(key_id.decode(), data[nonce : nonce + _NONCE], data[nonce + _NONCE :])


def _cipher_of(key: Secret[bytes]) -> AESGCM:
    with dependencies_of("a sealed value", install="keywright[sealed]"):
        from cryptography.hazmat.primitives.ciphers.aead import AESGCM
    return AESGCM(key.reveal())


def _parse_entry(entry: str, place: str) -> tuple[str, bytes]:
    key_id, colon, encoded = entry.partition(":")
    # Without a colon the id may be a key that lost its name: it must not reach the message.
    if not colon:
        raise _unsound(f"{place} has no colon", _ENTRY_FORM)
    try:
        key = base64.b64decode(encoded, validate=True)
    except (binascii.Error, ValueError):
        key = None
    if key is None:
        raise _unsound(f"{place} is not base64", _ENTRY_FORM)
    return key_id, key


def _check_key(key_id: str, key: bytes) -> None:
    if not _KEY_ID.fullmatch(key_id):
        raise _unsound("a key id is malformed", "Use 1 to 32 of A-Z a-z 0-9 _ . -")
    if not isinstance(key, bytes) or len(key) not in _KEY_SIZES:
        raise _unsound(f"the key {key_id!r} is not 16, 24 or 32 bytes", "Make one with Keyring.generate().")


def _unsound(reason: str, remedy: str) -> DeclarationError:
    return DeclarationError("keyring", reason, remedy)
