"""Decoding of stored entries in one database: with the keys of seals, or without them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from keywright.errors import KeywrightError
from keywright.keyspace.codecs import CodecError, SealRefused, UnpackedTooLarge, is_sealed
from keywright.keyspace.kinds.unset import UNSET
from keywright.keyspace.recognition import older_shape
from keywright.keyspace.storage import Defect, EntryPart, Fault
from keywright.keyspace.versions.upgrades import opened_form

if TYPE_CHECKING:
    from keywright.keyspace.context import Context
    from keywright.keyspace.key import Key
    from keywright.keyspace.versions.upgrades import Upgrade

__all__ = ["Opener"]


class Opener:
    """A decoder of the stored entries of one class in one database. It returns defects and raises nothing."""

    def __init__(self, kind: type[Key], context: Context) -> None:
        self.kind = kind
        self.context = context
        self.storage = kind.declaration.storage
        self.can_open = context.keyring_of(kind) is not None
        self._upgrades = [each for each in kind.declaration.upgrades if each.moved_from is None]

    def older(self, stored: Any, key: Key) -> Upgrade | None:
        """Return the upgrade that a read of a stored form would make, or None."""
        if not self._upgrades:
            return None
        try:
            opened = opened_form(key, self.storage.form(stored), self.context)
        except KeywrightError:
            return None
        return older_shape(self._upgrades, opened)

    def read(self, part: EntryPart, name: bytes) -> Any:
        """Return the value of a part of a key, UNSET for a seal that nothing here opens, or the Defect of it.

        `name` is the full name of the key, to which its seals are bound.
        """
        codec, data, entry, role = part
        try:
            if codec.sealed and not is_sealed(data) and self.can_open:
                return _in_clear(part)
            if codec.sealed and is_sealed(data):
                if not self.can_open:
                    return UNSET
                data = self.context.placed(self.kind, name, data)
            return codec.decode(data)
        except SealRefused as error:
            if not is_sealed(data):
                return _in_clear(part)
            reason = f"expected {error.expected}, found {error.found}{role}"
            return Defect(Fault.BROKEN_SEAL, reason, error, entry)
        except UnpackedTooLarge as error:
            return Defect(Fault.TOO_LARGE, f"{error.found}{role}", error, entry)
        except CodecError as error:
            return Defect(Fault.MALFORMED, f"expected {error.expected}{role}", error, entry)


def _in_clear(part: EntryPart) -> Defect:
    expected = part.codec.expected
    reason = f"expected {expected}, found plaintext{part.role}"
    return Defect(Fault.UNSEALED, reason, CodecError(expected, "plaintext"), part.entry)
