"""The tree of sampled names: which segments are words of the program, and which are variables.

Ids of one alphabet are one variable from the start. Words are compared by what is below them: siblings with
the same substructure are values of one variable, siblings that hold different things are words.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Set
from itertools import islice, takewhile
from typing import TypeAlias

from keywright.tools.infer.contents import content_of, fields_of, members_of
from keywright.tools.infer.families import families_of
from keywright.tools.infer.patterns import Observation, Pattern, Piece, Slot
from keywright.tools.infer.words import REPEATED, Words
from keywright.tools.segments import REST, Looks, looks_of, rest_of, segments_of, values_in

__all__ = ["patterns_of"]

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
DOMINANT = 0.7
"""The share of names with an id, at least, beside which other texts are ids too."""
RICH = 4
"""Two words that share so much below are compared by the smaller of them: one may have little yet."""
FIXED = 3
"""Below so many names, a short number that all of them have is part of the template: `sha256`, `v2`."""


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
_SHORT_ID = re.compile(rb"(.*[a-z])(?:0|[1-9][0-9]?)")


def patterns_of(observations: Iterable[Observation], words: Words | None = None) -> list[Pattern]:
    """Return the patterns of names, those of most names first; at most `MOST_PATTERNS`.

    Literal texts are those that `words` shows; others are values of variables, or in no pattern.
    Among many, one with variables of which a single name was seen is noise, and would only slow proofs down.
    """
    every = list(observations)
    words = words or Words()
    merger = _Merger(words)
    root = _tree(every)
    merger.learn(root)
    found = families_of(every, words)
    if found:
        in_families = {each.name for pattern in found for each in pattern.observations}
        root = _tree(each for each in every if each.name not in in_families)
    merger.merge(root, depth=0)
    found += _emitted(root, ())
    found.sort(key=lambda pattern: -pattern.weight)
    if len(found) > MOST_BELOW:
        found = [each for each in found if len(each.observations) > 1 or _is_literal(each)]
    return found[:MOST_PATTERNS]


def _tree(observations: Iterable[Observation]) -> _Node:
    root = _Node()
    for each in observations:
        node = root
        for separator, text in segments_of(each.name):
            looks = looks_of(text)
            node = node.children.setdefault((separator, looks), _Node())
            if len(node.texts) < MOST_VALUES:
                node.texts[text] = None
        node.ended.append(each)
    return root


def _is_literal(pattern: Pattern) -> bool:
    return all(isinstance(piece, bytes) for piece in pattern.pieces)


class _Merger:
    """Joins the children of nodes that are values of one variable, and those that must not be shown."""

    def __init__(self, words: Words) -> None:
        self._words = words

    def learn(self, root: _Node) -> None:
        """Learn the words that several names with ids begin with."""
        for key, child in root.children.items():
            glued = len(key[1]) > 1
            if _names_below(child) >= REPEATED and (glued or _has_ids(child)):
                for part in key[1]:
                    if isinstance(part, bytes) and part:
                        self._words.learn(part)

    def merge(self, node: _Node, depth: int) -> None:
        """Join the children here and below."""
        for separator in {separator for separator, _ in node.children}:
            _join_short_ids(node, separator)
            _mark_recurring(node, separator)
            _join_words(node, separator, depth, self._words)
            _join_texts(node, separator, depth)
            self._conceal(node, separator, depth)
            _join_ids(node, separator)
        for child in node.children.values():
            self.merge(child, depth + 1)

    def _conceal(self, node: _Node, separator: bytes, depth: int) -> None:
        """Make a variable of texts that are not shown. At the beginning of names, a few are left out."""
        hidden = {
            key: child
            for key, child in node.children.items()
            if key[0] == separator and not self._is_shown(key, node, depth)
        }
        if not hidden:
            return
        if depth == 0 and sum(_names_below(child) for child in hidden.values()) < REPEATED:
            twins = _holding_the_same(hidden, node, separator)
            for key in hidden.keys() - twins:
                del node.children[key]
            if twins:
                _join(node, separator, twins)
        else:
            _join(node, separator, set(hidden))

    def _is_shown(self, key: _Key, node: _Node, depth: int) -> bool:
        texts = [part for part in key[1] if isinstance(part, bytes) and part]
        if all(map(self._words.is_known, texts)):
            return True
        child = node.children[key]
        if depth and _is_word(key) and not child.children and self._has_twin(key, child, node):
            return False
        if depth and _is_word(key) and not _has_ids(child):
            return False
        return all(self._words.is_shown(text, _names_below(child)) for text in texts)

    def _has_twin(self, key: _Key, child: _Node, node: _Node) -> bool:
        """Return whether another text here, which is not known either, holds the same."""
        content = _content(child)
        return any(
            other != key
            and other[0] == key[0]
            and _is_word(other)
            and not sibling.children
            and not self._words.is_known(_word(other))
            and _content(sibling) == content
            for other, sibling in islice(node.children.items(), MOST_WORDS)
        )


def _holding_the_same(hidden: dict[_Key, _Node], node: _Node, separator: bytes) -> set[_Key]:
    """Return names that are not shown, and those beside them that hold documents with the same members."""
    leaves = {
        key: members
        for key, child in islice(node.children.items(), MOST_WORDS)
        if key[0] == separator and _is_word(key) and not child.children
        if (members := members_of(child.ended))
    }
    found: set[_Key] = set()
    for key in hidden.keys() & leaves.keys():
        alike = {other for other in leaves.keys() - hidden.keys() if leaves[other] == leaves[key]}
        found |= {key, *alike} if alike else set()
    return found


def _names_below(node: _Node) -> int:
    return sum(1 for _ in islice(node.everything(), REPEATED))


def _has_ids(node: _Node) -> bool:
    """Return whether a node holds several names, or has ids below it, so that it is more than a value."""
    if not node.children:
        return len(node.ended) > 1
    return any(not _is_word(key) for key in node.children)


def _join_short_ids(node: _Node, separator: bytes) -> None:
    """Join `b7` and `b93`, which look like words, with the ids beside them that hold the same: `b104`."""
    glued = {
        key[1][0]: child
        for key, child in node.children.items()
        if key[0] == separator and len(key[1]) == 2 and key[1][1] == "integer"
    }
    if not glued:
        return
    for key in [key for key in node.children if key[0] == separator and _is_word(key)]:
        found = _SHORT_ID.fullmatch(_word(key))
        long = glued.get(found[1]) if found else None
        if long is not None and _same(long, node.children[key]):
            short = node.children.pop(key)
            short.texts.clear()  # the ids of three digits or more say what the variable is
            long.absorb(short)


def _join_words(node: _Node, separator: bytes, depth: int, known: Words) -> None:
    words = {
        key: child
        for key, child in node.children.items()
        if key[0] == separator and _is_word(key) and key[1][0]
    }
    chosen = words.keys() & node.values
    beside_ids = any(key[0] == separator and not _is_word(key) for key in node.children)
    if len(words) <= MOST_WORDS:
        for group in _alike(words, MANY_WORDS if beside_ids else SAME_WORDS, depth, known):
            chosen |= group
    rare = {key for key, child in words.items() if key not in chosen and not _leads(key, child, known)}
    if len(rare) > MANY_WORDS:
        chosen |= rare
    chosen = _join_beginnings(node, separator, chosen)
    glued = {key for key in node.children if key[0] == separator and len(key[1]) > 1}
    if len(glued) > MANY_WORDS:
        chosen |= glued
    if chosen:
        _join(node, separator, chosen)


def _leads(key: _Key, child: _Node, known: Words) -> bool:
    """Return whether a word among many is one of a program, before several names."""
    return bool(child.children) and known.is_known(_word(key)) and _names_below(child) >= REPEATED


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


def _alike(words: dict[_Key, _Node], enough: int, depth: int, known: Words) -> Iterator[set[_Key]]:
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
        strange = not any(known.is_known(_word(key)) for key in group)
        if _names_a_variable(group, inner, depth, strange=strange):
            yield group
        elif len(group) > 1:
            _mark_values(group, inner, words)
        for key in group:
            del inner[key]


def _mark_recurring(node: _Node, separator: bytes) -> None:
    """Mark words below these words as values, if what a key holds follows from the word above them.

    In `waiting:mail`, a list, and `planned:mail`, a sorted set, beside the same with `video`, the last words
    are values. In `user:count` and `user:index` beside `post:count` and `post:index` they are not.
    """
    above = {
        key: child
        for key, child in islice(node.children.items(), MOST_WORDS)
        if key[0] == separator and _is_word(key)
    }
    counts: dict[_Key, int] = {}
    for child in above.values():
        for below in child.children:
            if _is_word(below):
                counts[below] = counts.get(below, 0) + 1
    shared = {below for below, count in counts.items() if count > 1}
    if not 1 < len(shared) <= MOST_WORDS:
        return
    contents: dict[_Key, object] = {}
    alone: set[_Key] = set()
    for key, child in above.items():
        held = [_content(child.children[below]) for below in sorted(shared & child.children.keys())]
        if len(held) > 1 and all(_agree_fully(held[0], each) for each in held[1:]):
            contents[key] = held[0]
        elif len(held) == 1:
            alone.add(key)
    first = next(iter(contents.values()), None)
    concerned = sum(len(shared & each.children.keys()) > 1 for each in above.values())
    if len(contents) * 2 > concerned and any(not _agree_fully(first, each) for each in contents.values()):
        for key in (*contents, *alone):
            above[key].values |= shared & above[key].children.keys()


def _agree_fully(one: object, other: object) -> bool:
    """Return whether two contents are the same; of what is below, whether some is."""
    if isinstance(one, frozenset) and isinstance(other, frozenset):
        return _agree(one, other)
    return one == other


def _join_texts(node: _Node, separator: bytes, depth: int) -> None:
    """Join ids with longer texts in their place that hold the same: `result:17` and `result:cron:17`.

    Most names there must have an id. Words that the same ids end are left: `result:<uuid>`, `owner:<uuid>`.
    """
    here = {key: child for key, child in node.children.items() if key[0] == separator}
    ids = {
        key: child for key, child in here.items() if not _is_word(key) and child.ended and not child.children
    }
    contents = {_strong_content(child) for child in ids.values()}
    if not depth or len(contents) != 1 or None in contents:
        return
    content = contents.pop()
    joined = {
        key
        for key, child in here.items()
        if key not in ids
        and child.children
        and _names_below(child) >= REPEATED
        and not any(
            below[1] == each[1] != ("integer",) and end.ended
            for below, end in child.children.items()
            for each in ids
        )
        and not any(_is_word(below) and not each.children for below, each in child.children.items())
        and all(found == content for found in _ends(child))
    }
    weight = sum(each.weight for key in ids for each in here[key].ended)
    others = sum(each.weight for key in joined for each in here[key].everything())
    if joined and weight >= DOMINANT * (weight + others):
        whole = _Node()
        for key in (*joined, *ids):
            for each in node.children.pop(key).everything():
                whole.ended.append(each)
                if len(whole.texts) < MOST_VALUES:
                    whole.texts[rest_of(each.name, depth)] = None
        node.children[separator, VARIABLE] = whole


def _ends(node: _Node) -> Iterator[object]:
    """Yield the contents of all nodes at which names end."""
    if node.ended:
        yield _strong_content(node)
    for child in node.children.values():
        yield from _ends(child)


def _strong_content(node: _Node) -> object:
    """Return the content of a node if it says more than that keys are texts, numbers or sets; else None."""
    fields = _fields(node)
    if len(fields) > 1:
        return frozenset(fields)
    found = _content(node)
    weak = ("", "str", "int", "bytes", "float", "datetime", "bool")
    if not isinstance(found, tuple) or found[0] == "hash":
        return None
    return found if found[0] == "list" or found[1] not in weak else None


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


def _names_a_variable(
    group: set[_Key], inner: dict[_Key, dict[_Key, object]], depth: int, *, strange: bool
) -> bool:
    """Return whether words with the same substructure are values; else what is below them may be.

    They are `strange` if none of them is a word of programs.
    """
    if len(group) < 2:
        return False
    if strange and (depth > 0 or any(_is_word(each) for key in group for each in inner[key])):
        return True
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
    by_word = [{each for each in inner[key].values() if not isinstance(each, frozenset)} for key in group]
    if all(len(each) == 1 for each in by_word) and len(set().union(*by_word)) > 1:
        return False  # what a key holds depends on these words
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
    """Return whether ids of two alphabets lead to the same: to the same fields or members, or by content."""
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


def _fields(node: _Node) -> Set[object]:
    """Return the fields that all hashes here have, or the members of all documents."""
    found = members_of(node.ended)
    return fields_of(node.ended) or (found[1] if found is not None else set())


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
    if not node.ended and depth < DEEPEST:
        below = list(node.children.items())[:MOST_COMPARED]
        return frozenset((key, _content(child, depth + 1)) for key, child in below)
    return content_of(node.ended)


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
    before = next((part[-1:] for part in looks if isinstance(part, bytes)), b"")
    longest = FIXED if before.isalpha() else 1
    return names == FIXED and all(len(number) <= longest for number in numbers)
