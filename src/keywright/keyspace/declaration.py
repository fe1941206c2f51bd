"""What a key class declares, as one object that tools and systems may read."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cached_property
from operator import attrgetter
from typing import TYPE_CHECKING, Any

from keywright.errors import UsageError
from keywright.keyspace.recognition import FormerPlace, former_places

if TYPE_CHECKING:
    from keywright.keyspace.alphabets import Derived
    from keywright.keyspace.cached_reads import Cached
    from keywright.keyspace.codecs import Codec
    from keywright.keyspace.expiry import Expiry
    from keywright.keyspace.field_expiry import FieldExpiry
    from keywright.keyspace.key import Key
    from keywright.keyspace.space import Keyspace
    from keywright.keyspace.storage import Storage
    from keywright.keyspace.template import Template
    from keywright.keyspace.versions.upgrades import Upgrade

__all__ = ["Declaration"]


class Declaration:
    """The declaration of one key class: `Order.declaration.template`, `.expiry`, `.encode(value)`, …"""

    values: Callable[[Key], tuple[Any, ...]] = staticmethod(attrgetter("_values"))
    """Return the variables of a key in the order of the constructor."""

    def __init__(self, key: type[Key]) -> None:
        self._key = key

    @cached_property
    def template(self) -> Template:
        return self._key._template

    @cached_property
    def space(self) -> Keyspace:
        return self._key._space

    @cached_property
    def expiry(self) -> Expiry | None:
        """The declared expiry; a database may override it, see `Context.expiry_of`."""
        return self._key._expiry

    @cached_property
    def cached(self) -> Cached:
        """Whether reads are answered from memory while the key is unchanged, or how long at most."""
        return self._key._cached

    @cached_property
    def field_expiry(self) -> FieldExpiry | None:
        """The declared expiries of single fields, of a Map or Record."""
        return self._key._field_expiry

    @cached_property
    def codecs(self) -> tuple[Codec[Any], ...]:
        """The codecs of all stored parts."""
        return self._key._codecs

    @cached_property
    def derived(self) -> dict[str, Derived]:
        """The variables that `of` computes from a source text."""
        return self._key._derived

    @cached_property
    def part_of(self) -> type[Key] | None:
        """The class whose keys this one is part of: `erase` deletes both."""
        return self._key._part_of

    @cached_property
    def yields_to(self) -> tuple[type[Key], ...]:
        """The classes that own the names which this one could make as well, as declared."""
        return self._key._yields_to

    @cached_property
    def fallback(self) -> bool:
        """Whether the class has the names that no other of its keyspace makes."""
        return self._key._fallback

    def superiors(self) -> list[type[Key]]:
        """Return the classes to which this one yields; to a fallback, the others of its keyspace by now."""
        if self.fallback:
            return [kind for kind in self.space if not kind._fallback]
        return list(self.yields_to)

    @cached_property
    def former(self) -> tuple[type[Key], ...]:
        """One class for each former template, as `moved_from` lists them."""
        return self._key._former

    @cached_property
    def upgrades(self) -> tuple[Upgrade, ...]:
        upgrades: tuple[Upgrade, ...] = getattr(self._key, "_upgrades", ())
        return upgrades

    @cached_property
    def upgrades_in_place(self) -> bool:
        """Whether values may be in an older shape under their present name."""
        return any(upgrade.moved_from is None for upgrade in self.upgrades)

    @cached_property
    def former_places(self) -> tuple[FormerPlace, ...]:
        """The places where keys of the class were stored, the renamed ones first."""
        return tuple(former_places(self._key))

    @cached_property
    def open(self) -> bool:
        """Whether values may have members that are not declared."""
        return self._key._open

    @cached_property
    def sealed(self) -> bool:
        """Whether any stored part is encrypted."""
        return self._key._sealed

    @cached_property
    def optional_seal(self) -> bool:
        """Whether every sealed part is sealed only in a database with a keyring."""
        sealed = [codec for codec in self.codecs if codec.sealed]
        return bool(sealed) and all(codec.optional_seal for codec in sealed)

    @cached_property
    def secret(self) -> bool:
        """Whether any stored part must not be shown."""
        return self._key._secret

    @cached_property
    def storage(self) -> Storage:
        """How keys of the class are stored: commands, entries, and what may be wrong with them."""
        storage: Storage = self._key._storage(self._key)
        return storage

    @cached_property
    def arguments(self) -> tuple[str, ...]:
        """The variables in the order of the constructor; the template may have another order."""
        return tuple(self._key.__dict__["_argument_names"])

    @cached_property
    def encode(self) -> Callable[[object], bytes]:
        """Return the stored form of a value, member or item. Raise ValueRefusedError if it is invalid."""
        encode = getattr(self._key, "_encode", None) or getattr(self._key, "_encode_value", None)
        if encode is None:
            raise UsageError(
                f"{self._key.__name__} stores members, not one value. Use encode_members() with a key."
            )
        found: Callable[[object], bytes] = encode
        return found

    @cached_property
    def encode_field(self) -> Callable[[object], bytes]:
        """Return the stored form of a field of a Map."""
        encode = getattr(self._key, "_encode_field", None)
        if encode is None:
            raise UsageError(f"{self._key.__name__} is not a Map, so it has no fields to encode.")
        found: Callable[[object], bytes] = encode
        return found

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
