"""LiveIndex: a set that names records which expire, read as if it expired with them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from keywright.errors import ConflictError, DeclarationError, KeywrightError, OutcomeUnknownError
from keywright.keyspace.call import Call, Steps, nothing, procedure
from keywright.keyspace.checks import absent, owned
from keywright.keyspace.commits.journal import commit
from keywright.keyspace.commits.work import Outcome
from keywright.keyspace.composition import gather_list
from keywright.keyspace.key import Key
from keywright.keyspace.kinds.set import Set
from keywright.keyspace.kinds.sorted_set import SortedSet
from keywright.keyspace.misuse import explained, explained_constructor
from keywright.keyspace.relations import same_ids

if TYPE_CHECKING:
    pass

M = TypeVar("M")
T = TypeVar("T")

PAGE = 500


@explained_constructor
class LiveIndex(Generic[M]):
    """The members of `by` whose record in `of` exists; the dead ones met are dropped.

    `by` is a Set or a SortedSet. Its variables are variables of `of`, and what it holds is the one
    variable that is left: `guild:<guild>:members` lists the users of `guild:<guild>:member:<user>`.

    Dropping re-checks in the same step that the record does not exist. On one server, or where both
    keys share a slot, that is one script: a record that is written again is never dropped. Across the
    slots of a cluster it goes through the journal, which `put` and `delete` respect. A writer that goes
    around `put` must write the record first and add the member afterwards; on a cluster its member can
    still be lost to a reader that looked just before, until the record is next written.
    """

    def __init__(self, of: type[Key], by: type[Set[M]] | type[SortedSet[M, Any]]) -> None:
        self.of = of
        self.by = by
        self.name = f"{of.__name__} in {by.__name__}"
        if not issubclass(by, Set | SortedSet):
            raise DeclarationError(
                self.name, f"{by.__name__} is a {by.kind}, not a set", "Use a Set or a SortedSet."
            )
        left = [name for name in of._template.variables if name not in by._template.variables]
        if len(left) != 1 or not set(by._template.variables) < set(of._template.variables):
            raise DeclarationError(
                self.name,
                "an index has all variables of what it lists but one",
                "Name the shared variables alike in both templates.",
            )
        self._left = left[0]
        alphabet = of._template.alphabets[self._left]
        if not same_ids(by._codec, alphabet):
            raise DeclarationError(
                self.name,
                f"{by.__name__} holds {by._codec.expected}, but <{self._left}> is {alphabet.expected}",
                "Give both the same id type.",
            )

    @explained
    def put(
        self, key: Key, write: Call[Any], *, score: Any = None, also: Sequence[Call[Any]] = ()
    ) -> Call[None]:
        """Write a record and name it in the index, in one step; `score` is for a sorted index.

        `write` is a call on the key that does not read first: `set`, `put`, …
        """
        index, member = self._place(key)
        named = index.add(member, score) if isinstance(index, SortedSet) else index.add(member)
        return commit(f"put {type(key).__name__}", [owned(key)], [write, named, *also], subject=key).map(
            nothing
        )

    @explained
    def delete(self, key: Key, *, also: Sequence[Call[Any]] = ()) -> Call[None]:
        """Delete a record and drop it from the index, in one step."""
        index, member = self._place(key)
        return commit(
            f"delete {type(key).__name__}",
            [owned(key)],
            [key.delete(), index.remove(member), *also],
            subject=key,
        ).map(nothing)

    @procedure
    def members(self, *identity: object) -> Steps[list[M]]:
        """Return all members whose record exists, by score if there are scores; reads in pages."""
        index = self._index(identity)
        found: dict[M, Any] = {}
        cursor = 0
        while True:
            cursor, living = yield from self._read_page(index, cursor, PAGE)
            found |= living
            if cursor == 0:
                return sorted(found, key=found.__getitem__) if isinstance(index, SortedSet) else [*found]

    @procedure
    def page(self, *identity: object, cursor: int = 0, count: int = PAGE) -> Steps[tuple[int, list[M]]]:
        """Return the next cursor (0 at the end) and about `count` members; one may come twice."""
        index = self._index(identity)
        after, living = yield from self._read_page(index, cursor, count)
        return after, [*living]

    def __repr__(self) -> str:
        return f"LiveIndex({self.name})"

    def _read_page(self, index: Any, cursor: int, count: int) -> Steps[tuple[int, dict[M, Any]]]:
        """Return the members whose record exists, with scores: two round trips, and more to drop others."""
        after, listed = yield index.scan(cursor, count)
        scores: dict[M, Any] = dict(listed) if isinstance(index, SortedSet) else dict.fromkeys(listed)
        there = yield gather_list(self._record(index, member).exists() for member in scores)
        dead = [member for member, exists in zip(scores, there, strict=True) if not exists]
        outcomes: list[Outcome | KeywrightError] = yield gather_list(
            self._drop(index, member).attempt() for member in dead
        )
        for member, outcome in zip(dead, outcomes, strict=True):
            if _is_gone(outcome):
                del scores[member]
        return after, scores

    def _drop(self, index: Any, member: M) -> Call[Outcome]:
        record = self._record(index, member)
        return commit(
            f"drop {type(record).__name__}", [absent(record)], [index.remove(member)], subject=record
        )

    def _record(self, index: Key, member: M) -> Key:
        return self.of(**{**_variables(index), self._left: member})

    def _index(self, identity: tuple[object, ...]) -> Any:
        return self.by(*identity)

    def _place(self, key: Key) -> tuple[Any, Any]:
        variables = _variables(key)
        member = variables.pop(self._left)
        return self.by(**variables), member


def _is_gone(outcome: Outcome | KeywrightError) -> bool:
    """Return whether a member without a record stays out; a failed check means that its record is back."""
    if isinstance(outcome, ConflictError | OutcomeUnknownError):
        return True  # whether it was dropped or not, the next reader looks again
    if isinstance(outcome, KeywrightError):
        raise outcome
    return outcome.applied


def _variables(key: Key) -> dict[str, Any]:
    return {name: getattr(key, name) for name in type(key)._template.variables}
