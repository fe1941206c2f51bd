"""The keys that seal values, by id, so that they can be rotated."""

from __future__ import annotations

import base64
import binascii
import os
import re
import secrets
from collections.abc import Mapping
from typing import TYPE_CHECKING, NoReturn

from keywright.errors import DeclarationError, dependencies_of
from keywright.keyspace.codecs.contract import SealRefused
from keywright.keyspace.codecs.seals import MAGIC, NONCE, Plaintext, SealPlace, parse_seal
from keywright.keyspace.codecs.secret import Secret
from keywright.keyspace.misuse import explained, explained_constructor, raise_explained

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.ciphers.aead import AESGCM

__all__ = ["Keyring"]

_KEY_ID = re.compile(r"[A-Za-z0-9_.-]{1,32}")
_KEY_SIZES = (16, 24, 32)
_ENTRY_FORM = "Write it as id:base64,id2:base64 with the sealing key first."

SEAL_KEYS = "KEYWRIGHT_SEAL_KEYS"
"""The default environment variable of a keyring."""


@explained_constructor
class Keyring:
    """AES-GCM keys: the primary seals, every key opens.

    To rotate, put a new key first, run `keywright migrate` with it, then drop the old key.
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
        """Return a keyring with one new random key."""
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
        """Return the ids of all keys."""
        return tuple(self._keys)

    def cipher(self, key_id: str) -> AESGCM | None:
        """Return the cipher of a key, or None if the keyring does not have it."""
        cipher = self._ciphers.get(key_id)
        if cipher is None and key_id in self._keys:
            cipher = self._ciphers[key_id] = _cipher_of(self._keys[key_id])
        return cipher

    def seal(self, plain: bytes, place: SealPlace) -> bytes:
        """Encrypt under the primary key, for one place."""
        key_id = self.primary.encode()
        cipher = self.cipher(self.primary)
        assert cipher is not None, "a keyring holds its primary key"
        nonce = os.urandom(NONCE)
        try:
            sealed = cipher.encrypt(nonce, bytes(plain), place.authenticated())
        except (AttributeError, TypeError, ValueError) as error:
            raise_explained(Keyring.seal, (self, plain, place), {}, error)
        return b"%b%c%b%b%b" % (MAGIC, len(key_id), key_id, nonce, sealed)

    def open(self, data: bytes, place: SealPlace) -> Plaintext:
        """Decrypt with the key that sealed it. Raise SealRefused for an unknown key or a broken seal."""
        try:
            seal = parse_seal(data)
        except (AttributeError, TypeError) as error:
            raise_explained(Keyring.open, (self, data, place), {}, error)
        if seal is None:
            raise SealRefused("a sealed value", "a damaged seal" if data.startswith(b"kw") else "plaintext")
        cipher = self.cipher(seal.key_id)
        if cipher is None:
            raise SealRefused("a sealed value", f"a seal by the unknown key {seal.key_id!r}")
        bound_to = place.template if seal.by_template else place.authenticated()
        try:
            return Plaintext.of(cipher.decrypt(seal.nonce, seal.ciphertext, bound_to), place.member)
        except Exception as exc:
            origin = "template" if seal.by_template else "key or member"
            found = f"a seal by {seal.key_id!r} that does not open: altered, or from another {origin}"
            raise SealRefused("a sealed value", found) from exc

    @explained
    def needs_resealing(self, data: bytes) -> bool:
        """Return whether a stored value is in clear, in the older form of a seal, or not by the primary."""
        seal = parse_seal(data)
        return seal is None or seal.by_template or seal.key_id != self.primary

    def __repr__(self) -> str:
        return f"Keyring(primary={self.primary!r}, keys={list(self._keys)})"

    def __reduce_ex__(self, protocol: object) -> NoReturn:
        raise TypeError("a Keyring is not pickled; make it from the environment in each process")


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
