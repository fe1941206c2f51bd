"""Names with and without a part, which are one family: `limit/5/hour` beside `limit/<caller>/5/hour`.

The part is between a beginning and an ending that both have, or before names that are the same without it. It
becomes an optional segment. All other names are left to the tree.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain, islice
from typing import NamedTuple, TypeAlias

from keywright.tools.infer.contents import content_of
from keywright.tools.infer.patterns import Observation, Pattern, Piece, Slot
from keywright.tools.infer.templates import template_of
from keywright.tools.infer.words import REPEATED, Words
from keywright.tools.segments import Looks, looks_of, segments_of, values_in

__all__ = ["families_of"]

SEPARATORS = (b"/", b":", b"|", b".")
LONGEST_END = 4
VARIOUS = 8
"""So many texts between a beginning and the same endings are values; fewer may be words."""
DOMINANT = 0.7
"""The share of the names with another beginning, at least, that have the endings of a family."""
DEEPEST = 2
MOST_FAMILIES = 60
MOST_GROUPS = 2_000
MOST_SEPARATORS = 12
MOST_VALUES = 2_000
SEVERAL = 2
_PARENT = re.compile(rb".*[:/|.{]", re.DOTALL)
_DIGIT = re.compile(rb"-?[0-9]")
_CLOSED = re.compile(rb"[})\]]*$")

_End: TypeAlias = tuple[bytes, ...]
_Shape: TypeAlias = tuple[tuple[bytes, Looks], ...]


class _Group(NamedTuple):
    """Names of keys of one type that begin alike, and end with an id of one alphabet or with a word."""

    beginning: bytes
    kind: str
    last: Looks

    @property
    def beside(self) -> _Group:
        """The parent of the beginning, with which others may begin too; the beginning if it has none."""
        parent = _PARENT.match(self.beginning)
        return self._replace(beginning=parent[0]) if parent is not None else self


class _Split(NamedTuple):
    observation: Observation
    pieces: list[bytes]

    @property
    def group(self) -> _Group:
        facts, last = self.observation.facts, looks_of(self.pieces[-1])
        return _Group(self.pieces[0], facts.redis_type if facts else "", last if _is_id(last) else ())


def families_of(observations: Sequence[Observation], words: Words) -> list[Pattern]:
    """Return a pattern with an optional segment for each family; no name is in two of them.

    Keys that expired before they were read are in a family if their names are.
    """
    read = [each for each in observations if each.facts is not None] or observations
    gone = [each for each in observations if each.facts is None] if read is not observations else []
    found: list[Pattern] = []
    taken: set[bytes] = set()
    for pattern in islice(chain(_parts_between(read, words), _parts_before(read, words)), MOST_FAMILIES):
        template = template_of(pattern)
        if template is None or any(each.name in taken for each in pattern.observations):
            continue
        late = [each for each in gone if each.name not in taken and template.parse(each.name) is not None]
        found.append(pattern._replace(observations=(*pattern.observations, *late)))
        taken |= {each.name for each in found[-1].observations}
    return found


def _parts_between(observations: Sequence[Observation], words: Words) -> Iterator[Pattern]:
    for separator in SEPARATORS:
        split = [
            _Split(each, each.name.split(separator))
            for each in observations
            if SEVERAL <= each.name.count(separator) <= MOST_SEPARATORS
        ]
        for length in range(LONGEST_END, 1, -1):
            done: set[_Group] = set()
            groups: dict[_Group, list[_Split]] = defaultdict(list)
            for each in split:
                if len(each.pieces) > length and all(each.pieces[1:]):
                    groups[each.group].append(each)
            siblings: dict[_Group, list[_Group]] = defaultdict(list)
            for group in groups:
                siblings[group.beside].append(group)
            for chosen in sorted(groups, key=lambda group: -len(groups[group]))[:MOST_GROUPS]:
                ends = None if chosen in done else _floating_ends(groups[chosen], length)
                if ends is None:
                    continue
                family: dict[bytes, list[_Split]] = {}
                for other in siblings[chosen.beside]:
                    names = [each for each in groups[other] if ends.have(each.pieces[-length:])]
                    if other == chosen or len(names) >= DOMINANT * len(groups[other]):
                        done.add(other)
                        family[other.beginning] = names
                yield _with_part_between(family, separator, length, words)


class _Ends:
    """The endings of a family: in each place ids of the alphabets that were seen, a text, or any word."""

    def __init__(self, ends: Iterable[_End]) -> None:
        self._places = [({looks_of(text) for text in place}, set(place)) for place in zip(*ends, strict=True)]

    def have(self, end: Sequence[bytes]) -> bool:
        """Return whether an ending is one of these; a place of several words may have others too."""
        return all(
            text in texts
            or (looks_of(text) in looks if _is_id(looks_of(text)) else sum(map(_is_word, looks)) >= SEVERAL)
            for text, (looks, texts) in zip(end, self._places, strict=True)
        )


def _floating_ends(names: Sequence[_Split], length: int) -> _Ends | None:
    """Return the endings that names have with and without various texts before them; None if they do not."""
    direct: dict[_End, list[Observation]] = defaultdict(list)
    apart: dict[_End, list[_Split]] = defaultdict(list)
    for each in names:
        end = tuple(each.pieces[-length:])
        if len(each.pieces) == length + 1:
            direct[end].append(each.observation)
        else:
            apart[end].append(each)
    both = direct.keys() & apart.keys()
    enough = SEVERAL if all(len(apart[end]) >= VARIOUS for end in both) else REPEATED
    if len(both) < enough or len(both) * 2 < min(len(direct), len(apart)):
        return None
    middles = {tuple(each.pieces[1:-length]) for end in both for each in apart[end]}
    varying = [len(set(place)) > 1 for place in zip(*both, strict=True)]
    if len(middles) < VARIOUS or not varying[0] or sum(varying) < SEVERAL:
        return None
    without = [each for end in sorted(both) for each in direct[end]]
    within = [each.observation for end in sorted(both) for each in apart[end]]
    return _Ends(direct) if content_of(without) == content_of(within) else None


def _with_part_between(
    family: dict[bytes, list[_Split]], separator: bytes, length: int, words: Words
) -> Pattern:
    every = [each for group in family.values() for each in group]
    beginning = next(iter(family))
    parent = found[0] if (found := _PARENT.match(beginning)) else b""
    pieces: list[Piece] = [beginning]
    if len(family) > 1 or not _are_known(beginning, words):
        pieces = [parent, Slot(_values(each[len(parent) :] for each in family))]
        if not _are_known(parent, words):
            pieces = [Slot(_values(family))]
    middles = _values(
        separator.join(each.pieces[1:-length]) for each in every if len(each.pieces) > length + 1
    )
    pieces.append(Slot(middles, before=separator, optional=True))
    for place in zip(*(each.pieces[-length:] for each in every), strict=True):
        closed = min((_CLOSED.search(text)[0] for text in place), key=len)  # type: ignore[index]
        texts = _values(text.removesuffix(closed) for text in place)
        constant = len(texts) == 1 and _is_literal(texts[0], words)
        pieces += [separator, texts[0] if constant else Slot(texts), closed]
    return Pattern(tuple(pieces), tuple(each.observation for each in every))


def _is_literal(text: bytes, words: Words) -> bool:
    """Return whether a text that all names have in one place is part of the template."""
    return _DIGIT.fullmatch(text) is not None or (not _is_id(looks_of(text)) and words.is_listed(text))


def _parts_before(observations: Sequence[Observation], words: Words) -> Iterator[Pattern]:
    """Yield families of names that begin with ids, which several words may precede: `<id>`, `draft:<id>`.

    Each word precedes two forms of names or more, such as `<id>` and `<id>:title`, and no others. At the
    beginning of names one such word is enough, as it is a prefix.
    """
    direct: dict[bytes, dict[_Shape, list[Observation]]] = defaultdict(lambda: defaultdict(list))
    below: dict[bytes, dict[tuple[bytes, bytes], dict[_Shape, list[Observation]]]] = defaultdict(
        lambda: defaultdict(lambda: defaultdict(list))
    )
    for each in observations:
        if sum(map(each.name.count, SEPARATORS)) > MOST_SEPARATORS:
            continue
        lead = b""
        segments = [(separator, looks_of(text)) for separator, text in segments_of(each.name)]
        for depth, (separator, looks) in enumerate(segments[: DEEPEST + 1]):
            lead += separator
            if _is_id(looks):
                direct[lead][_shape(segments[depth:])].append(each)
                break
            if not _is_word(looks):
                break
            if depth + 1 < len(segments):
                after, following = segments[depth + 1]
                below[lead][looks[0], after][  # type: ignore[index]
                    _shape(segments[depth + 1 :]) if _is_id(following) else ()
                ].append(each)
            lead += looks[0]  # type: ignore[operator]
    for lead, shapes in list(direct.items())[:MOST_GROUPS]:
        if len(shapes) > 1 and lead in below:
            yield from _with_part_before(lead, shapes, below[lead], words)


def _with_part_before(
    lead: bytes,
    shapes: dict[_Shape, list[Observation]],
    below: dict[tuple[bytes, bytes], dict[_Shape, list[Observation]]],
    words: Words,
) -> Iterator[Pattern]:
    preceding = {
        key: found
        for key, found in below.items()
        if len(found) > 1
        and found.keys() <= shapes.keys()
        and any(sum(len(looks) for _, looks in shape) > 1 for shape in found)
        and all(_kinds(each) <= _kinds(shapes[shape]) for shape, each in found.items())
    }
    for separator in {after for _, after in preceding}:
        chosen = {word: found for (word, after), found in preceding.items() if after == separator}
        if (lead and len(chosen) < SEVERAL) or not _are_known(lead, words):
            continue
        part = Slot(tuple(chosen), after=separator, optional=True)
        for shape in {shape for found in chosen.values() for shape in found}:
            with_part = [(each, word) for word, found in chosen.items() for each in found.get(shape, ())]
            every = [*shapes[shape], *(each for each, _ in with_part)]
            rests = [each.name[len(lead) :] for each in shapes[shape]]
            rests += [each.name[len(lead + word + separator) :] for each, word in with_part]
            pieces = list(_pieces(shape, rests, words))
            if pieces:
                yield Pattern((lead, part, *pieces), tuple(every))


def _pieces(shape: _Shape, rests: Sequence[bytes], words: Words) -> Iterator[Piece]:
    """Yield the pieces of names of one shape; none if they have a word that is not shown."""
    literal = [part for _, looks in shape for part in looks if isinstance(part, bytes)]
    if not all(words.is_listed(text) for text in literal if text):
        return
    columns = zip(*([text for _, text in segments_of(rest)] for rest in rests), strict=False)
    for (separator, looks), column in zip(shape, columns, strict=False):
        values = iter(zip(*(values_in(text, looks) for text in column), strict=False))
        yield separator
        for part in looks:
            yield part if isinstance(part, bytes) else Slot(_values(next(values)))


def _shape(segments: Sequence[tuple[bytes, Looks]]) -> _Shape:
    return ((b"", segments[0][1]), *segments[1:])


def _kinds(observations: Iterable[Observation]) -> set[str]:
    return {each.facts.redis_type for each in observations if each.facts is not None}


def _are_known(literal: bytes, words: Words) -> bool:
    """Return whether the texts of a literal beginning may be shown; of the first, learned words too."""
    texts = [text for _, text in segments_of(literal)]
    if any(text and _is_id(looks_of(text)) for text in texts):
        return False
    return all(words.is_known(text) for text in texts[:1] if text) and all(
        words.is_listed(text) for text in texts[1:] if text
    )


def _is_id(looks: Looks) -> bool:
    return any(isinstance(part, str) for part in looks)


def _is_word(looks: Looks) -> bool:
    return len(looks) == 1 and isinstance(looks[0], bytes)


def _values(texts: Iterable[bytes]) -> tuple[bytes, ...]:
    return tuple(dict.fromkeys(texts))[:MOST_VALUES]
