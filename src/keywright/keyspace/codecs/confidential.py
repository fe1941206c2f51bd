"""Confidential values: hidden from view by SecretOf, encrypted at rest by Sealed.

Where an inner codec fails, its error quotes the plaintext. It is replaced here, outside the handler, so that
it is not even chained.
"""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any, TypeVar

from keywright.keyspace.codecs.contract import Codec, CodecError, SealRefused, UnpackedTooLarge
from keywright.keyspace.codecs.seals import Ciphertext, Plaintext, Sealable, is_sealed
from keywright.keyspace.codecs.secret import Secret
from keywright.keyspace.misuse import explained_constructor

__all__ = ["Sealed", "SealedIfBound", "SecretOf"]

A = TypeVar("A")
B = TypeVar("B")
T = TypeVar("T")


def _masked(codec: Codec[Any], convert: Callable[[A], B], argument: A) -> B:
    try:
        return convert(argument)
    except (SealRefused, UnpackedTooLarge):
        raise  # they name keys and sizes, never content
    except CodecError:
        pass
    raise codec.refusal(argument)


class SecretOf(Codec[Secret[T]]):
    """A `Secret` around what another codec writes. What is stored is in clear, unless it is sealed too."""

    secret = True

    def __init__(self, inner: Codec[T]) -> None:
        self.expected = f"a secret: {inner.expected}"
        self.python_type = Secret[inner.python_type]  # type: ignore[name-defined]  # built at run time
        self.sealed = inner.sealed
        self.samples = tuple(Secret(sample) for sample in inner.samples)
        self.inner = inner
        self._encode = inner.encode
        self._decode = inner.decode

    def encode(self, value: Secret[T]) -> bytes:
        if isinstance(value, Secret):
            return _masked(self, self._encode, value.reveal())
        raise self.refusal(value)

    def decode(self, data: bytes) -> Secret[T]:
        return Secret(_masked(self, self._decode, data))

    def for_member(self, member: bytes) -> Codec[Secret[T]]:
        return SecretOf(self.inner.for_member(member)) if self.sealed else self


@explained_constructor
class Sealed(Codec[T]):
    """What another codec writes, encrypted at rest.

    The codec marks the bytes as `Plaintext`; they are sealed on their way to the server, with the keyring
    that was bound when the database was opened. Bytes that were read are a `Ciphertext`, which knows its
    place: the codec opens it. `allow_plaintext` reads unsealed values while a keyspace is being sealed; until
    it is removed, anyone who can write to Redis can plant plaintext.
    """

    secret = True
    sealed = True
    member: bytes = b""
    """The member that it reads and writes, which is part of the place of its seals."""

    def __init__(self, inner: Codec[T], *, allow_plaintext: bool = False) -> None:
        self.expected = f"{inner.expected}, sealed"
        self.python_type = inner.python_type
        self.samples = inner.samples
        self.allow_plaintext = allow_plaintext
        self.inner = inner

    def encode(self, value: T) -> bytes:
        return Plaintext.of(_masked(self, self.inner.encode, value), self.member)

    def decode(self, data: bytes) -> T:
        if type(data) is Ciphertext:
            data = data.opened(self.member)
        if type(data) is Plaintext or (self.allow_plaintext and not is_sealed(data)):
            return _masked(self, self.inner.decode, bytes(data))
        raise SealRefused(self.expected, "a seal that was not opened" if is_sealed(data) else "plaintext")

    def for_member(self, member: bytes) -> Codec[T]:
        codec = copy.copy(self)
        codec.member = member
        return codec


@explained_constructor
class SealedIfBound(Sealed[T]):
    """Encrypted at rest in a database that was opened with a keyring, in clear in one that was not.

    Both are read, so a keyring can be introduced while values are stored in clear. Anyone who can write to
    Redis can plant plaintext: where that matters, use `Sealed`.
    """

    optional_seal = True

    def __init__(self, inner: Codec[T]) -> None:
        super().__init__(inner, allow_plaintext=True)
        self.expected = f"{inner.expected}, sealed where a keyring is bound"

    def encode(self, value: T) -> bytes:
        return Sealable.of(super().encode(value), self.member)
