"""The tree of sampled names: which segments are words of the program, and which are variables.

Ids of one alphabet are one variable from the start. Words are compared by what is below them: siblings with
the same substructure are values of one variable, siblings that hold different things are words.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import islice, takewhile
from typing import NamedTuple, TypeAlias

from keywright.tools.infer.facts import Facts
from keywright.tools.infer.segments import REST, Looks, looks_of, segments_of, values_in
from keywright.tools.infer.values import rough_form

__all__ = ["Observation", "Pattern", "Slot", "patterns_of"]

VARIABLE: Looks = ("mixed",)
MANY_WORDS = 24
MOST_WORDS = 200
"""More words are not compared with each other: they are values."""
BEGINNING = 8
"""So many words in one place are values of a variable, whatever they hold."""
SAME_WORDS = 8
"""So many words in one place are values of a variable if they hold the same; deep in a name, half of it."""
MOST_PATTERNS = 120
MOST_BELOW = 60
MOST_VALUES = 2_000
DEEPEST = 3
MOST_COMPARED = 12
RICH = 4
"""Two words that share so much below are compared by the smaller of them: one may have little yet."""
FIXED = 3
"""Below so many names, a number that is the same in all of them is part of the template: `sha256`, `v2`."""


class Observation(NamedTuple):
    """A sampled name, the number of names that it stands for, and what the server says of it."""

    name: bytes
    weight: float
    facts: Facts | None = None


class Slot(NamedTuple):
    """A variable of a pattern: the texts that were seen."""

    values: tuple[bytes, ...]


Piece: TypeAlias = bytes | Slot


class Pattern(NamedTuple):
    """Literal texts and variables in order, and the names that led to it."""

    pieces: tuple[Piece, ...]
    observations: tuple[Observation, ...]

    @property
    def weight(self) -> float:
        return sum(each.weight for each in self.observations)


class _Node:
    __slots__ = ("children", "ended", "texts", "values")

    def __init__(self) -> None:
        self.values: set[_Key] = set()
        """Words below that are values of a variable, as they are below the siblings too."""
        self.children: dict[tuple[bytes, Looks], _Node] = {}
        self.ended: list[Observation] = []
        self.texts: dict[bytes, None] = {}
        """The texts of this segment."""

    def absorb(self, other: _Node) -> None:
        self.ended += other.ended
        self.values |= other.values
        if len(self.texts) < MOST_VALUES:
            self.texts |= other.texts
        for key, child in other.children.items():
            if key in self.children:
                self.children[key].absorb(child)
            else:
                self.children[key] = child

    def everything(self) -> Iterator[Observation]:
        yield from self.ended
        for child in self.children.values():
            yield from child.everything()


_Key: TypeAlias = tuple[bytes, Looks]


def patterns_of(observations: Iterable[Observation]) -> list[Pattern]:
    """Return the patterns of names, those of most names first; at most `MOST_PATTERNS`.

    Among many, one with variables of which a single name was seen is noise, and would only slow proofs down.
    """
    root = _Node()
    for each in observations:
        node = root
        for separator, text in segments_of(each.name):
            looks = looks_of(text)
            node = node.children.setdefault((separator, looks), _Node())
            if len(node.texts) < MOST_VALUES:
                node.texts[text] = None
        node.ended.append(each)
    _merge(root, depth=0)
    found = list(_emitted(root, ()))
    found.sort(key=lambda pattern: -pattern.weight)
    if len(found) > MOST_BELOW:
        found = [each for each in found if len(each.observations) > 1 or _is_literal(each)]
    return found[:MOST_PATTERNS]


def _is_literal(pattern: Pattern) -> bool:
    return all(isinstance(piece, bytes) for piece in pattern.pieces)


def _merge(node: _Node, depth: int) -> None:
    """Join the children that are values of one variable, here and below."""
    for separator in {separator for separator, _ in node.children}:
        _join_words(node, separator, depth)
        _join_ids(node, separator)
    for child in node.children.values():
        _merge(child, depth + 1)


def _join_words(node: _Node, separator: bytes, depth: int) -> None:
    words = {
        key: child
        for key, child in node.children.items()
        if key[0] == separator and _is_word(key) and key[1][0]
    }
    chosen = words.keys() & node.values
    beside_ids = any(key[0] == separator and not _is_word(key) for key in node.children)
    if len(words) <= MOST_WORDS:
        for group in _alike(words, MANY_WORDS if beside_ids else SAME_WORDS, depth):
            chosen |= group
    if len(words) - len(chosen) > MANY_WORDS:
        chosen = set(words)
    chosen = _join_beginnings(node, separator, chosen)
    glued = {key for key in node.children if key[0] == separator and len(key[1]) > 1}
    if len(glued) > MANY_WORDS:
        chosen |= glued
    if chosen:
        _join(node, separator, chosen)


def _join_beginnings(node: _Node, separator: bytes, chosen: set[_Key]) -> set[_Key]:
    """Join words that begin alike: a fixed text with an id glued to it. Return the other words."""
    alike: dict[bytes, set[_Key]] = {}
    for key in chosen:
        alike.setdefault(_word(key)[:BEGINNING], set()).add(key)
    for beginning, group in alike.items():
        if len(beginning) == BEGINNING and len(group) >= SAME_WORDS:
            common = _common([_word(key) for key in group])
            if all(len(_word(key)) > len(common) for key in group):
                chosen = chosen - group
                _join(node, separator, group, (common, *REST))
    return chosen


def _common(words: list[bytes]) -> bytes:
    """Return the text that all words begin with."""
    first, last = min(words), max(words)
    return first[
        : next((place for place, byte in enumerate(first) if last[place : place + 1] != bytes([byte])), None)
    ]


def _word(key: _Key) -> bytes:
    return key[1][0] if isinstance(key[1][0], bytes) else b""


def _alike(words: dict[_Key, _Node], enough: int, depth: int) -> Iterator[set[_Key]]:
    """Yield groups of words that are values of one variable."""
    leaves: dict[object, set[_Key]] = {}
    inner: dict[_Key, dict[_Key, object]] = {}
    for key, child in words.items():
        if child.children:
            inner[key] = {below: _content(grandchild) for below, grandchild in child.children.items()}
        else:
            leaves.setdefault(_content(child), set()).add(key)
    for content, group in leaves.items():
        least = enough if depth < 2 else enough // 2
        if len(group) >= (least if content and depth else MANY_WORDS):
            yield group
    while inner:
        first, below = next(iter(inner.items()))
        group = {key for key, other in inner.items() if _similarity(below, other) >= 0.5}
        group.add(first)
        if _names_a_variable(group, inner, depth):
            yield group
        elif len(group) > 1:
            _mark_values(group, inner, words)
        for key in group:
            del inner[key]


def _mark_values(group: set[_Key], inner: dict[_Key, dict[_Key, object]], words: dict[_Key, _Node]) -> None:
    """Mark the words that are below several of these words, and end names there: they are the values."""
    counts: dict[_Key, int] = {}
    for key in group:
        for below in inner[key]:
            if _is_word(below) and not words[key].children[below].children:
                counts[below] = counts.get(below, 0) + 1
    shared = {below for below, count in counts.items() if count > 1}
    if len(shared) > 1:
        for key in group:
            words[key].values |= shared & inner[key].keys()


def _names_a_variable(group: set[_Key], inner: dict[_Key, dict[_Key, object]], depth: int) -> bool:
    """Return whether words with the same substructure are values; else what is below them may be."""
    if len(group) < 2:
        return False
    below: dict[_Key, set[object]] = {}
    for key in group:
        for each, content in inner[key].items():
            below.setdefault(each, set()).add(content)
    shared_words = [each for each in below if _is_word(each)]
    if len(group) > MANY_WORDS:
        return True
    if len(shared_words) < 2:
        return bool(shared_words) and len(group) >= 3 and depth > 0
    contents = set().union(*below.values())
    if len(contents) > 1 and all(len(kinds) == 1 for kinds in below.values()):
        return True  # what a key holds depends on the word below, so that one is not a value
    if depth == 0 and len(group) < 3:
        return False
    beside_ids = len(shared_words) > 2 and len(below) > len(shared_words)
    return beside_ids or len(group) > len(shared_words)


def _join_ids(node: _Node, separator: bytes) -> None:
    """Join ids of different alphabets, and the words among them, that hold the same."""
    ids = [
        key
        for key, child in node.children.items()
        if key[0] == separator and not _is_word(key) and (len(key[1]) == 1 or len(_fields(child)) > 1)
    ]
    groups: list[set[_Key]] = []
    for key in ids:
        child = node.children[key]
        for group in groups:
            if _same(node.children[next(iter(group))], child):
                group.add(key)
                break
        else:
            groups.append({key})
    for group in groups:
        if len(group) > 1:
            _join(node, separator, group)


def _join(node: _Node, separator: bytes, keys: set[_Key], looks: Looks = VARIABLE) -> None:
    joined = _Node()
    for key in list(node.children):
        if key in keys:
            joined.absorb(node.children.pop(key))
    present = node.children.get((separator, looks))
    if present is not None:
        present.absorb(joined)
    else:
        node.children[separator, looks] = joined


def _is_word(key: _Key) -> bool:
    return len(key[1]) == 1 and isinstance(key[1][0], bytes)


def _same(one: _Node, other: _Node) -> bool:
    """Return whether ids of two alphabets lead to the same: to hashes with the same fields, or by content."""
    if one.ended and other.ended:
        mine, theirs = _fields(one), _fields(other)
        if mine and theirs:
            return len(mine & theirs) * 2 >= min(len(mine), len(theirs))
        if _content(one) != _content(other):
            return False
    if bool(one.children) != bool(other.children) or bool(one.ended) != bool(other.ended):
        return False
    if not one.children:
        return True
    below = [{key: _content(child) for key, child in node.children.items()} for node in (one, other)]
    return _similarity(*below) >= 0.5


def _fields(node: _Node) -> set[bytes]:
    """Return the fields that all hashes here have."""
    facts = [each.facts for each in node.ended[:20] if each.facts is not None]
    if not facts or any(each.redis_type != "hash" or not each.fields for each in facts):
        return set()
    return set.intersection(*(set(each.fields[0]) for each in facts))


def _similarity(one: dict[_Key, object], other: dict[_Key, object]) -> float:
    shared = sum(_agree(one[key], other[key]) for key in one.keys() & other.keys())
    if shared >= RICH:
        return shared / min(len(one), len(other))
    return shared / len(one.keys() | other.keys()) if one or other else 1.0


def _agree(one: object, other: object) -> bool:
    """Return whether contents are of the same type; of what is below, whether some is."""
    if isinstance(one, frozenset) and isinstance(other, frozenset):
        known = dict(other)
        return any(key in known and _agree(content, known[key]) for key, content in one)
    if isinstance(one, tuple) and isinstance(other, tuple):
        return bool(one[0] == other[0])
    return one == other


def _content(node: _Node, depth: int = 0) -> object:
    """Return what the names that end here hold, roughly, or what is below; None if that is not known."""
    facts = [each.facts for each in node.ended[:20] if each.facts is not None]
    if not node.ended and depth < DEEPEST:
        below = list(node.children.items())[:MOST_COMPARED]
        return frozenset((key, _content(child, depth + 1)) for key, child in below)
    if not facts:
        return None
    kinds = {each.redis_type for each in facts}
    if len(kinds) > 1:
        return "several"
    kind = kinds.pop()
    if kind == "hash":
        return kind, tuple(sorted(_fields(node))[:12])
    if kind == "string":
        return kind, rough_form([value for each in facts for value in each.values])
    return kind


def _emitted(node: _Node, pieces: tuple[Piece, ...]) -> Iterator[Pattern]:
    if node.ended:
        yield Pattern(pieces, tuple(node.ended))
    found: list[Pattern] = []
    for (separator, looks), child in node.children.items():
        before = (*pieces, separator) if separator else pieces
        found += _emitted(child, (*before, *_pieces(looks, child)))
    if len(found) > MOST_BELOW and pieces:
        yield _collapsed(node, pieces)
    else:
        yield from found


def _collapsed(node: _Node, pieces: tuple[Piece, ...]) -> Pattern:
    """Return one pattern for a part of the tree without structure: free text after a literal beginning."""
    below = tuple(each for child in node.children.values() for each in child.everything())
    leading = b"".join(takewhile(lambda piece: isinstance(piece, bytes), pieces))  # type: ignore[arg-type]
    separators = {separator for separator, _ in node.children}
    if len(separators) == 1 and all(isinstance(piece, bytes) for piece in pieces):
        leading += separators.pop()
    rest = Slot(tuple(each.name[len(leading) :] for each in below))
    return Pattern((leading, rest) if leading else (rest,), below)


def _pieces(looks: Looks, node: _Node) -> Iterator[Piece]:
    if all(isinstance(part, bytes) for part in looks) or _is_fixed(looks, node):
        yield next(iter(node.texts))
        return
    columns = list(zip(*(values_in(text, looks) for text in node.texts), strict=False))
    place = 0
    for part in looks:
        if isinstance(part, bytes):
            yield part
        else:
            yield Slot(tuple(dict.fromkeys(columns[place])))
            place += 1


def _is_fixed(looks: Looks, node: _Node) -> bool:
    """Return whether a short number is the same in all names, so that it is a version and not an id."""
    if len(node.texts) > 1 or not set(looks) & {"integer"} or "uuid" in looks or "hex" in looks:
        return False
    numbers = values_in(next(iter(node.texts)), looks)
    names = sum(1 for _ in islice(node.everything(), FIXED))
    return names == FIXED and all(len(number) <= FIXED for number in numbers)
