"""Invariants: rules over related keys that a model declares by name, with the repair that the model wants.

A relation keeps its two sides together and a reference requires a target; the audit verifies both. An
invariant is for rules that only the model knows, and for repairs that only the model can decide:
whether half a link is completed or ended, and what becomes of the rest.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Generator, Iterable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

from keywright.errors import DeclarationError
from keywright.keyspace.call import Steps, procedure
from keywright.keyspace.misuse import explained
from keywright.keyspace.references import Reference

if TYPE_CHECKING:
    from keywright.keyspace.call import Call
    from keywright.keyspace.checks import Check
    from keywright.keyspace.key import Key
    from keywright.keyspace.relations import Link
    from keywright.keyspace.space import Keyspace

__all__ = ["Fix", "Invariant", "Violation", "invariant"]

Examine = Callable[[Any, Any], Iterable["Violation"] | Generator[Any, Any, Iterable["Violation"]]]
F = TypeVar("F", bound=Examine)

_NAME = re.compile(r"[a-z][a-z0-9]*(-[a-z0-9]+)*")


class Fix(NamedTuple):
    """The writes that restore an invariant: a commit that is applied if all checks hold.

    `does` is shown in a plan, so it has no ids. The writes set, delete, add and remove; a repair keeps what
    takes each of them back.
    """

    does: str
    writes: Sequence[Call[Any]]
    checks: Sequence[Check] = ()


class Violation(NamedTuple):
    """One way in which a key breaks an invariant; without a fix it is left to a person.

    `reason` has no ids. `member` is the entry of a collection that is concerned. Two violations that would
    write different values to one key are contested: `if_contested` is then done instead. `claims` are writes
    that count for this although the fix does not make them.
    """

    reason: str
    fix: Fix | None = None
    member: Any = None
    claims: Sequence[Call[Any]] = ()
    if_contested: Fix | None = None


class Invariant:
    """One declared invariant. Its check is a generator function that is given with the decorator `check`."""

    def __init__(
        self,
        name: str,
        description: str,
        keys: Sequence[type[Key]],
        settles: Sequence[Link | Reference],
        *,
        note: bool,
    ) -> None:
        self.name = name
        self.description = description
        self.keys = tuple(keys)
        self.settles = tuple(settles)
        self.note = note
        self._examine: Examine | None = None
        if not _NAME.fullmatch(name):
            raise DeclarationError(
                f"invariant {name!r}", "is not named by lower-case words", "Use a name like 'linked-people'."
            )
        space = self._space()
        if any(name == other.name for other in space.invariants):
            raise DeclarationError(f"invariant {name!r}", "is declared twice", "Give each its own name.")
        taken = {id(each): other.name for other in space.invariants for each in other.settles}
        for each in self.settles:
            if id(each) in taken:
                raise DeclarationError(
                    f"invariant {name!r}",
                    f"settles {each.name!r}, which {taken[id(each)]!r} settles already",
                    "Let one of them decide.",
                )
        space.invariants.append(self)

    @property
    def checked(self) -> bool:
        """Return whether the invariant has a check."""
        return self._examine is not None

    def check(self, examine: F) -> F:
        """Decorate the function that looks for violations.

        It gets a key and its value, as `get`, `members`, `all` or `range` return it; a large collection comes
        in parts, and None stands for a sealed value that cannot be opened. It may yield calls that read, and
        returns the violations. The audit runs the checks of many keys side by side, so a check that yields
        two calls costs two round trips for all of them.
        """
        if self._examine is not None:
            raise DeclarationError(f"invariant {self.name!r}", "has a check already", "Write one check.")
        self._examine = examine
        return examine

    @procedure
    def violations(self, key: Key, value: Any) -> Steps[list[Violation]]:
        """Look for violations in a key that has this value."""
        if self._examine is None:
            raise DeclarationError(
                f"invariant {self.name!r}", "has no check", "Give it one with its decorator `check`."
            )
        found: Any = self._examine(key, value)
        return list((yield from found) if isinstance(found, Generator) else found)

    def _space(self) -> Keyspace:
        classes = [*self.keys]
        for each in self.settles:
            classes += [each.source] if isinstance(each, Reference) else each.keys
        spaces = {kind._space for kind in classes}
        if len(spaces) != 1:
            raise DeclarationError(
                f"invariant {self.name!r}",
                "is about keys of several keyspaces" if spaces else "is about no key",
                "Name keys, relations or references of one keyspace.",
            )
        return spaces.pop()

    def __repr__(self) -> str:
        return f"Invariant({self.name})"


@explained
def invariant(
    name: str,
    description: str,
    keys: Sequence[type[Key]] = (),
    *,
    settles: Sequence[Link | Reference] = (),
    note: bool = False,
) -> Invariant:
    """Declare an invariant; the decorator `check` of the result gives it its check.

    The audit checks every key of the classes in `keys`. `settles` are relations and references whose findings
    the check decides about too: their keys are passed to it when they are repaired. A `note` is reported and
    nothing more.
    """
    return Invariant(name, description, keys, settles, note=note)
