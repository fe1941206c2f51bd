"""The checks of an exported or imported key: it decodes as declared, and shows no secret unasked."""

from __future__ import annotations

from typing import Any

import msgspec

from keywright.errors import KeywrightError
from keywright.keyspace import Context, Key
from keywright.keyspace.codecs import is_sealed
from keywright.tools.audit.value_checks import Checker
from keywright.tools.describe.inspection import inspected_form
from keywright.tools.describe.plain import inspected
from keywright.tools.key_walks import variables_of
from keywright.tools.transfer.lines import KeyLine, LineError
from keywright.tools.transfer.stored import StoredKey

__all__ = ["Validator"]

LARGEST_SHOWN = 1 << 20
"""Of a larger key no decoded value is written beside its stored form."""
ACCEPTED = frozenset({"KW103", "KW206"})
"""Older shapes and undeclared members are valid data, which reads of the model accept."""


class Validator:
    """The checks of the keys of one class in one database."""

    def __init__(self, kind: type[Key], context: Context) -> None:
        self.kind = kind
        self.context = context
        self.checker = Checker(kind, context)
        declared = kind.declaration
        self._guarded = declared.secret or declared.sealed or bool(kind.hides)

    def problem(self, key: Key, found: StoredKey) -> str | None:
        """Return why a stored form is not valid; None if it is. Never has data in it."""
        if found.dump is not None:
            return None
        checked = self.checker.check(lambda: key, found.stored)
        problems = [each for each in checked.problems if each.code not in ACCEPTED]
        if problems:
            return f"{problems[0].code}: {problems[0].reason}"
        return None

    def expiry_problem(self, key: Key, found: StoredKey, now_ms: int) -> str | None:
        """Return why the expiry of a valid key is not as declared; None if it is."""
        value = msgspec.UNSET
        if found.dump is None and self.checker.needs_value_for_expiry:
            value = self.checker.check(lambda: key, found.stored).value
        left = -1 if found.expires_at_ms is None else found.expires_at_ms - now_ms
        problem = self.checker.expiry_problem(left, value, lambda: key)
        return None if problem is None else f"{problem.code}: {problem.reason}"

    def shows_secret(self, key: Key, found: StoredKey) -> bool:
        """Return whether the stored form has secrets in clear. Sealed values are not: they stay sealed."""
        if not self._guarded:
            return False
        if self.kind.hides or found.dump is not None:
            return True
        if self.checker.check(lambda: key, found.stored).problems:
            return True  # of an older or malformed form it is not known which bytes are secret
        parts = [part for entry in self.checker.storage.entries(found.stored, key) for part in entry.parts]
        return any(
            (part.codec.secret or part.codec.sealed) and not (part.codec.sealed and is_sealed(part.data))
            for part in parts
        )

    def has_seals(self, key: Key, found: StoredKey) -> bool:
        """Return whether a value is sealed, and so bound to the name of its key."""
        if not self.kind.declaration.sealed or found.dump is not None:
            return False
        parts = [part for entry in self.checker.storage.entries(found.stored, key) for part in entry.parts]
        return any(part.codec.sealed and is_sealed(part.data) for part in parts)

    def value(self, key: Key, found: StoredKey) -> Any:
        """Return the decoded value as JSON data, with secrets hidden; UNSET if it is not shown."""
        if found.dump is not None or not self.checker.storage.is_read or found.bytes > LARGEST_SHOWN:
            return msgspec.UNSET
        try:
            return inspected(inspected_form(key, self.context, found.stored))
        except KeywrightError:
            return msgspec.UNSET

    def check_shown(self, key: Key, found: StoredKey, line: KeyLine) -> None:
        """Raise LineError if the decoded variables or value of a line are not those of its stored form."""
        for name, shown, actual in (
            ("variables", line.variables, lambda: variables_of(key)),
            ("value", line.value, lambda: self.value(key, found)),
        ):
            if not bytes(shown):
                continue
            expected = actual()
            if expected is not msgspec.UNSET and _read(shown) != _read(msgspec.json.encode(expected)):
                raise LineError(
                    f"'{name}' is not what 'name' and 'stored' hold, which are written: change those, "
                    f"and remove '{name}'"
                )


def _read(data: bytes | msgspec.Raw) -> Any:
    try:
        return msgspec.json.decode(data)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise LineError("it is nested too deep, or is not JSON") from error
