"""The declared invariants, checked for all keys of a page at once. A violation is confirmed before it counts.

The value of a key comes from its page, and the other reads of the check run a moment later. So the check of a
violation is repeated with the value read again from the primary, and reported if it is still violated.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple, TypeVar

from keywright.engine.nodes import NodeReader
from keywright.errors import CapabilityError, KeywrightError, StoredDataError, UsageError
from keywright.keyspace import Call, Context, Keyspace, gather_list
from keywright.keyspace.call import Command, Steps, bound_context, procedure
from keywright.keyspace.invariants import Invariant, Violation
from keywright.keyspace.key import Key
from keywright.keyspace.references import Reference
from keywright.keyspace.wires import Effect, Operation, Reply, Rounds
from keywright.tools.audit.findings import Finding
from keywright.tools.readable import ReadableDatabase

__all__ = ["Examined", "InvariantChecks", "attempted", "examine", "settled_by"]

T = TypeVar("T")
Settled = dict[tuple[str, str], Invariant]


class Examined(NamedTuple):
    """A key with a value, or a part of one, that an invariant is about."""

    invariant: Invariant
    key: Key
    value: Any


class InvariantChecks:
    """The checks of the invariants of some keyspaces in one database."""

    def __init__(self, db: ReadableDatabase, spaces: Iterable[Keyspace]) -> None:
        self._db = db
        self._settled = settled_by(spaces)

    async def broken(
        self, examined: Sequence[Examined], known: Iterable[Finding], nodes: Sequence[NodeReader]
    ) -> list[Finding]:
        """Return the violations, without those that the `known` findings of the same keys report already."""
        checks = [attempted(each.invariant.violations(each.key, each.value)) for each in examined]
        results = await self._db.run(gather_list(checks), at=nodes)
        suspects = list(dict.fromkeys(_suspects(examined, results)))
        again = await self._db.run(gather_list(attempted(examine(*suspect)) for suspect in suspects))
        said = {(self._decides(each), each.name, each.member) for each in known}
        findings = []
        for (invariant, key, entry), found in zip(suspects, again, strict=True):
            if isinstance(found, KeywrightError):
                findings.append(self._finding("KW603", invariant, key, None, _UNCHECKED))
            elif found and (invariant, self._db.context.name(key), entry) not in said:
                code = "KW602" if invariant.note else "KW601"
                findings.append(self._finding(code, invariant, key, entry, found[0].reason))
        return findings

    def _decides(self, finding: Finding) -> Invariant | None:
        return self._settled.get((finding.template, finding.link))

    def _finding(
        self, code: str, invariant: Invariant, key: Key, entry: bytes | None, reason: str
    ) -> Finding:
        return Finding(
            code,
            key.declaration.template.source,
            self._db.context.name(key),
            f"{invariant.name}: {reason}",
            member=entry,
            link=invariant.name,
        )


_UNCHECKED = "it could not be checked, since a value that it depends on cannot be read"


def settled_by(spaces: Iterable[Keyspace]) -> Settled:
    """Return the invariants that decide about findings, by the finding's template and link."""
    settled: Settled = {}
    for space in spaces:
        for invariant in space.invariants:
            for each in invariant.settles:
                kinds = [each.source] if isinstance(each, Reference) else each.keys
                settled.update({(kind.declaration.template.source, each.name): invariant for kind in kinds})
    return settled


@procedure
def examine(invariant: Invariant, key: Key, entry: bytes | None) -> Steps[list[Violation]]:
    """Read a key, or one entry of it, and return the violations that concern the key, or the entry."""
    context = yield bound_context()
    binding = context.bindings.get(key.declaration.space)
    if key.declaration.sealed and (binding is None or binding.keyring is None):
        value, there = None, (yield key.exists())
    else:
        value = yield _stored(key, entry)
        there = value is not None
    if not there:
        return []
    found = yield invariant.violations(key, value)
    return [each for each in found if entry_of(key, each) == entry]


@procedure
def attempted(check: Call[list[Violation]]) -> Steps[list[Violation] | KeywrightError]:
    """Run a check without writing. Return its error, instead of raising it, if it cannot read a value."""
    result: list[Violation] | KeywrightError = yield OnlyReads(check).attempt()
    if isinstance(result, KeywrightError) and not isinstance(
        result, StoredDataError | CapabilityError | CheckWritesError
    ):
        raise result
    return result


def entry_of(key: Key, violation: Violation) -> bytes | None:
    """Return the stored form of the entry that a violation is about, None if it is about the key."""
    if violation.member is None:
        return None
    return key.declaration.storage.entry_name(violation.member)


class CheckWritesError(UsageError):
    """The check of an invariant would write."""


_CANNOT = (StoredDataError, CapabilityError, CheckWritesError)
"""The errors of a check that says nothing about its keys: a value, a missing command, or what it does."""


class OnlyReads(Call[T]):
    """A call that raises CheckWritesError at a command that may write: an audit changes nothing.

    Most calls that read send nothing else. Reading a value of an older shape upgrades it, and reading a key
    whose expiry slides renews that.
    """

    __slots__ = ("call",)

    def __init__(self, call: Call[T]) -> None:
        self.call = call

    @property
    def one_round(self) -> bool:
        return False

    def rounds(self, context: Context) -> Rounds[T]:
        rounds = self.call.rounds(context.literal())  # a key is not moved from its former name either
        try:
            wires = next(rounds)
            while True:
                for wire in wires:
                    if wire.operation.effect is not Effect.READ:
                        raise CheckWritesError(f"{wire.operation.name!r} on {wire.name!r} may write.")
                wires = rounds.send((yield wires))
        except StopIteration as stop:
            value: T = stop.value
            return value


def _suspects(
    examined: Iterable[Examined], results: Iterable[list[Violation] | KeywrightError]
) -> Iterator[tuple[Invariant, Key, bytes | None]]:
    for (invariant, key, _), result in zip(examined, results, strict=True):
        if isinstance(result, KeywrightError):
            yield invariant, key, None
            continue
        yield from ((invariant, key, entry_of(key, violation)) for violation in result)


def _stored(key: Key, entry: bytes | None) -> Call[Any]:
    """Read a value, or one entry of it, in the form that checks get; None where it is absent."""
    storage = key.declaration.storage
    layout = storage.layout
    ask = layout.everything if entry is None else layout.find(entry)

    def value(reply: Reply) -> Any:
        stored = reply if entry is None else layout.found(entry, reply)
        return None if stored is None or stored == [] else storage.value(stored, key)

    return Command(Operation("examine", ask.verb, Effect.READ), key, ask.operands, value)
