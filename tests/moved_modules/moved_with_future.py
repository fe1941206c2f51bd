"""A moved key whose module has `from __future__ import annotations`: its annotations are text."""

from __future__ import annotations

from keywright import Call, Id, Keyspace, Set
from keywright.operations import Command, Effect, Operation

library = Keyspace("library_text", "Loans by reader, renamed, declared with annotations that are text.")

COUNT = Operation("count", b"SCARD", Effect.READ)


class Borrowed(Set[Id], key="borrowed:<reader>", space=library, moved_from="lent:<reader>"):
    """The books that a reader has borrowed."""

    reader: Id

    def count(self) -> Call[int]:
        """Count with a command of its own, which no operation of the kind brings home."""
        return Command(COUNT, self, (), int)

    def count_unannotated(self):  # type: ignore[no-untyped-def]  # operations need no annotation to be found
        return Command(COUNT, self, (), int)

    def members_twice(self) -> Call[set[str]]:
        """Return what another operation returns, which brings the key home already."""
        return self.members()

    def words(self) -> str:
        """Not an operation."""
        return "borrowed"
