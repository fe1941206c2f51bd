"""Programs of the catalogue among sampled keys, with the evidence for each.

A program is recognised by its distinctive classes: names that no other program has, keys of the declared
type, and values that decode. Then its other classes claim keys as well. A class with a wide template needs
values that it can decode.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import chain, combinations
from typing import Any, NamedTuple

from keywright.keyspace import Context, Key
from keywright.keyspace.proof.rules import keyspaces_share_no_name
from keywright.keyspace.template import Template
from keywright.tools.audit.value_checks import Checker
from keywright.tools.infer.facts import Facts
from keywright.tools.infer.patterns import Observation
from keywright.tools.program import Program

__all__ = ["Recognition", "has_fallback", "names_of_programs", "recognise", "recognised_lines"]

AGREED = 0.9
"""The least share of the distinctive keys that have the declared type."""
DECODED = 0.5
"""The least share of those that were read that decode: another version may write some of them differently."""
_VERSION = re.compile(rb"(?<![0-9.])[0-9]{1,4}(?:\.[0-9]{1,4}){0,2}")


class Recognition(NamedTuple):
    """A program, the names that are its keys, and the evidence."""

    module: str
    """Where the program is declared, as MODULE:ATTRIBUTE."""
    program: Program
    names: frozenset[bytes]
    keys: int
    """How many keys of the database it has, estimated from the sample."""
    distinctive: int
    """How many of the names are of distinctive classes."""
    classes: int
    """Of how many distinctive classes they are."""
    typed: int
    """How many of these keys are known to have the declared type; 0 where only names were read."""
    mistyped: int
    """Names of distinctive classes whose keys have another type; they are not part of `names`."""
    version: str | None

    @property
    def title(self) -> str:
        """The program, and its version if the data shows it."""
        return f"{self.program.title} {self.version}" if self.version else self.program.title

    @property
    def evidence(self) -> list[str]:
        """Lines for people: why these keys are of the program, and of which version."""
        most = len(self.program.distinctive)
        names = "1 name matches" if self.distinctive == 1 else f"{self.distinctive:,} names match"
        types = f", and {self.typed:,} of the keys have the declared type" if self.typed else ""
        lines = [f"{names} {self.classes} of the {most} templates that only {self.program.title} has{types}"]
        if self.mistyped:
            lines.append(f"left out: {self.mistyped:,} of these names, whose keys have another type")
        if self.version is None:
            lines.append(
                f"the data does not show the version; declared and tested for {self.program.versions}"
            )
        elif not _covers(self.program.versions, self.version):
            lines.append(f"declared and tested for {self.program.versions}")
        return lines


class _Claims:
    """The keys of one program, as they are found."""

    def __init__(self, module: str, program: Program) -> None:
        self.module = module
        self.program = program
        self.leads = {space: space.bind().lead for space in program.spaces}
        self.wide = [kind for space in program.spaces for kind in space if self._is_wide(kind)]
        self.narrow = [
            kind
            for space in program.spaces
            for kind in space
            if kind not in self.wide and kind not in program.distinctive
        ]
        self.found: dict[bytes, tuple[type[Key], Observation]] = {}
        self.mistyped = 0
        self.read = 0
        """Distinctive keys of which a value was read, and those of them that decode."""
        self.decoded = 0
        self.shared: set[tuple[object, ...]] = set()
        self._checkers: dict[type[Key], Checker] = {}

    def _is_wide(self, kind: type[Key]) -> bool:
        declared = kind.declaration
        literal = self.leads[declared.space] + declared.template.literal_prefix
        return kind not in self.program.distinctive and (declared.fallback or not literal)

    def key(self, kinds: Iterable[type[Key]], name: bytes) -> Key | None:
        for kind in kinds:
            lead = self.leads[kind.declaration.space]
            if name.startswith(lead) and (key := kind.parse(name[len(lead) :])) is not None:
                return key
        return None

    def look(self, observation: Observation) -> None:
        """Claim a key of a distinctive class."""
        key = self.key(self.program.distinctive, observation.name)
        if key is None or not _has_mark(observation.facts, self.program.value_mark):
            return
        if not _has_type(observation.facts, type(key)):
            self.mistyped += 1
            return
        if observation.facts is not None and (stored := _stored(observation.facts)):
            self.read += 1
            # Another version may have more members, or fewer.
            self.decoded += self._problems(key, stored) <= {"KW203", "KW206"}
        self.found[observation.name] = type(key), observation
        self.shared.add(self._shared(key))

    @property
    def is_recognised(self) -> bool:
        typed = len(self.found) >= AGREED * (len(self.found) + self.mistyped)
        return bool(self.found) and typed and self.decoded >= DECODED * self.read

    def claim(self, kinds: Sequence[type[Key]], observation: Observation, *, decoded: bool) -> bool:
        """Claim a key of other classes. Return whether it is one."""
        key = self.key(kinds, observation.name)
        facts = observation.facts
        if key is None or not _has_type(facts, type(key)) or self._shared(key) not in self.shared:
            return False
        if decoded and (facts is None or not self._decodes(key, facts)):
            return False
        self.found[observation.name] = type(key), observation
        return True

    def _shared(self, key: Key) -> tuple[object, ...]:
        return tuple(getattr(key, name, None) for name in self.program.shared)

    def _decodes(self, key: Key, facts: Facts) -> bool:
        stored = _stored(facts)
        return bool(stored) and not self._problems(key, stored)

    def _problems(self, key: Key, stored: Any) -> set[str]:
        """Return the codes of the findings of a value."""
        kind = type(key)
        checker = self._checkers.get(kind) or self._checkers.setdefault(kind, Checker(kind, Context()))
        return {problem.code for problem in checker.check(lambda: key, stored).problems}

    def recognition(self) -> Recognition:
        kinds = [kind for kind, _ in self.found.values() if kind in self.program.distinctive]
        typed = [
            kind
            for kind, each in self.found.values()
            if kind in self.program.distinctive and each.facts is not None
        ]
        return Recognition(
            self.module,
            self.program,
            frozenset(self.found),
            round(sum(observation.weight for _, observation in self.found.values())),
            len(kinds),
            len(set(kinds)),
            len(typed),
            self.mistyped,
            self._version(),
        )

    def _version(self) -> str | None:
        """Return the newest version that the data shows."""
        if self.program.version_member is None:
            return None
        holder, member = self.program.version_member
        facts = [each.facts for kind, each in self.found.values() if kind is holder and each.facts]
        texts = [
            fields[member.encode()] for each in facts for fields in each.fields if member.encode() in fields
        ]
        found = [match[0].decode() for text in texts if (match := _VERSION.search(text[:100]))]
        return max(found, key=lambda text: tuple(map(int, text.split("."))), default=None)


def recognise(programs: Mapping[str, Program], observations: Sequence[Observation]) -> list[Recognition]:
    """Return the programs that sampled keys are of, by where each is declared. A key is of one program."""
    claims = [_Claims(module, program) for module, program in programs.items()]
    for claim in claims:
        marked = re.compile(b"|".join(map(re.escape, claim.program.marks))).search
        for observation in observations:
            if marked(observation.name):
                claim.look(observation)
    present = sorted((claim for claim in claims if claim.is_recognised), key=lambda claim: -len(claim.found))
    present = _one_of_each_family(present, observations)
    _claim_others(present, observations)
    return [claim.recognition() for claim in present]


def _one_of_each_family(present: Sequence[_Claims], observations: Sequence[Observation]) -> list[_Claims]:
    """Return, of programs that share a keyspace, the one that has most keys; of equals the first."""
    kept: list[_Claims] = []
    for claim in present:
        rivals = [each for each in kept if not each.leads.keys().isdisjoint(claim.leads)]
        if not rivals:
            kept.append(claim)
            continue
        others = [each for each in present if each is not claim and each not in rivals]
        if _would_have(claim, others, observations) > _would_have(rivals[0], others, observations):
            kept[kept.index(rivals[0])] = claim
    return kept


def _would_have(claim: _Claims, others: Iterable[_Claims], observations: Sequence[Observation]) -> int:
    """Return how many names a program has if it claims all that no distinctive class of others has."""
    found = dict(claim.found)
    _claim_others([claim], observations, chain.from_iterable(each.found for each in others))
    count, claim.found = len(claim.found), found
    return count


def _claim_others(
    claims: Sequence[_Claims], observations: Sequence[Observation], claimed: Iterable[bytes] = ()
) -> None:
    """Let programs claim the keys of their other classes, and those of distinctive ones without the mark."""
    taken = {*claimed, *chain.from_iterable(claim.found for claim in claims)}
    passes: tuple[tuple[Callable[[_Claims], Sequence[type[Key]]], bool], ...] = (
        (lambda claim: claim.program.distinctive, True),
        (lambda claim: claim.narrow, False),
        (lambda claim: claim.wide, True),
    )
    for kinds, decoded in passes:
        for claim in claims:
            for observation in observations:
                if observation.name not in taken and claim.claim(kinds(claim), observation, decoded=decoded):
                    taken.add(observation.name)


def recognised_lines(recognised: Sequence[Recognition]) -> list[str]:
    """Return lines for people: each program, how many keys it has, the evidence, and which overlap."""
    lines = []
    for each in recognised:
        noun = "key is" if each.keys == 1 else "keys are"
        lines.append(f"{each.keys:,} {noun} {each.title}, in the catalogue as {each.program.name}:")
        lines += [f"  {line}" for line in each.evidence]
    for one, other in combinations((each.program for each in recognised), 2):
        bindings = [space.bind() for space in (*one.spaces, *other.spaces)]
        if any(finding.severity == "error" for finding in keyspaces_share_no_name(bindings)):
            lines.append(f"{one.name} and {other.name} can make the same names: audit one of them at a time")
    return lines


def has_fallback(recognised: Iterable[Recognition]) -> bool:
    """Return whether a program has a fallback, which would overlap with another one."""
    spaces = chain.from_iterable(each.program.spaces for each in recognised)
    return any(kind.declaration.fallback for space in spaces for kind in space)


def names_of_programs(recognised: Iterable[Recognition]) -> list[tuple[bytes, Template]]:
    """Return the templates of programs, each with the prefix of its names, to which no other may overlap."""
    spaces = chain.from_iterable(each.program.spaces for each in recognised)
    return [
        (space.bind().lead, kind.declaration.template)
        for space in spaces
        for kind in space
        if not kind.declaration.fallback
    ]


def _has_type(facts: Facts | None, kind: type[Key]) -> bool:
    return facts is None or facts.redis_type == kind.redis_type


def _has_mark(facts: Facts | None, mark: bytes) -> bool:
    return not mark or (facts is not None and any(mark in value for value in facts.values))


def _stored(facts: Facts) -> Any:
    """Return the part of a key that was read, in its stored form; None if nothing was."""
    match facts.redis_type:
        case "string":
            return facts.values[0] if facts.values else None
        case "hash":
            return [part for fields in facts.fields for pair in fields.items() for part in pair]
        case "zset":
            return list(chain.from_iterable(zip(facts.values, facts.scores, strict=False)))
        case "list" | "set":
            return list(facts.values)
        case "stream":
            return [[b"0-1", list(chain.from_iterable(fields.items()))] for fields in facts.fields]
    return None


def _covers(tested: str, version: str) -> bool:
    """Return whether a version is one of the tested ones, as far as these are written."""
    listed = re.findall(r"[0-9]+(?:\.[0-9]+)*", tested)
    return any(version == each or version.startswith(f"{each}.") for each in listed)
