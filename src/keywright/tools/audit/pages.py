"""The audit of one page of names: match, read in one batch, decode, check expiry, size and relations."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Sequence
from functools import cached_property, partial
from itertools import compress
from operator import add, not_
from typing import Any

from keywright.engine.nodes import At, Batch, NodeReader
from keywright.errors import CapabilityError, KeywrightError, ServerRefusedError
from keywright.keyspace import Key, Keyspace
from keywright.keyspace.invariants import Invariant
from keywright.keyspace.kinds.stream import consumer_group
from keywright.keyspace.kinds.unset import UNSET
from keywright.keyspace.layouts import Ask, StoredPage
from keywright.keyspace.wires import Reply, Wire
from keywright.tools.audit.confirmation import GROUPS, TYPE, Suspect, confirmed, type_problem
from keywright.tools.audit.findings import Finding
from keywright.tools.audit.invariants import Examined, InvariantChecks
from keywright.tools.audit.matcher import Known, Matcher
from keywright.tools.audit.obligations import Obligation, Obligations, Question
from keywright.tools.audit.page_reader import MOST_BYTES, Reading, checked_replies, on_name
from keywright.tools.audit.tally import Measure, Tally
from keywright.tools.audit.value_checks import Checker
from keywright.tools.pace import Pacemaker
from keywright.tools.readable import ReadableDatabase
from keywright.tools.segments import likely_pattern

__all__ = ["Judge"]

CAREFUL_BYTES = 1 << 16
BATCH_BYTES = 4 << 20
MOST_RAISED = 1_000
LENGTH = Ask(b"STRLEN")
EXISTS = Ask(b"EXISTS")
Choose = Callable[[list[bytes], int], list[bytes]]
"""Return the names whose values are read, given how many of the template were read before."""


class Judge:
    """The auditor of pages. Between pages it keeps only the declarations."""

    def __init__(
        self, db: ReadableDatabase, spaces: Iterable[Keyspace], entries: int, pacemaker: Pacemaker
    ) -> None:
        spaces = tuple(spaces)
        self.entries = entries
        self.matcher = Matcher(spaces, db.context)
        self.lead = self.matcher.common_lead
        self.obligations = Obligations(spaces, db.context)
        self.invariants: dict[type[Key], list[Invariant]] = {}
        for invariant in (each for space in spaces for each in space.invariants):
            for kind in invariant.keys:
                self.invariants.setdefault(kind, []).append(invariant)
        self.related = {*self.obligations.kinds, *self.invariants}
        """The classes with values that are compared with other keys."""
        self._db = db
        self._pacemaker = pacemaker
        self._checkers = {known: Checker(known.kind, db.context) for known in self.matcher.known}
        self._granted: set[Known] = set()

    async def page(
        self,
        names: list[bytes],
        node: NodeReader,
        nodes: Sequence[NodeReader],
        tally: Tally,
        choose: Choose,
    ) -> list[Finding]:
        """Audit a page of names of one node. Return its findings, and add its counts to the tally."""
        findings: list[Finding] = []
        bench = _Bench(self, node, nodes, tally, findings)
        groups, unknown = self._grouped(names, tally)
        findings += await self._unknown(unknown, node, tally)
        readings = [
            reading
            for known, chosen in (
                (known, choose(group, tally.measure(known.label).read)) for known, group in groups.items()
            )
            if chosen and await self._readable(node, known, chosen, findings)
            for reading in await self._planned(node, known, chosen, tally, findings)
        ]
        for batch in _batches(readings):
            replies = await self.ask([wire for reading, _ in batch for wire in reading.commands()], node)
            place = 0
            for reading, known in batch:
                place = reading.take(replies, place)
                await bench.judge(known, reading)
        await bench.settle()
        return findings

    async def ask(self, wires: list[Wire], at: At) -> list[Reply]:
        """Run commands on some nodes as one batch, at the pace. Return the replies, errors included."""
        await self._pacemaker.wait(0)
        return await self._db.run(Batch(wires), at=at)

    def _grouped(self, names: list[bytes], tally: Tally) -> tuple[dict[Known, list[bytes]], list[bytes]]:
        """Group the names of our prefix by template. Return the groups, and the names of none."""
        lead = self.lead
        if lead:
            inside = [name for name in names if name.startswith(lead)]
            tally.outside += len(names) - len(inside)
            names = inside
        groups, unknown = self.matcher.grouped(names)
        ours = {known: group for known, group in groups.items() if known.ours}
        for known, group in ours.items():
            tally.measure(known.label).keys += len(group)
        return ours, unknown

    async def _unknown(self, names: list[bytes], node: NodeReader, tally: Tally) -> list[Finding]:
        """Return the findings of names that no template matches and that are still there."""
        ours = [name for name in names if self.matcher.belongs(name)]
        tally.outside += len(names) - len(ours)
        there = await self.ask([on_name(EXISTS, name, None) for name in ours], node) if ours else []
        # A user who may not read keys of others gets an error, and must believe SCAN.
        exist = [name for name, reply in zip(ours, there, strict=True) if reply != 0]
        return [finding for name in exist for finding in self._strange_name(name, tally)]

    def _strange_name(self, name: bytes, tally: Tally) -> Iterator[Finding]:
        older = self.matcher.old_place(name)
        if older is not None:
            place, successor = older.place, self.matcher.successor(older, name)
            present = place.present.declaration.template.source
            reason = f"in the place of {place.version!r}; it belongs under {present}"
            former = older.known.template.source
            yield Finding("KW102", former, name, reason, other=successor, link=place.version)
            return
        version = self.matcher.other_version(name)
        if version is not None:
            known, word = version
            yield Finding("KW102", known.template.source, name, f"of version {word!r}", link=word)
        else:
            pattern = likely_pattern(name)
            tally.add_pattern(pattern)
            yield Finding("KW101", pattern, name, "no template matches it")

    async def _readable(
        self, node: NodeReader, known: Known, names: list[bytes], findings: list[Finding]
    ) -> bool:
        """Return whether the values of a template can be read; secret ones may be denied to an auditor."""
        if not known.kind.declaration.secret or known in self._granted:
            return True
        ask = Ask(known.kind.declaration.storage.layout.size)
        (reply,) = await self.ask([on_name(ask, names[0], known.kind)], node)
        if isinstance(reply, ServerRefusedError) and reply.reply.startswith("NOPERM"):
            reason = "holds secrets, which this user may not read"
            findings += [Finding("KW502", known.template.source, name, reason) for name in names]
            return False
        self._granted.add(known)
        return True

    async def _planned(
        self,
        node: NodeReader,
        known: Known,
        names: list[bytes],
        tally: Tally,
        findings: list[Finding],
    ) -> list[tuple[Reading, Known]]:
        measure = tally.measure(known.label)
        measure.read += len(names)
        parts = [names]
        # The first of each template are asked for their length, and all once there was a large one.
        largest = max(measure.largest, default=(CAREFUL_BYTES,))[0]
        if known.kind.redis_type == "string" and largest >= CAREFUL_BYTES:
            wires = [on_name(LENGTH, name, known.kind) for name in names]
            parts, large = _by_length(names, checked_replies(await self.ask(wires, node)))
            for name, length in large:
                measure.add_sizes([len(name) + length], [name])
                reason = f"larger than {MOST_BYTES >> 20} MiB, so it was not read"
                findings.append(Finding("KW502", known.template.source, name, reason))
        checker, field_expiry = self._checkers[known], await self._has_field_expiry()
        expires, strings = checker.expiry is not None, known.kind.redis_type == "string"
        return [
            (
                Reading(
                    checker,
                    part,
                    together=not self._db.context.sharded,
                    timed=range(len(part)) if expires else measure.sampled_expiries.places(part),
                    measured=measure.sampled_overheads.places(part) if strings else range(len(part)),
                    field_expiry=field_expiry,
                ),
                known,
            )
            for part in parts
        ]

    async def times_fields(self, known: Known) -> bool:
        """Return whether the expiries of single fields of a template are declared, and can be read."""
        return known.kind.declaration.field_expiry is not None and await self._has_field_expiry()

    async def _has_field_expiry(self) -> bool:
        return (await self._db.server()).can("field expiry")

    def checker(self, known: Known) -> Checker:
        return self._checkers[known]

    async def unmet(self, raised: list[Obligation], nodes: Sequence[NodeReader]) -> list[Finding]:
        """Return the findings of unmet obligations, confirmed at the primaries with their premises."""
        if not raised:
            return []
        replies = checked_replies(await self.ask([o.question.wire for o in raised], nodes))
        doubtful = list(compress(raised, map(not_, _held([o.question for o in raised], replies))))
        if not doubtful:
            return []
        if self._db.is_still:
            return list(map(self.obligations.finding, await self._founded(doubtful, nodes)))
        premises = map(self.obligations.premise, doubtful)
        asked = [
            q for premise, o in zip(premises, doubtful, strict=True) for q in (premise, o.question, premise)
        ]
        answers = checked_replies(await self._db.run(Batch([question.wire for question in asked])))
        held = _held(asked, answers)
        verdicts = zip(doubtful, held[::3], held[1::3], held[2::3], strict=True)
        unmet = [o for o, before, met, after in verdicts if before and after and not met]
        return list(map(self.obligations.finding, unmet))

    async def _founded(self, unmet: list[Obligation], nodes: Sequence[NodeReader]) -> list[Obligation]:
        """Return those whose premise holds in data that does not change, where an entry is still there."""
        premises = {id(each): self.obligations.premise(each) for each in unmet if each.entry is None}
        replies = checked_replies(await self.ask([each.wire for each in premises.values()], nodes))
        held = dict(zip(premises, _held(list(premises.values()), replies), strict=True))
        return [each for each in unmet if held.get(id(each), True)]

    async def confirmed(self, suspects: list[Suspect]) -> list[Suspect]:
        return await confirmed(self._db, suspects)

    async def broken(
        self, examined: list[Examined], known: list[Finding], nodes: Sequence[NodeReader]
    ) -> list[Finding]:
        """Return the findings of violated invariants, without those that `known` findings report already."""
        return await self._invariant_checks.broken(examined, known, nodes)

    @cached_property
    def _invariant_checks(self) -> InvariantChecks:
        return InvariantChecks(self._db, self.matcher.spaces)


class _Bench:
    """The state of auditing one page."""

    def __init__(
        self,
        judge: Judge,
        node: NodeReader,
        nodes: Sequence[NodeReader],
        tally: Tally,
        findings: list[Finding],
    ) -> None:
        self._judge = judge
        self._node = node
        self._nodes = nodes
        self._tally = tally
        self._findings = findings
        self._suspects: list[Suspect] = []
        self._raised: list[Obligation] = []
        self._examined: list[Examined] = []

    async def judge(self, known: Known, reading: Reading) -> None:
        measure = self._tally.measure(known.label)
        checker = reading.checker
        _measured(measure, reading)
        for name, reply in zip(reading.names, reading.field_ttls, strict=False):
            problem = checker.field_problem(reply)
            if problem is not None:
                self._suspects.append(Suspect(known, checker, name, problem))
        if reading.timed_fields:
            pages = [
                (name, checker.storage.layout.page(stored).stored)
                for name, stored in zip(reading.names, reading.stored, strict=True)
                if isinstance(stored, list)
            ]
            await self._field_ttls(known, checker, pages)
        if checker.storage.groups:
            await self._consumer_groups(known, checker, reading.names)
        if not checker.storage.layout.reads:
            await self._types(known, checker, reading.names)  # no reading command fails on another type
        strange = _strange(reading.stored)
        if strange:
            await self._types(known, checker, [reading.names[number] for number in sorted(strange)])
            await self._unread(known, reading, strange)
        elif not self._needs_values(checker) and _all_decode(checker, reading.stored):
            self._timed(known, reading, {}, strange)
            return
        values: dict[int, Any] = {}
        for number, stored in enumerate(reading.stored):
            if number not in strange:
                value = await self._value(known, checker, reading.names[number], stored)
                if checker.needs_value_for_expiry:
                    values[number] = value
        self._timed(known, reading, values, strange)

    def _needs_values(self, checker: Checker) -> bool:
        return checker.needs_value_for_expiry or checker.kind in self._judge.related

    async def settle(self) -> None:
        """Look at suspects again, check obligations and invariants, and add the findings."""
        suspects, raised, examined = self._suspects, self._raised, self._examined
        self._suspects, self._raised, self._examined = [], [], []
        if suspects:
            self._findings += map(_finding, await self._judge.confirmed(suspects))
        self._findings += await self._judge.unmet(raised, self._nodes)
        if examined:
            self._findings += await self._judge.broken(examined, self._findings, self._nodes)

    async def _value(self, known: Known, checker: Checker, name: bytes, stored: Any) -> Any:
        """Check all pages of one key. Return its value, or UNSET."""
        storage = checker.storage
        page = storage.layout.page(stored)
        if page.stored == []:
            return UNSET  # an empty collection does not exist: it expired or was deleted meanwhile
        if page.more is None:
            return await self._checked(known, checker, name, page.stored)
        if not storage.whole:
            async for part in self._pages(known, name, page):
                await self._checked(known, checker, name, part.stored)
            return UNSET
        entries, last = list[Any](), page
        async for last in self._pages(known, name, page):
            entries += last.stored
        return await self._checked(known, checker, name, entries) if last.more is None else UNSET

    async def _pages(self, known: Known, name: bytes, page: StoredPage) -> AsyncIterator[StoredPage]:
        """Yield the pages of one key, up to the limit of entries."""
        layout, read = known.kind.declaration.storage.layout, len(page.stored)
        timed = await self._judge.times_fields(known)
        yield page
        while page.more is not None:
            if read >= self._judge.entries:
                self._tally.truncated += 1
                return
            following = on_name(layout.next_page(page.more), name, known.kind)
            reply = checked_replies(await self._judge.ask([following], self._node))[0]
            if isinstance(reply, Exception):
                return
            page = layout.page(reply, page.more)
            read += len(page.stored)
            if timed:
                await self._field_ttls(known, self._judge.checker(known), [(name, page.stored)])
            yield page

    async def _field_ttls(
        self, known: Known, checker: Checker, pages: Iterable[tuple[bytes, Sequence[bytes]]]
    ) -> None:
        """Suspect the fields of pages of hashes whose expiry is not as declared."""
        asked = [(name, checker.timed_fields(stored[::2])) for name, stored in pages]
        asked = [(name, fields) for name, fields in asked if fields]
        wires = [on_name(checker.field_expiries(fields), name, known.kind) for name, fields in asked]
        replies = await self._judge.ask(wires, self._node) if wires else []
        for (name, fields), reply in zip(asked, replies, strict=True):
            key = partial(known.key, name)
            # An error: the user lacks the right to ask, or the key is of another type.
            for field, ttl in zip(fields, reply if isinstance(reply, list) else (), strict=False):
                problem = checker.field_expiry_problem(field, ttl, key)
                if problem is not None:
                    self._suspects.append(Suspect(known, checker, name, problem))

    async def _checked(self, known: Known, checker: Checker, name: bytes, stored: Any) -> Any:
        checked = checker.check(lambda: known.key(name), stored)
        if checked.unpacked > CAREFUL_BYTES:
            await asyncio.sleep(0)  # an explorer serves its pages between two such values
        if checked.sealed or checked.in_clear:
            measure = self._tally.measure(known.label)
            measure.sealed += checked.sealed
            measure.in_clear += checked.in_clear
        for problem in checked.problems:
            self._suspects.append(Suspect(known, checker, name, problem))
        if checked.value is not UNSET and known.kind in self._judge.related:
            key = known.key(name)
            self._raised += self._judge.obligations.of(key, checked.value, stored)
            self._examined += [
                Examined(invariant, key, checked.value)
                for invariant in self._judge.invariants.get(known.kind, ())
            ]
            if len(self._raised) + len(self._examined) + len(self._suspects) >= MOST_RAISED:
                await self.settle()
        elif known.kind.declaration.sealed and not checked.problems:
            self._raised += self._judge.obligations.of_sealed(known.key(name))
        return checked.value

    async def _consumer_groups(self, known: Known, checker: Checker, names: list[bytes]) -> None:
        """Suspect streams without their declared groups, or with others. Count what is pending."""
        measure = self._tally.measure(known.label)
        replies = await self._judge.ask([on_name(GROUPS, name, known.kind) for name in names], self._node)
        for name, reply in zip(names, replies, strict=True):
            if not isinstance(reply, list):
                continue  # of another type, gone, or the user lacks the right to ask
            groups = list(map(consumer_group, reply))
            measure.add_groups(groups)
            for problem in checker.group_problems(groups):
                self._suspects.append(Suspect(known, checker, name, problem))

    async def _types(self, known: Known, checker: Checker, names: list[bytes]) -> None:
        """Suspect keys of another type than declared among those that could not be read."""
        wires = [on_name(TYPE, name, known.kind) for name in names]
        replies = checked_replies(await self._judge.ask(wires, self._node))
        for name, reply in zip(names, replies, strict=True):
            problem = type_problem(known, reply)
            if problem is not None:
                self._suspects.append(Suspect(known, checker, name, problem))

    async def _unread(self, known: Known, reading: Reading, strange: set[int]) -> None:
        """Report keys of the declared type that only a module reads, which a dump does not show."""
        refused = [number for number in strange if isinstance(reading.stored[number], CapabilityError)]
        names = [reading.names[number] for number in sorted(refused)]
        wires = [on_name(TYPE, name, known.kind) for name in names]
        replies = checked_replies(await self._judge.ask(wires, self._node)) if wires else []
        declared = known.kind.redis_type.encode()
        self._findings += [
            Finding("KW502", known.template.source, name, "only its module reads it, so it was not read")
            for name, reply in zip(names, replies, strict=True)
            if reply == declared
        ]

    def _timed(self, known: Known, reading: Reading, values: dict[int, Any], strange: set[int]) -> None:
        measure, checker = self._tally.measure(known.label), reading.checker
        ttls = reading.ttls
        gone, lasting = ttls.count(-2), ttls.count(-1)
        if checker.expiry is None:
            measure.asked += gone
            for number, ttl in zip(reading.timed, ttls, strict=True):
                if ttl != -2:
                    measure.sampled_expiries.add(reading.names[number], int(ttl != -1))
            return
        measure.asked += len(ttls)
        measure.timed += len(ttls) - gone
        measure.expiring += len(ttls) - gone - lasting
        fixed = checker.longest_ms(UNSET)
        if fixed is not None and not lasting and max(ttls, default=0) <= fixed:
            return
        for number, ttl in zip(reading.timed, ttls, strict=True):
            if ttl == -2 or number in strange:
                continue
            name = reading.names[number]
            problem = checker.expiry_problem(ttl, values.get(number, UNSET), partial(known.key, name))
            if problem is not None:
                self._suspects.append(Suspect(known, checker, name, problem))


def _finding(suspect: Suspect) -> Finding:
    code, reason, found, member = suspect.problem
    known = suspect.known
    secret = known.kind.declaration.secret or bool(known.kind.hides)
    return Finding(code, known.template.source, suspect.name, reason, found, member, secret=secret)


def _held(questions: list[Question], replies: list[Reply]) -> list[bool]:
    """Return for each question whether its reply is the expected one."""
    return [
        not isinstance(reply, KeywrightError) and expected(reply)
        for (_, expected), reply in zip(questions, replies, strict=True)
    ]


def _strange(stored: list[Any]) -> set[int]:
    """Return the indexes of values that could not be read: keys of another type, or deleted ones."""
    if {bytes, list}.issuperset(map(type, stored)):
        return set()
    return {number for number, reply in enumerate(stored) if reply is None or isinstance(reply, Exception)}


def _all_decode(checker: Checker, stored: list[Any]) -> bool:
    """Return whether all values are complete and valid, checked in bulk, which most pages pass."""
    whole = checker.storage.layout.complete(stored)
    return whole is not None and checker.sound(whole)


def _measured(measure: Measure, reading: Reading) -> None:
    """Count the bytes: MEMORY USAGE of collections, the length of strings."""
    names, stored = reading.names, reading.stored
    if reading.checker.kind.redis_type != "string":
        sized = [
            (size, name) for size, name in zip(reading.sizes, names, strict=True) if isinstance(size, int)
        ]
        measure.add_sizes([size for size, _ in sized], [name for _, name in sized])
        return
    for number, size in zip(reading.measured, reading.sizes, strict=True):
        value = stored[number]
        if isinstance(size, int) and isinstance(value, bytes):
            measure.sampled_overheads.add(names[number], size - len(value) - len(names[number]))
    if set(map(type, stored)) != {bytes}:
        read = [(name, value) for name, value in zip(names, stored, strict=True) if type(value) is bytes]
        names, stored = [name for name, _ in read], [value for _, value in read]
    measure.add_sizes(list(map(add, map(len, names), map(len, stored))), names)


def _batches(readings: list[tuple[Reading, Known]]) -> Iterator[list[tuple[Reading, Known]]]:
    """Yield the readings in batches: all in one, unless some were split because their values are large."""
    kinds = [known for _, known in readings]
    if len(set(kinds)) == len(kinds):
        yield readings
    else:
        yield from ([reading] for reading in readings)


def _by_length(names: list[bytes], lengths: list[Reply]) -> tuple[list[list[bytes]], list[tuple[bytes, int]]]:
    """Return the names in groups of bounded size, and those whose values are too large to be read."""
    groups: list[list[bytes]] = [[]]
    large: list[tuple[bytes, int]] = []
    room = BATCH_BYTES
    for name, length in zip(names, lengths, strict=True):
        size = length if isinstance(length, int) else 0
        if size > MOST_BYTES:
            large.append((name, size))
            continue
        if size > room:
            groups.append([])
            room = BATCH_BYTES
        groups[-1].append(name)
        room -= size
    return [group for group in groups if group], large
