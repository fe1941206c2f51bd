"""Keys that ids may lead to: a template that the id completes, or a collection that has it as a member."""

from __future__ import annotations

import random
import re
from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import NamedTuple

from keywright.keyspace.template import Template, encoded
from keywright.tools.infer.links.paths import Occurrence, Path, hint_type
from keywright.tools.infer.module import KeyDeclaration
from keywright.tools.segments import looks_of

__all__ = ["Candidate", "Source", "Target", "candidates", "random_ids", "targets_of"]

MOST_SOURCES = 600
MOST_PER_SOURCE = 40
ALIKE = 0.9
_NUMBER = re.compile(r"-?[0-9]{1,39}").fullmatch
_HOLDERS = {"set": b"SISMEMBER", "zset": b"ZSCORE", "hash": b"HEXISTS"}


class Source(NamedTuple):
    """A place that may have ids of other keys, and the ids that were seen there."""

    key: KeyDeclaration
    path: Path
    seen: list[Occurrence]

    @property
    def repeats_its_key(self) -> bool:
        """Whether nearly all ids are those in the name of their own key."""
        if self.path.form == "variable":
            return False
        return sum(map(self._is_own, self.seen)) >= ALIKE * len(self.seen)

    def _is_own(self, occurrence: Occurrence) -> bool:
        text, variables = occurrence.text, occurrence.variables
        if text in variables:
            return True
        name = name_of(self.key.declared.template, variables)
        return any(variable in text for variable in variables) and encoded(text) in name

    @property
    def is_numeric(self) -> bool:
        return all(_NUMBER(each.text) for each in self.seen)


class Target(NamedTuple):
    """A key class that ids may name, with the ids in the names that were seen."""

    key: KeyDeclaration
    ids: list[str]
    """The texts of the last variable; of a collection without variables, its members."""

    @property
    def template(self) -> Template:
        return self.key.declared.template


class Candidate(NamedTuple):
    """A source, a target, and which variables of the source's key complete the name."""

    source: Source
    target: Target
    shared: tuple[str, ...]
    """Variables of the source that are the first variables of the target."""
    within: bool
    """Whether the id is a member of the target, not part of its name."""
    skipped: int = 0
    """How many characters of the id are literal text of the target, as in `t3_` of `post:t3_<post>`."""

    def command(self, occurrence: Occurrence) -> tuple[bytes, bytes, tuple[bytes, ...]]:
        """Return the verb, the name and the operands that ask whether an id leads there."""
        template, own = self.target.template, self.source.key.declared.template.variables
        texts = [occurrence.variables[own.index(name)] for name in self.shared]
        if not self.within:
            texts.append(occurrence.text[self.skipped :])
        name = name_of(template, texts)
        if not self.within:
            return b"EXISTS", name, ()
        return _HOLDERS[self.target.key.redis_type], name, (encoded(occurrence.text),)

    @property
    def words(self) -> int:
        """How many words the names of source and target have in common, if they are two keys."""
        if self.source.key is self.target.key:
            return 0
        path = self.source.path
        mine = _words(path.name) if path.attribute else set()
        if not path.attribute or path.form == "variable":
            mine = mine | _words(self.source.key.declared.words[-1] if self.source.key.declared.words else "")
        return len(mine & _words(" ".join(self.target.key.declared.words)))


def name_of(template: Template, texts: Sequence[str]) -> bytes:
    """Return the name with these texts of variables, in their order."""
    remaining = iter(texts)
    return encoded(
        "".join(next(remaining) if part.is_variable else part.text for part in template.marked_parts)
    )


def targets_of(keys: Sequence[KeyDeclaration]) -> list[Target]:
    """Return what ids may lead to, each with some of the ids that were seen."""
    found = []
    for key in keys:
        template = key.declared.template
        if template.optional or len(template.variables) > 2:
            continue
        if template.variables:
            ids = [
                texts[-1]
                for each in key.declared.observations[:200]
                if (texts := template.texts(each.name.decode("utf-8", "surrogateescape"))) is not None
            ]
        else:
            ids = _members(key)
        if ids:
            found.append(Target(key, ids))
    return found


def _members(key: KeyDeclaration) -> list[str]:
    found: list[bytes] = []
    for each in key.declared.observations[:1]:
        if each.facts is not None and not key.kind.startswith("Record"):
            found += [*each.facts.values, *(name for fields in each.facts.fields for name in fields)]
    return [value.decode("utf-8", "replace") for value in found[:200]]


def candidates(sources: Sequence[Source], targets: Sequence[Target]) -> Iterator[Candidate]:
    """Yield targets whose ids look like those of a source, a bounded number for each source."""
    looks = {id(target): _looks(target.ids) for target in targets}
    for source in sources[:MOST_SOURCES]:
        texts = [each.text for each in source.seen]
        begin = _common_beginning(texts)
        mine = _looks(texts)
        found: list[Candidate] = []
        for target in targets:
            skipped = _overlap(begin, target.template)
            shortened = _looks([text[skipped:] for text in texts]) if skipped else mine
            for candidate in _joined(source, target):
                if candidate.within:
                    if target.template.variables or _alike(mine, looks[id(target)]):
                        found.append(candidate)
                elif _alike(shortened, looks[id(target)]) and _fits(target, texts, skipped):
                    found.append(candidate._replace(skipped=skipped))
        found.sort(key=lambda each: (-len(each.shared), -each.words, len(each.target.template.source)))
        yield from found[:MOST_PER_SOURCE]


def _joined(source: Source, target: Target) -> Iterator[Candidate]:
    """Yield the ways in which an id of a source may lead to a target."""
    own, path = source.key.declared.variables, source.path
    theirs = target.key.declared.variables
    same = target.key is source.key
    if path.form == "variable":
        # Only what a name extends, as `user:<user>:posts` does with `user:<user>`, or the last of several.
        extended = source.key.declared.template.source.startswith(f"{target.template.source}:")
        last = len(own) > 1 and list(own)[-1] == path.name and target.template.source.endswith(">")
        if len(theirs) == 1 and ((extended and next(iter(own)) == path.name) or (last and not same)):
            yield Candidate(source, target, (), within=False)
        return
    if len(theirs) == 1:
        yield Candidate(source, target, (), within=False)
    first = next((hint_type(each.hint) for each in theirs.values()), None)
    for name in [name for name in own if hint_type(own[name].hint) == first]:
        if len(theirs) == 2:
            yield Candidate(source, target, (name,), within=False)
        elif len(theirs) == 1 and not same and target.key.kind.startswith("Map"):
            yield Candidate(source, target, (name,), within=True)
    if not theirs and not same and target.key.redis_type in _HOLDERS:
        yield Candidate(source, target, (), within=True)


def _common_beginning(texts: Sequence[str]) -> str:
    low, high = min(texts), max(texts)
    length = next((n for n, (one, other) in enumerate(zip(low, high, strict=False)) if one != other), None)
    return low[:length]


def _overlap(begin: str, template: Template) -> int:
    """Return how much of the common beginning of ids is the literal text before the last variable."""
    before = ""
    for part, following in pairwise(template.marked_parts):
        if following.is_variable:
            before = "" if part.is_variable else part.text
    lengths = range(min(len(begin), len(before)), 1, -1)
    return next((length for length in lengths if before.endswith(begin[:length])), 0)


def _fits(target: Target, texts: Sequence[str], skipped: int) -> bool:
    """Return whether nearly all ids are texts that the last variable of the target may have."""
    if not target.template.variables:
        return False
    alphabet = list(target.template.alphabets.values())[-1]
    fitting = 0
    for text in texts:
        try:
            alphabet.parse(text[skipped:])
        except ValueError:
            continue
        fitting += 1
    return fitting >= ALIKE * len(texts)


class _Looks(NamedTuple):
    classes: frozenset[str]
    lengths: range
    low: int
    high: int


def _looks(texts: Sequence[str]) -> _Looks:
    classes, numbers = set(), []
    for text in texts:
        looks = looks_of(text.encode("utf-8", "surrogateescape"))
        classes.add("+".join("word" if isinstance(part, bytes) else part for part in looks))
        if _NUMBER(text):
            numbers.append(int(text))
    lengths = [len(text) for text in texts] or [0]
    whole = len(numbers) == len(texts)
    low, high = (min(numbers), max(numbers)) if whole and numbers else (0, 0)
    return _Looks(frozenset(classes), range(min(lengths), max(lengths) + 1), low, high)


def _alike(one: _Looks, other: _Looks) -> bool:
    if not one.classes & other.classes:
        return False
    if one.high and other.high:
        return one.low <= other.high * 10 and other.low <= one.high * 10
    return min(one.lengths.stop, other.lengths.stop) + 2 > max(one.lengths.start, other.lengths.start)


def random_ids(source: Source, noise: random.Random, count: int) -> list[Occurrence]:
    """Return ids of the same range, or of the same form: what they lead to is chance."""
    numbers = [int(each.text) for each in source.seen] if source.is_numeric else []
    made = []
    for _ in range(count):
        occurrence = noise.choice(source.seen)
        if numbers:
            made.append(occurrence._replace(text=str(noise.randint(min(numbers), max(numbers)))))
            continue
        text = _same_form(occurrence.text, noise)
        if text != occurrence.text:
            made.append(occurrence._replace(text=text))
    return made


def _same_form(text: str, noise: random.Random) -> str:
    """Return a text with other characters of the same classes."""
    return "".join(
        noise.choice("0123456789")
        if char.isdecimal()
        else noise.choice("abcdef" if char in "abcdef" else "ghijklmnopqrstuvwxyz")
        if char.islower()
        else noise.choice("ABCDEFGHIJKLMNOPQRSTUVWXYZ")
        if char.isupper()
        else char
        for char in text
    )


def _words(text: str) -> set[str]:
    """Return the words of a name in the singular, without those that say nothing."""
    found = re.findall(r"[A-Z]?[a-z]+|[A-Z]+|[0-9]+", text)
    words = {word.lower().rstrip("s") for word in found}
    return words - {"id", "key", "value", "list", "set", "of", ""}
