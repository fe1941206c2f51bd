"""What a key class declares, as one object that tools and systems may read."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from keywright.errors import UsageError

if TYPE_CHECKING:
    from keywright.keyspace.alphabets import Derived
    from keywright.keyspace.codecs import Codec
    from keywright.keyspace.expiry import Expiry
    from keywright.keyspace.key import Key
    from keywright.keyspace.space import Keyspace
    from keywright.keyspace.storage import Storage
    from keywright.keyspace.template import Template
    from keywright.keyspace.versions.upgrades import Upgrade

__all__ = ["Declaration"]


class Declaration:
    """The declaration of one key class: `Order.declaration.template`, `.expiry`, `.encode(value)`, …"""

    __slots__ = ("_key", "_storage")

    def __init__(self, key: type[Key]) -> None:
        self._key = key
        self._storage: Storage | None = None

    @property
    def template(self) -> Template:
        return self._key._template

    @property
    def space(self) -> Keyspace:
        return self._key._space

    @property
    def expiry(self) -> Expiry | None:
        """The declared expiry; a database may override it, see `Context.expiry_of`."""
        return self._key._expiry

    @property
    def codecs(self) -> tuple[Codec[Any], ...]:
        """The codecs of all stored parts."""
        return self._key._codecs

    @property
    def derived(self) -> dict[str, Derived]:
        """The variables that `of` computes from a source text."""
        return self._key._derived

    @property
    def part_of(self) -> type[Key] | None:
        """The class whose keys this one is part of: `erase` deletes both."""
        return self._key._part_of

    @property
    def former(self) -> tuple[type[Key], ...]:
        """One class for each former template, as `moved_from` lists them."""
        return self._key._former

    @property
    def upgrades(self) -> tuple[Upgrade, ...]:
        upgrades: tuple[Upgrade, ...] = getattr(self._key, "_upgrades", ())
        return upgrades

    @property
    def sealed(self) -> bool:
        """Whether any stored part is encrypted."""
        return self._key._sealed

    @property
    def secret(self) -> bool:
        """Whether any stored part must not be shown."""
        return self._key._secret

    @property
    def storage(self) -> Storage:
        """How keys of the class are stored: commands, entries, and what may be wrong with them."""
        storage = self._storage
        if storage is None:
            storage = self._storage = self._key._storage(self._key)
        return storage

    @property
    def arguments(self) -> tuple[str, ...]:
        """The variables in the order of the constructor; the template may have another order."""
        return tuple(self._key.__dict__["_argument_names"])

    def values(self, key: Key) -> tuple[Any, ...]:
        """Return the variables of a key in the order of the constructor."""
        return key._values

    def encode(self, value: object) -> bytes:
        """Return the stored form of a value, member or item. Raise ValueRefusedError if it is invalid."""
        encode = getattr(self._key, "_encode", None) or getattr(self._key, "_encode_value", None)
        if encode is None:
            raise UsageError(
                f"{self._key.__name__} stores members, not one value. Use encode_members() with a key."
            )
        stored: bytes = encode(value)
        return stored

    def encode_field(self, field: object) -> bytes:
        """Return the stored form of a field of a Map."""
        encode = getattr(self._key, "_encode_field", None)
        if encode is None:
            raise UsageError(f"{self._key.__name__} is not a Map, so it has no fields to encode.")
        stored: bytes = encode(field)
        return stored

    def decode(self, data: bytes) -> Any:
        """Return the value, member or item of stored bytes. Raise CodecError if they are malformed."""
        codec: Codec[Any] | None = getattr(self._key, "_codec", None) or getattr(self._key, "_value", None)
        if codec is None:
            raise UsageError(
                f"{self._key.__name__} stores members, not one value. Use decode_members() with a key."
            )
        return codec.decode(data)

    def encode_members(self, key: Key, value: object) -> dict[bytes, bytes]:
        """Return the stored members of the value of a Record, or of an entry of a Stream."""
        members: dict[bytes, bytes] = key._members_of(value)  # type: ignore[attr-defined]  # both have it
        return members

    def decode_members(self, key: Key, stored: Mapping[bytes, bytes]) -> Any:
        """Return the value of a Record or the entry of a Stream from its stored members.

        Raise CodecError if they are malformed.
        """
        return key._own_fields().read(stored)  # type: ignore[attr-defined]  # both have it

    def __repr__(self) -> str:
        return f"Declaration({self._key.__name__}: {self.template.source})"
