"""Decoding of stored entries in one database: with the keys of seals, or without them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from keywright.errors import KeywrightError
from keywright.keyspace.codecs import CodecError, SealRefused, UnpackedTooLarge, is_sealed
from keywright.keyspace.kinds.unset import UNSET
from keywright.keyspace.recognition import older_shape
from keywright.keyspace.storage import Defect, EntryPart, Fault

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
        self._sealed = kind.declaration.sealed
        binding = context.bindings.get(kind.declaration.space)
        self.can_open = binding is not None and binding.keyring is not None
        self._upgrades = [each for each in kind.declaration.upgrades if each.moved_from is None]

    def older(self, stored: Any) -> Upgrade | None:
        """Return the upgrade that a read of a stored form would make, or None."""
        if not self._upgrades:
            return None
        try:
            opened = self._unsealed(self.storage.form(stored))
        except (CodecError, KeywrightError):
            return None
        return older_shape(self._upgrades, opened)

    def read(self, part: EntryPart) -> Any:
        """Return the value of a part, UNSET for a seal that nothing here opens, or the Defect of it."""
        codec, data, entry, role = part
        try:
            if codec.sealed and not is_sealed(data) and self.can_open:
                return _in_clear(part)
            if codec.sealed and is_sealed(data):
                if not self.can_open:
                    return UNSET
                data = self.context.unseal(self.kind, data)
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

    def _unsealed(self, form: Any) -> Any:
        if not self._sealed:
            return form
        if isinstance(form, bytes):
            return self.context.unseal(self.kind, form)
        return {name: self.context.unseal(self.kind, value) for name, value in form.items()}


def _in_clear(part: EntryPart) -> Defect:
    expected = part.codec.expected
    reason = f"expected {expected}, found plaintext{part.role}"
    return Defect(Fault.UNSEALED, reason, CodecError(expected, "plaintext"), part.entry)
