"""Proofs over languages: whether two share a word, and whether a word splits in two ways.

A language becomes a position automaton (Glushkov): one state for each byte position of the expression, no
empty moves, and a 256-bit mask of the bytes that lead into a state. Both proofs search pairs of states
breadth first, so what they find is a shortest word, and finding nothing is a proof.

Counted repetition is unrolled, so it is exact, up to a spread (``most - least``) of 128. A wider one is taken
as unbounded: a reported word may then be longer than the count allows, but no collision is ever missed.
"""

from __future__ import annotations

import string
from collections.abc import Callable, Hashable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache, reduce
from typing import NamedTuple, TypeAlias, TypeVar

from keywright.keyspace.languages.language import (
    AnyByte,
    Chain,
    Difference,
    Either,
    Language,
    OneByte,
    OneCharacter,
    Repeated,
    Word,
    alternation,
    characters,
    concatenation,
    literal,
    one_of,
)

__all__ = [
    "Language",
    "Segment",
    "accepts",
    "alternation",
    "ambiguity",
    "bytes_used",
    "characters",
    "concatenation",
    "is_empty",
    "literal",
    "one_of",
    "shortest_common",
    "split",
]

WIDEST_SPREAD = 128
MOST_STATES = 20_000

State = TypeVar("State", bound=Hashable)
Split = tuple[bytes, ...]
Segment: TypeAlias = "Language | tuple[Language, ...]"
"""A part of every word; a tuple of parts is in a word as a whole, or not at all."""


def accepts(language: Language, word: bytes) -> bool:
    """Return whether ``word`` belongs to the language."""
    automaton = _compiled((language,))
    states = {0}
    for byte in word:
        states = {
            after
            for state in states
            for after in automaton.follow[state]
            if automaton.masks[after] >> byte & 1
        }
    return any(automaton.final[state] for state in states)


def split(segments: Sequence[Segment], word: bytes) -> Split | None:
    """Return the parts of a word, one for each segment, the earlier ones as long as possible, or None.

    The time is linear in the length of the word, where a regular expression may try every split.
    """
    automaton = _compiled(tuple(segments))
    before, entered = automaton.steps
    # From the end: which states have a way to the end of the word, as a mask of their numbers.
    viable = [0] * len(word) + [sum(1 << state for state, final in enumerate(automaton.final) if final)]
    for place in range(len(word) - 1, -1, -1):
        after = viable[place + 1] & entered[word[place]]
        mask = 0
        while after:
            mask |= before[after.bit_length() - 1]
            after ^= 1 << after.bit_length() - 1
        viable[place] = mask
    if not viable[0] & 1:
        return None
    state, owners = 0, []
    for place, byte in enumerate(word, 1):
        allowed = viable[place] & entered[byte]
        state = min(
            (after for after in automaton.follow[state] if allowed >> after & 1),
            key=automaton.segment.__getitem__,
        )
        owners.append(automaton.segment[state])
    return _split(word, owners, _count(segments))


def bytes_used(language: Language) -> int:
    """Return the mask of every byte that occurs in some word of the language."""
    return reduce(int.__or__, _compiled((language,)).masks)


def is_empty(language: Language) -> bool:
    """Return whether the language has no word."""
    automaton = _compiled((language,))

    def moves(state: int) -> Iterator[tuple[int, int]]:
        return ((automaton.masks[after], after) for after in automaton.follow[state])

    return _shortest_path(0, moves, automaton.final.__getitem__) is None


def shortest_common(a: Language, b: Language) -> bytes | None:
    """Return a shortest word of both languages, as readable as possible; None proves them disjoint."""
    left, right = _compiled((a,)), _compiled((b,))

    def moves(pair: tuple[int, int]) -> Iterator[tuple[int, tuple[int, int]]]:
        ahead = [(q, right.masks[q]) for q in right.follow[pair[1]]]
        for p in left.follow[pair[0]]:
            mask = left.masks[p]
            for q, other in ahead:
                if mask & other:
                    yield mask & other, (p, q)

    path = _shortest_path((0, 0), moves, lambda pair: left.final[pair[0]] and right.final[pair[1]])
    return None if path is None else bytes(_readable(mask) for mask, _ in path)


def ambiguity(segments: Sequence[Segment]) -> tuple[bytes, Split, Split] | None:
    """Return a shortest word with two splits over the segments, and both splits; None proves there is none.

    A split is settled by the segment each byte falls in, so two runs of the automaton are two splits exactly
    when they disagree about the segment of some byte. Other ways to differ do not count.
    """
    automaton = _compiled(tuple(segments))
    follow, masks, segment = automaton.follow, automaton.masks, automaton.segment

    def moves(pair: tuple[int, int, bool]) -> Iterator[tuple[int, tuple[int, int, bool]]]:
        p, q, differ = pair
        for after_p in follow[p]:
            for after_q in follow[q]:
                if p == q and after_q < after_p and not differ:
                    continue  # the mirror image of a pair met anyway
                if mask := masks[after_p] & masks[after_q]:
                    yield mask, (after_p, after_q, differ or segment[after_p] != segment[after_q])

    path = _shortest_path(
        (0, 0, False), moves, lambda pair: pair[2] and automaton.final[pair[0]] and automaton.final[pair[1]]
    )
    if path is None:
        return None
    word = bytes(_readable(mask) for mask, _ in path)
    first = _split(word, [segment[p] for _, (p, _, _) in path], _count(segments))
    second = _split(word, [segment[q] for _, (_, q, _) in path], _count(segments))
    return word, first, second


def _count(segments: Sequence[Segment]) -> int:
    return sum(len(each) if isinstance(each, tuple) else 1 for each in segments)


def _split(word: bytes, owners: Sequence[int], count: int) -> Split:
    pieces = [bytearray() for _ in range(count)]
    for byte, owner in zip(word, owners, strict=True):
        pieces[owner].append(byte)
    return tuple(map(bytes, pieces))


def _shortest_path(
    start: State,
    moves: Callable[[State], Iterator[tuple[int, State]]],
    final: Callable[[State], bool],
) -> list[tuple[int, State]] | None:
    """Return the moves of a shortest path from ``start`` to a final state."""
    came_from: dict[State, tuple[int, State]] = {}
    seen = {start}
    queue = [start]
    for state in queue:
        if final(state):
            return _retraced(start, state, came_from)
        for mask, after in moves(state):
            if after not in seen:
                seen.add(after)
                came_from[after] = (mask, state)
                queue.append(after)
    return None


def _retraced(
    start: State, state: State, came_from: dict[State, tuple[int, State]]
) -> list[tuple[int, State]]:
    path = []
    while state != start:
        mask, before = came_from[state]
        path.append((mask, state))
        state = before
    return path[::-1]


_PREFERRED = (string.ascii_lowercase + string.digits + string.ascii_uppercase + string.punctuation).encode()
_BY_PREFERENCE = _PREFERRED + bytes(byte for byte in range(256) if byte not in _PREFERRED)


@lru_cache(maxsize=1024)
def _readable(mask: int) -> int:
    return next(byte for byte in _BY_PREFERENCE if mask >> byte & 1)


@dataclass(frozen=True)
class _Automaton:
    """States by number; state 0 is the start, and nothing leads into it."""

    masks: tuple[int, ...]
    follow: tuple[tuple[int, ...], ...]
    final: tuple[bool, ...]
    segment: tuple[int, ...]

    @cached_property
    def steps(self) -> tuple[list[int], list[int]]:
        """The states before each state, and the states that each byte leads into, as masks of numbers."""
        before = [0] * len(self.masks)
        for state, following in enumerate(self.follow):
            for after in following:
                before[after] |= 1 << state
        entered = [
            sum(1 << state for state, mask in enumerate(self.masks) if mask >> byte & 1)
            for byte in range(256)
        ]
        return before, entered


@lru_cache(maxsize=2048)
def _compiled(segments: tuple[Segment, ...]) -> _Automaton:
    builder = _Builder()
    owners = [-1]
    whole = _NOTHING
    number = 0
    for segment in segments:
        inner = _NOTHING
        for language in segment if isinstance(segment, tuple) else (segment,):
            inner = builder.chain(inner, builder.build(language))
            owners += [number] * (len(builder.masks) - len(owners))
            number += 1
        whole = builder.chain(whole, inner._replace(nullable=inner.nullable or isinstance(segment, tuple)))
    last = set(whole.last) | ({0} if whole.nullable else set())
    builder.follow[0] = list(whole.first)
    return _Automaton(
        masks=tuple(builder.masks),
        follow=tuple(tuple(dict.fromkeys(after)) for after in builder.follow),
        final=tuple(state in last for state in range(len(builder.masks))),
        segment=tuple(owners),
    )


class _Fragment(NamedTuple):
    first: tuple[int, ...]
    last: tuple[int, ...]
    nullable: bool


_NOTHING = _Fragment((), (), nullable=True)


class _Builder:
    def __init__(self) -> None:
        self.masks = [0]
        self.follow: list[list[int]] = [[]]

    def build(self, language: Language) -> _Fragment:
        match language:
            case Word(word):
                return reduce(self.chain, (self._position(1 << byte) for byte in word), _NOTHING)
            case OneByte(mask):
                return self._position(mask)
            case OneCharacter() | AnyByte():
                return self.build(language.as_bytes())
            case Chain(parts):
                return reduce(self.chain, map(self.build, parts), _NOTHING)
            case Either(options):
                return self._either([self.build(option) for option in options])
            case Repeated(body, least, most):
                return self._repeat(body, least, most)
            case Difference(base, excluded):
                return self._difference(_compiled((base,)), _compiled((excluded,)))
        raise TypeError(f"{language!r} is not a language expression")

    def chain(self, a: _Fragment, b: _Fragment) -> _Fragment:
        for state in a.last:
            self.follow[state].extend(b.first)
        return _Fragment(
            a.first + b.first if a.nullable else a.first,
            a.last + b.last if b.nullable else b.last,
            a.nullable and b.nullable,
        )

    def _position(self, mask: int) -> _Fragment:
        self.masks.append(mask)
        self.follow.append([])
        state = (len(self.masks) - 1,)
        return _Fragment(state, state, nullable=False)

    def _either(self, options: Sequence[_Fragment]) -> _Fragment:
        return _Fragment(
            tuple(state for option in options for state in option.first),
            tuple(state for option in options for state in option.last),
            any(option.nullable for option in options),
        )

    def _repeat(self, body: Language, least: int, most: int | None) -> _Fragment:
        if most is None or most - least > WIDEST_SPREAD:
            head = self._run(body, max(least - 1, 0))
            loop = self.build(body)
            self.chain(loop, loop)
            return self.chain(head, loop._replace(nullable=loop.nullable or least == 0))
        head = self._run(body, least)
        # Nested, x(x(x)?)?, and not x?x?x?: each state then leads to one next copy instead of all later ones.
        tail = _NOTHING
        for _ in range(most - least):
            tail = self.chain(self.build(body), tail)._replace(nullable=True)
        return self.chain(head, tail)

    def _run(self, body: Language, times: int) -> _Fragment:
        return reduce(self.chain, (self.build(body) for _ in range(times)), _NOTHING)

    def _difference(self, base: _Automaton, excluded: _Automaton) -> _Fragment:
        """Run both automata side by side, the excluded one as all the states that it may be in.

        The excluded states that a byte leads to depend on those before it, so a state of the result is one
        of the base, a set of excluded ones, and the bytes that lead there.
        """
        made: dict[tuple[int, int, int], int] = {}
        ends: list[int] = []
        _, entered = excluded.steps
        final = sum(1 << state for state, is_final in enumerate(excluded.final) if is_final)
        after_of = [sum(1 << after for after in following) for following in excluded.follow]

        def moves(state: int, others: int) -> tuple[int, ...]:
            reachable = reduce(int.__or__, (after_of[each] for each in _bits(others)), 0)
            return tuple(
                place(after, others_after, mask)
                for after in base.follow[state]
                for others_after, mask in _by_others(base.masks[after], reachable, entered).items()
            )

        def place(state: int, others: int, mask: int) -> int:
            known = made.get((state, others, mask))
            if known is not None:
                return known
            if len(made) == MOST_STATES:
                raise ValueError(f"what is left is too intricate to reason about: over {MOST_STATES} states")
            ((number,), _, _) = self._position(mask)
            made[state, others, mask] = number
            if base.final[state] and not others & final:
                ends.append(number)
            waiting.append((number, state, others))
            return number

        waiting: list[tuple[int, int, int]] = []
        first = moves(0, 1)
        while waiting:
            number, state, others = waiting.pop()
            self.follow[number].extend(moves(state, others))
        return _Fragment(first, tuple(ends), nullable=base.final[0] and not excluded.final[0])


def _bits(mask: int) -> Iterator[int]:
    while mask:
        yield mask.bit_length() - 1
        mask ^= 1 << mask.bit_length() - 1


def _by_others(mask: int, reachable: int, entered: list[int]) -> dict[int, int]:
    """Return the bytes of a mask by the excluded states that each leads to."""
    found: dict[int, int] = {}
    for byte in _bits(mask):
        others = reachable & entered[byte]
        found[others] = found.get(others, 0) | 1 << byte
    return found
