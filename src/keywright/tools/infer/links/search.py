"""The search for links: sampled ids are looked up in batches, and random ids too, to know what is chance."""

from __future__ import annotations

import math
import random
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from keywright.engine.nodes import Batch
from keywright.errors import KeywrightError
from keywright.keyspace.layouts import Ask
from keywright.keyspace.template import encoded
from keywright.keyspace.wires import Reply
from keywright.tools.audit.page_reader import on_name
from keywright.tools.infer.links.candidates import (
    Candidate,
    Source,
    candidates,
    name_of,
    random_ids,
    targets_of,
)
from keywright.tools.infer.links.declared import NOTHING, Existing
from keywright.tools.infer.links.paths import Occurrence, hint_type, occurrences
from keywright.tools.infer.links.statements import Link, guess, reference, reference_name, relation
from keywright.tools.infer.module import KeyDeclaration
from keywright.tools.infer.structs import Structs
from keywright.tools.pace import GENTLE, Pace, Pacemaker
from keywright.tools.readable import ReadableDatabase

__all__ = ["find_links"]

BATCH = 500
MOST_COMMANDS = 120_000
FIRST = 12
SECOND = 200
CONTROLS = 100
FEWEST = 3
FEWEST_NUMBERS = 8
SURE = 0.9
PROVED = 0.98
UNLIKELY = 0.001
_LINKED = {"string": b"GET", "set": b"SISMEMBER"}
_RELATIONS = {
    ("string", "string"): "one_to_one",
    ("string", "set"): "many_to_one",
    ("set", "set"): "many_to_many",
}


class _Found(NamedTuple):
    candidate: Candidate
    share: float
    chance: float
    looked_up: int

    @property
    def rank(self) -> tuple[float | str, ...]:
        """The order of preference, the best first."""
        target = self.candidate.target.key
        template = target.declared.template
        is_home = template.source.endswith(">") or not template.variables
        words, shared = self.candidate.words, len(self.candidate.shared)
        return (
            -round(self.share * 25),
            -words,
            -shared if words else shared,
            not is_home,
            self.candidate.within,
            target.redis_type in ("set", "zset", "list", "stream"),
            -round(target.declared.weight),
            template.source,
        )

    @property
    def evidence(self) -> str:
        path = self.candidate.source.path
        among = f"members of {self.target}" if self.candidate.within else f"lead to {self.target}"
        verb = "are " if self.candidate.within else ""
        return (
            f"{percentage(self.share)} of {self.looked_up:,} {path.noun} {verb}{among}, "
            f"{percentage(self.chance)} of random ones."
        )

    @property
    def target(self) -> str:
        return self.candidate.target.template.source


def percentage(share: float) -> str:
    return f"{share:.1%}".replace("%", " %").replace(".0 ", " ")


async def find_links(
    db: ReadableDatabase,
    keys: Sequence[KeyDeclaration],
    structs: Structs,
    *,
    lead: bytes = b"",
    existing: Existing = NOTHING,
    pace: Pace = GENTLE,
    prefer_replica: bool = True,
) -> list[Link]:
    """Return the references and relations that sampled ids prove. Read only, at most 120,000 lookups.

    `lead` is the prefix of all names. What joins no new class, or is declared, is not among them.
    """
    search = _Search(db, pace.on(db), lead, existing)
    search.nodes = await db.nodes(prefer_replica=prefer_replica)
    every = [Source(key, path, seen) for key in keys for path, seen in occurrences(key, structs).items()]
    sources = [
        source
        for source in every
        if len({each.text for each in source.seen}) >= FEWEST and not source.repeats_its_key
    ]
    proposed = list(candidates(sources, targets_of(keys)))
    return await search.links(proposed)


class _Search:
    def __init__(self, db: ReadableDatabase, pace: Pace, lead: bytes, existing: Existing) -> None:
        self.db = db
        self.nodes: Sequence[object] = ()
        self._lead = lead
        self._existing = existing
        self._pacemaker, self._batch = Pacemaker(pace), pace.page(BATCH)
        self._left = MOST_COMMANDS
        self._noise = random.Random(18)

    async def links(self, proposed: Sequence[Candidate]) -> list[Link]:
        likely = await self._first(proposed)
        found = await self._second(likely)
        by_source: dict[int, list[_Found]] = {}
        for each in found:
            by_source.setdefault(id(each.candidate.source), []).append(each)
        related, taken = await self._relations(found)
        indexes, listing = await self._indexes(found)
        links = [*related, *indexes]
        taken |= listing
        for group in by_source.values():
            if self._is_settled(group[0].candidate.source):
                continue
            sure = sorted((each for each in group if is_sure(each)), key=lambda each: each.rank)
            if sure and id(sure[0].candidate.source) not in taken:
                if self._existing.allows(*_names(sure[0])):
                    links.append(reference(sure[0].candidate, sure[0].evidence))
            elif not sure:
                links += self._guesses([each for each in group if self._existing.allows(*_names(each))])
        return links

    def _is_settled(self, source: Source) -> bool:
        return (source.key.name, reference_name(source.path)) in self._existing.references

    @staticmethod
    def _guesses(group: Sequence[_Found]) -> Iterator[Link]:
        """Yield a comment for ids that chance explains as well, if the names agree."""
        named = [each for each in group if each.candidate.words and each.share >= SURE]
        for each in sorted(named, key=lambda each: each.rank)[:1]:
            source = each.candidate.source
            place = f"{source.path.name} of {source.key.name}" if source.path.attribute else source.key.name
            yield guess(f"{place} may refer to {each.target}: {each.evidence}")

    async def _first(self, proposed: Sequence[Candidate]) -> list[Candidate]:
        """Return the candidates to which at least half of a few ids lead."""
        asked = [(each, _some(each.source.seen, FIRST, self._noise)) for each in proposed]
        shares = await self._shares(asked)
        return [each for each, share in zip(proposed, shares, strict=True) if share >= 0.5]

    async def _second(self, likely: Sequence[Candidate]) -> list[_Found]:
        asked = [(each, _some(each.source.seen, SECOND, self._noise)) for each in likely]
        shares = await self._shares(asked)
        controls = [(each, random_ids(each.source, self._noise, CONTROLS)) for each in likely]
        chances = await self._shares(controls)
        return [
            _Found(each, share, chance, len(occurring))
            for (each, occurring), share, chance in zip(asked, shares, chances, strict=True)
        ]

    async def _shares(self, asked: Sequence[tuple[Candidate, Sequence[Occurrence]]]) -> list[float]:
        """Return the share of ids that lead to their target, 0 for those that were not looked up."""
        commands = [each.command(one) for each, occurring in asked for one in occurring]
        replies = iter(await self._ask(commands))
        shares = []
        for _, occurring in asked:
            hits = sum(_is_there(next(replies)) for _ in occurring)
            shares.append(hits / len(occurring) if occurring else 0.0)
        return shares

    async def _ask(self, commands: Sequence[tuple[bytes, bytes, tuple[bytes, ...]]]) -> list[Reply]:
        replies: list[Reply] = []
        for start in range(0, len(commands), self._batch):
            part = commands[start : start + self._batch]
            if self._left < len(part):
                replies += [None] * len(part)
                continue
            self._left -= len(part)
            await self._pacemaker.wait(len(part))
            wires = [on_name(Ask(verb, operands), self._lead + name, None) for verb, name, operands in part]
            replies += await self.db.run(Batch(wires), at=self.nodes)  # type: ignore[arg-type]
        return replies

    async def _relations(self, found: Iterable[_Found]) -> tuple[list[Link], set[int]]:
        """Return relations of which the sample proves both directions, and the sources that they explain."""
        pairs: dict[tuple[str, str], tuple[_Found, _Found]] = {}
        sides = {
            (each.candidate.source.key.name, each.candidate.target.key.name): each
            for each in sorted(found, key=lambda each: each.rank, reverse=True)
            if _may_relate(each) and self._existing.relates(*_names(each))
        }
        for (one, other), forward in sides.items():
            back = sides.get((other, one))
            kinds = (forward.candidate.source.key.redis_type, forward.candidate.target.key.redis_type)
            if back is not None and one != other and kinds in _RELATIONS and (other, one) not in pairs:
                pairs[one, other] = (forward, back)
        asked = [
            [
                _inverse_command(side.candidate, one)
                for one in _some(side.candidate.source.seen, SECOND, self._noise)
            ]
            for pair in pairs.values()
            for side in pair
        ]
        replies = iter(await self._ask([each[0] for group in asked for each in group]))
        shares = []
        for group in asked:
            met = sum(_agrees(next(replies), wanted) for _, wanted in group)
            shares.append((met / len(group) if group else 0.0, len(group)))
        links, taken = [], set()
        counted = iter(shares)
        for (one, other), (forward, back) in pairs.items():
            (there, count), (here, others) = next(counted), next(counted)
            if min(there, here) < 0.5:
                continue
            origin = forward.candidate.source.key.declared.template.source
            evidence = (
                f"{percentage(there)} of {count:,} ids in {origin} "
                f"and {percentage(here)} of {others:,} in {forward.target} lead back."
            )
            if min(there, here) >= PROVED:
                kinds = (forward.candidate.source.key.redis_type, forward.candidate.target.key.redis_type)
                links.append(relation(_RELATIONS[kinds], one, other, evidence))
                taken |= {id(forward.candidate.source), id(back.candidate.source)}
            else:
                links.append(guess(f"{one} and {other} may be two sides of a relation: {evidence}"))
        return links, taken

    async def _indexes(self, found: Iterable[_Found]) -> tuple[list[Link], set[int]]:
        """Return sets that list all keys of a class, as far as the sample proves it, and their sources."""
        listing = [each for each in found if _may_list(each) and each.share >= PROVED]
        listing = [each for each in listing if self._existing.relates(*_names(each))]
        listing = [each for each in listing if each.candidate.words or is_sure(each)]
        listing.sort(key=lambda each: each.rank)
        asked = [
            [
                (b"SISMEMBER", name_of(each.candidate.source.key.declared.template, ()), (encoded(text),))
                for text in each.candidate.target.ids[:SECOND]
            ]
            for each in listing
        ]
        replies = iter(await self._ask([command for group in asked for command in group]))
        links: list[Link] = []
        taken: set[int] = set()
        for each, group in zip(listing, asked, strict=True):
            share = sum(_is_there(next(replies)) for _ in group) / len(group)
            source, target = each.candidate.source, each.candidate.target.key
            if share >= PROVED and id(source) not in taken:
                back = f"{percentage(share)} of {len(group):,} names are among the members."
                links.append(relation("index", target.name, source.key.name, f"{each.evidence} {back}"))
                taken.add(id(source))
        return links, taken


def _names(found: _Found) -> tuple[str, str]:
    return found.candidate.source.key.name, found.candidate.target.key.name


def is_sure(found: _Found) -> bool:
    """Return whether the share is high, and higher than chance explains."""
    source = found.candidate.source
    distinct = len({each.text for each in source.seen})
    if found.share < SURE or (source.is_numeric and distinct < FEWEST_NUMBERS and found.chance > 0):
        return False
    # The upper bound of what was estimated from some random ids.
    chance = min(found.chance + 2 * math.sqrt(found.chance * (1 - found.chance) / CONTROLS), 1.0)
    hits = round(found.share * found.looked_up)
    return found.share >= chance + 0.05 and _tail(hits, found.looked_up, chance) < UNLIKELY


def _tail(hits: int, tries: int, chance: float) -> float:
    """Return the probability of at least so many hits by chance."""
    return sum(
        math.comb(tries, each) * chance**each * (1 - chance) ** (tries - each)
        for each in range(hits, tries + 1)
    )


def _may_relate(found: _Found) -> bool:
    """Return whether a relation can be declared on both keys: one variable each, values or sets of ids."""
    source, target = found.candidate.source, found.candidate.target
    return (
        source.path.form in ("value", "members")
        and source.key.redis_type in _LINKED
        and target.key.redis_type in _LINKED
        and not target.key.kind.startswith("Value[Annotated")
        and len(source.key.declared.variables) == len(target.key.declared.variables) == 1
        and not found.candidate.within
        and not found.candidate.skipped
        and source.path.type == hint_type(next(iter(target.key.declared.variables.values())).hint)
        and found.share >= 0.5
    )


def _may_list(found: _Found) -> bool:
    """Return whether the source is one set of the ids of all keys of the target, of the same type."""
    source, target = found.candidate.source, found.candidate.target.key
    variables = list(target.declared.variables.values())
    return (
        source.path.form == "members"
        and source.key.redis_type == "set"
        and not source.key.declared.variables
        and len(variables) == 1
        and not found.candidate.within
        and not found.candidate.skipped
        and source.path.type == hint_type(variables[0].hint)
    )


def _inverse_command(
    candidate: Candidate, occurrence: Occurrence
) -> tuple[tuple[bytes, bytes, tuple[bytes, ...]], bytes | None]:
    """Return the command that asks whether the target leads back, and the value that it must hold."""
    target = candidate.target.key
    name = name_of(target.declared.template, [occurrence.text])
    own = encoded(occurrence.variables[0])
    verb = _LINKED[target.redis_type]
    return ((verb, name, (own,)), None) if target.redis_type == "set" else ((verb, name, ()), own)


def _agrees(reply: Reply, wanted: bytes | None) -> bool:
    return _is_there(reply) if wanted is None else reply == wanted


def _is_there(reply: Reply) -> bool:
    return reply is not None and reply != 0 and not isinstance(reply, KeywrightError)


def _some(seen: Sequence[Occurrence], most: int, noise: random.Random) -> Sequence[Occurrence]:
    return seen if len(seen) <= most else noise.sample(list(seen), most)
