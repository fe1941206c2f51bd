"""The name of a key as a template: literal text, ``<variables>``, and braces around the hash tag.

Owns names: writing, reading, matching and comparing them. What is stored under a name is the key class's.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from typing import NamedTuple

from keywright.errors import DeclarationError, UsageError, VariableError, excerpt
from keywright.keyspace.alphabets import Alphabet, Rest
from keywright.keyspace.languages import automaton
from keywright.keyspace.languages.automaton import Language, concatenation, literal

__all__ = ["Part", "Template"]

_TOKEN = re.compile(
    r"<(?P<variable>[A-Za-z_][A-Za-z0-9_]*)>|(?P<brace>[{}])|(?P<text>[^<>{}]+)|(?P<stray>[<>])"
)
_GLOB_SPECIAL = re.compile(r"([*?\[\]\\^])")
_BRACES = 1 << ord("{") | 1 << ord("}")
_NO_VALUES: Mapping[str, object] = {}


class Part(NamedTuple):
    """Literal text of a template, braces included, or the name of a variable."""

    text: str
    is_variable: bool


class Template:
    """A key template. Raise DeclarationError if it is malformed.

    That two templates share no name, and that a name has one reading, is not checked here but asked with
    ``collision`` and ``two_readings``. ``parse`` is exact for every template without two readings.
    """

    def __init__(self, source: str, alphabets: Mapping[str, Alphabet[object]]) -> None:
        self.source = source
        self.marked_parts: tuple[Part, ...] = tuple(_merged(_tokens(source)))
        self.parts: tuple[str, ...] = tuple(part.text for part in self.marked_parts)
        self.variables: tuple[str, ...] = tuple(part.text for part in self.marked_parts if part.is_variable)
        _check_variables(source, self.variables, alphabets)
        self.alphabets: dict[str, Alphabet[object]] = {name: alphabets[name] for name in self.variables}
        _check_rest(source, self.marked_parts, self.alphabets)
        self.marked_tag: tuple[Part, ...] | None = _tag(source, self.alphabets)
        self._pattern_match = re.compile("".join(map(self._pattern, self.marked_parts))).fullmatch
        self.backtracks = any(map(self._overlap, self.marked_parts, self.marked_parts[1:]))
        """Whether a variable may hold the text that ends it: a regular expression would try every split."""
        self._readers = tuple(alphabet.read for alphabet in self.alphabets.values())

    @property
    def tag(self) -> tuple[str, ...] | None:
        """The parts between the braces, or None without braces."""
        return None if self.marked_tag is None else tuple(part.text for part in self.marked_tag)

    @property
    def tag_variables(self) -> tuple[str, ...]:
        return tuple(part.text for part in self.marked_tag or () if part.is_variable)

    @property
    def literal_prefix(self) -> bytes:
        """The text before the first variable."""
        first = self.marked_parts[0]
        return b"" if first.is_variable else first.text.encode()

    @cached_property
    def doubtful(self) -> list[tuple[int, Alphabet[object]]]:
        """The variables, counted from 1, whose texts may match the pattern and still be invalid."""
        alphabets = enumerate(self.alphabets.values(), 1)
        return [(number, alphabet) for number, alphabet in alphabets if not alphabet.pattern_decides]

    @cached_property
    def segments(self) -> list[Language]:
        """Literal, variable, literal, …: variable ``n`` is at ``2 * n + 1``; a literal may be empty."""
        segments, text = [], ""
        for part in self.marked_parts:
            if part.is_variable:
                segments += [literal(text.encode()), self.alphabets[part.text].language]
                text = ""
            else:
                text = part.text
        return [*segments, literal(text.encode())]

    @property
    def slot_fixed(self) -> bool:
        """Whether all keys of the template live in one slot, because the hashed part has no variable."""
        return not any(part.is_variable for part in self._hashed)

    def render(self, values: Sequence[object]) -> bytes:
        """Return the name for values in the order of ``variables``. Raise VariableError if one is invalid."""
        if len(values) != len(self.variables):
            raise UsageError(f"{self.source!r} has {len(self.variables)} variables, not {len(values)}.")
        texts = {name: self._text(name, value) for name, value in zip(self.variables, values, strict=True)}
        return "".join(
            texts[part] if is_variable else part for part, is_variable in self.marked_parts
        ).encode()

    def parse(self, name: bytes) -> tuple[object, ...] | None:
        """Return the values of a name, in the order of ``variables``, or None if it does not match."""
        try:
            found = self.texts(name.decode())
        except (AttributeError, TypeError) as error:
            raise not_a_name(name) from error
        except UnicodeDecodeError:
            return None
        try:
            if found is None:
                return None
            return tuple([read(text) for read, text in zip(self._readers, found, strict=True)])
        except ValueError:
            return None

    def texts(self, name: str) -> tuple[str, ...] | None:
        """Return the texts of the variables in a name, or None if it does not match. It takes linear time."""
        if not self.backtracks:
            found = self._pattern_match(name)
            return None if found is None else found.groups()
        pieces = automaton.split(self.segments, name.encode())
        if pieces is None:
            return None
        texts = tuple(piece.decode() for piece in pieces[1::2])
        patterns = (alphabet.pattern for alphabet in self.alphabets.values())
        # The automaton takes a widely counted repetition for an unlimited one.
        matches = all(re.fullmatch(pattern, text) for pattern, text in zip(patterns, texts, strict=True))
        return texts if matches else None

    def glob(self, values: Mapping[str, object] = _NO_VALUES) -> bytes:
        """Return a SCAN MATCH pattern for the names in which these variables have these values.

        It may match names of other templates as well, since ``*`` matches anything: parse the names found.
        """
        if unknown := values.keys() - self.alphabets.keys():
            raise UsageError(f"{self.source!r} has no variable <{min(unknown)}>. It has {self._listing}.")
        pieces = []
        for part, is_variable in self.marked_parts:
            if not is_variable or part in values:
                text = self._text(part, values[part]) if is_variable else part
                pieces.append(_GLOB_SPECIAL.sub(r"\\\1", text))
            elif pieces[-1:] != ["*"]:
                pieces.append("*")
        return "".join(pieces).encode()

    def collision(self, other: Template, lead: bytes = b"", other_lead: bytes = b"") -> bytes | None:
        """Return a shortest name that both templates match; None proves that there is none.

        The names of each template begin with its lead: the prefix that its keyspace is bound to.
        """
        mine, theirs = lead + self.literal_prefix, other_lead + other.literal_prefix
        if not (mine.startswith(theirs) or theirs.startswith(mine)):
            return None
        return automaton.shortest_common(
            concatenation([literal(lead), *self.segments]),
            concatenation([literal(other_lead), *other.segments]),
        )

    def two_readings(self) -> tuple[bytes, dict[str, str], dict[str, str]] | None:
        """Return an ambiguous name with both readings of its variables; None proves that there is none."""
        found = automaton.ambiguity(self.segments)
        if found is None:
            return None
        name, first, second = found
        return name, self._reading(first), self._reading(second)

    def same_slot_as(self, other: Template, shared: Mapping[str, str]) -> bool:
        """Return whether keys of both templates provably share a slot when the ``shared`` variables agree.

        ``shared`` maps variables of this template to those of the other. What is hashed is compared: the tag,
        or the whole name without one. A bound prefix is part of a whole name, but never of a tag, so a
        template with a tag and one without keep company only as long as no prefix is bound.
        """
        if len(self._hashed) != len(other._hashed):
            return False
        return all(
            self._agrees(mine, other, theirs, shared)
            for mine, theirs in zip(self._hashed, other._hashed, strict=True)
        )

    def __repr__(self) -> str:
        return f"Template({self.source!r})"

    @property
    def _hashed(self) -> tuple[Part, ...]:
        return self.marked_parts if self.marked_tag is None else self.marked_tag

    @property
    def _listing(self) -> str:
        return ", ".join(f"<{name}>" for name in self.variables) or "none"

    def _pattern(self, part: Part) -> str:
        if part.is_variable:
            return f"(?P<{part.text}>{self.alphabets[part.text].pattern})"
        return re.escape(part.text)

    def _overlap(self, part: Part, following: Part) -> bool:
        if not part.is_variable:
            return False
        used = automaton.bytes_used(self.alphabets[part.text].language)
        return following.is_variable or bool(used >> following.text.encode()[0] & 1)

    def _text(self, name: str, value: object) -> str:
        alphabet = self.alphabets[name]
        try:
            return alphabet.render(value)
        except ValueError as error:
            raise VariableError(self.source, name, alphabet.expected, value, alphabet.python_type) from error

    def _reading(self, split: Sequence[bytes]) -> dict[str, str]:
        # A split of valid UTF-8 is valid UTF-8: every segment is a language of whole characters.
        return {name: split[2 * number + 1].decode() for number, name in enumerate(self.variables)}

    def _agrees(self, mine: Part, other: Template, theirs: Part, shared: Mapping[str, str]) -> bool:
        if not mine.is_variable or not theirs.is_variable:
            return mine == theirs
        if shared.get(mine.text) != theirs.text:
            return False
        a, b = self.alphabets[mine.text], other.alphabets[theirs.text]
        # Equal values have equal texts if the alphabet is the same, or if both write a value as it is.
        return a == b or (a.inline("v", "m") is not None and b.inline("v", "m") is not None)


def not_a_name(found: object) -> UsageError:
    """Return the error for something else in the place of a key name."""
    remedy = f"Pass {found.encode()!r}." if isinstance(found, str) else "Pass the name as Redis has it."
    return UsageError(f"a key name is bytes, got {excerpt(found)}. {remedy}")


def _tokens(source: str) -> Iterator[Part]:
    if not source:
        raise DeclarationError(repr(source), "a template cannot be empty", "Name the key.")
    for token in _TOKEN.finditer(source):
        if token["stray"]:
            raise DeclarationError(source, f"stray {token['stray']!r}", "Write a variable as <name>.")
        if token["variable"]:
            yield Part(token["variable"], is_variable=True)
            continue
        for char in token[0]:
            if char.isspace() or not char.isprintable():
                raise DeclarationError(
                    source, f"{char!r} in a key name", "Use printable characters and no spaces."
                )
        yield Part(token[0], is_variable=False)


def _merged(parts: Iterator[Part]) -> Iterator[Part]:
    text = ""
    for part in parts:
        if not part.is_variable:
            text += part.text
            continue
        if text:
            yield Part(text, is_variable=False)
        yield part
        text = ""
    if text:
        yield Part(text, is_variable=False)


def _check_variables(source: str, used: Sequence[str], alphabets: Mapping[str, Alphabet[object]]) -> None:
    for name in used:
        if name not in alphabets:
            raise DeclarationError(source, f"<{name}> has no type", f"Annotate {name!r} in the class.")
        if used.count(name) > 1:
            raise DeclarationError(
                source, f"<{name}> stands there twice", "Give each place its own variable."
            )
        if automaton.bytes_used(alphabets[name].language) & _BRACES:
            raise DeclarationError(source, f"<{name}> may hold braces", "Use an alphabet without { and }.")
    if unused := [name for name in alphabets if name not in used]:
        raise DeclarationError(
            source, f"<{unused[0]}> is not in the template", "Add it, or drop the annotation."
        )


def _check_rest(source: str, parts: Sequence[Part], alphabets: Mapping[str, Alphabet[object]]) -> None:
    for part in parts[:-1]:
        if part.is_variable and isinstance(alphabets[part.text], Rest):
            raise DeclarationError(
                source,
                f"<{part.text}> takes the rest of the name, but is not last",
                "Move it, or use FreeText.",
            )


def _tag(source: str, alphabets: Mapping[str, Alphabet[object]]) -> tuple[Part, ...] | None:
    braces = re.sub(r"[^{}]", "", source)
    if not braces:
        return None
    if braces != "{}":
        raise DeclarationError(
            source, "braces mark the hash tag, and a name has one", "Write one { and one } after it."
        )
    inside = source[source.index("{") + 1 : source.index("}")]
    tag = tuple(_merged(_tokens(inside))) if inside else ()
    hashed = concatenation(
        alphabets[part.text].language if part.is_variable else literal(part.text.encode()) for part in tag
    )
    # Redis does not take an empty pair for a tag: it would hash the whole name.
    if automaton.accepts(hashed, b""):
        raise DeclarationError(
            source, "the hash tag may be empty", "Put what decides the slot between the braces."
        )
    return tag
