"""The name of a key as a template: literal text, ``<variables>``, and braces around the hash tag.

Owns names: writing, reading, matching and comparing them. What is stored under a name is the key class's.
"""

from __future__ import annotations

import keyword
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from itertools import chain, combinations, groupby
from typing import Any, NamedTuple, TypeAlias

from keywright.errors import DeclarationError, UsageError, VariableError, excerpt
from keywright.keyspace.alphabets import Alphabet, Rest
from keywright.keyspace.languages import automaton
from keywright.keyspace.languages.automaton import Language, concatenation, literal

__all__ = ["Part", "Template", "encoded"]

Reading: TypeAlias = dict[str, str | None]

_TOKEN = re.compile(
    r"<(?P<variable>[A-Za-z_][A-Za-z0-9_]*)>|\\x(?P<byte>[0-9A-Fa-f]{2})|\\(?P<escaped>[^A-Za-z0-9])"
    r"|(?P<mark>[{}\[\]])|(?P<text>[^<>{}\[\]\\]+)|(?P<stray>[<>\\])",
    re.DOTALL,
)
_GLOB_SPECIAL = re.compile(r"([*?\[\]\\^])")
_OPENING, _CLOSING = 1 << ord("{"), 1 << ord("}")
_NO_VALUES: Mapping[str, object] = {}


class Part(NamedTuple):
    """Literal text of a template, braces included, or the name of a variable."""

    text: str
    is_variable: bool
    group: int = 0
    """The number of the optional segment that it belongs to, from 1; 0 for none."""


class Template:
    """A key template. Raise DeclarationError if it is malformed.

    ``[…]`` encloses an optional segment: text with variables that are None where it is left out. A backslash
    takes the meaning from ``<>{}[]``; ``\\x06`` is the byte 6, and ``\\x20`` a space.

    That two templates share no name, and that a name has one reading, is not checked here but asked with
    ``collision`` and ``two_readings``. ``parse`` is exact for every template without two readings.
    """

    def __init__(self, source: str, alphabets: Mapping[str, Alphabet[object]]) -> None:
        self.source = source
        tokens = list(_tokens(source))
        self.marked_parts: tuple[Part, ...] = tuple(_merged(tokens))
        self.parts: tuple[str, ...] = tuple(part.text for part in self.marked_parts)
        self.variables: tuple[str, ...] = tuple(part.text for part in self.marked_parts if part.is_variable)
        _check_variables(source, self.variables, alphabets)
        self.alphabets: dict[str, Alphabet[object]] = {name: alphabets[name] for name in self.variables}
        _check_rest(source, self.marked_parts, self.alphabets)
        self.optional: frozenset[str] = frozenset(
            part.text for part in self.marked_parts if part.is_variable and part.group
        )
        """The variables of optional segments."""
        self.marked_tag: tuple[Part, ...] | None = _tag(source, tokens, self.alphabets)
        texts = (part.text for part in self.marked_parts if not part.is_variable)
        self.is_text = all(each.is_text for each in self.alphabets.values()) and not _has_bytes(
            "".join(texts)
        )
        """Whether every name is UTF-8."""
        self._errors = "strict" if self.is_text else "surrogateescape"
        self._pattern_match = re.compile(self.pattern()).fullmatch
        self.backtracks = any(map(self._overlaps, range(len(self.marked_parts))))
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
        """The text before the first variable or optional segment."""
        first = self.marked_parts[0]
        return b"" if first.is_variable or first.group else encoded(first.text)

    @cached_property
    def doubtful(self) -> list[tuple[int, Alphabet[object]]]:
        """The variables, counted from 1, whose texts may match the pattern and still be invalid."""
        alphabets = enumerate(self.alphabets.values(), 1)
        return [(number, alphabet) for number, alphabet in alphabets if not alphabet.pattern_decides]

    @cached_property
    def segments(self) -> list[automaton.Segment]:
        """A language for each part; those of an optional segment together, as a tuple."""
        languages = (self._language(part) for part in self.marked_parts)
        pairs = zip(self.marked_parts, languages, strict=True)
        segments: list[automaton.Segment] = []
        for group, together in groupby(pairs, key=lambda pair: pair[0].group):
            inner = tuple(language for _, language in together)
            segments += [inner] if group else inner
        return segments

    @cached_property
    def language(self) -> Language:
        """Every name."""
        return concatenation(
            concatenation(each).repeat(0, 1) if isinstance(each, tuple) else each for each in self.segments
        )

    @property
    def slot_fixed(self) -> bool:
        """Whether all keys of the template live in one slot, because the hashed part has no variable."""
        return self.slot_known and not any(part.is_variable or part.group for part in self._hashed)

    @cached_property
    def slot_known(self) -> bool:
        """Whether the template says what is hashed: no brace of a variable makes or moves the hash tag."""
        if self.marked_tag is not None:
            return True
        return not any(automaton.bytes_used(self._language(part)) & _OPENING for part in self.marked_parts)

    @cached_property
    def forms(self) -> tuple[tuple[Part, ...], ...]:
        """The parts of its names, with and without each optional segment."""
        return _forms(self.marked_parts)

    @cached_property
    def hashed_forms(self) -> tuple[tuple[Part, ...], ...]:
        """The parts that are hashed, the tag or the whole name, with and without each optional segment."""
        return _forms(self._hashed)

    def pattern(self, *, capturing: bool = True) -> str:
        """Return a regular expression of its names, with a group for each variable if ``capturing``."""
        pattern = ""
        for group, together in groupby(self.marked_parts, key=lambda part: part.group):
            inner = "".join(self._pattern(part, capturing) for part in together)
            pattern += f"(?:{inner})?" if group else inner
        return pattern

    def render(self, values: Sequence[object]) -> bytes:
        """Return the name for values in the order of ``variables``. Raise VariableError if one is invalid."""
        if len(values) != len(self.variables):
            raise UsageError(f"{self.source!r} has {len(self.variables)} variables, not {len(values)}.")
        texts = {name: self._text(name, value) for name, value in zip(self.variables, values, strict=True)}
        given = {
            part.group for part in self.marked_parts if part.is_variable and texts[part.text] is not None
        }
        for name, value in zip(self.variables, values, strict=True):
            if value is None and self._group(name) in given:
                raise self.incomplete(name, value)
        return encoded(
            "".join(
                (texts[text] or "") if is_variable else text
                for text, is_variable, group in self.marked_parts
                if group in (0, *given)
            )
        )

    def incomplete(self, name: str, value: object) -> VariableError:
        """Return the error for an optional segment of which only some variables are given."""
        expected = "given together with the other variables of its optional segment, or None like them"
        return VariableError(self.source, name, expected, value, self.alphabets[name].python_type)

    def parse(self, name: bytes) -> tuple[object, ...] | None:
        """Return the values of a name, in the order of ``variables``, or None if it does not match."""
        try:
            found = self.texts(name.decode("utf-8", self._errors))
        except (AttributeError, TypeError) as error:
            raise not_a_name(name) from error
        except UnicodeDecodeError:
            return None
        try:
            if found is None:
                return None
            if self.optional:
                readers = zip(self._readers, found, strict=True)
                return tuple(None if text is None else read(text) for read, text in readers)
            return tuple([read(text) for read, text in zip(self._readers, found, strict=True)])
        except ValueError:
            return None

    def texts(self, name: str) -> tuple[Any, ...] | None:
        """Return the texts of the variables in a name, or None if it does not match. It takes linear time.

        The text of a variable in an optional segment is None if the name does not have it.
        """
        if not self.backtracks:
            found = self._pattern_match(name)
            return None if found is None else found.groups()
        pieces = automaton.split(self.segments, encoded(name))
        if pieces is None:
            return None
        texts = tuple(self._reading(pieces).values())
        # The automaton takes a widely counted repetition for an unlimited one.
        pairs = zip(self.alphabets.values(), texts, strict=True)
        matches = all(text is None or alphabet.matcher(text) for alphabet, text in pairs)
        return texts if matches else None

    def glob(self, values: Mapping[str, object] = _NO_VALUES) -> bytes:
        """Return a SCAN MATCH pattern for the names in which these variables have these values.

        It may match names of other templates as well, since ``*`` matches anything: parse the names found.
        """
        if unknown := values.keys() - self.alphabets.keys():
            raise UsageError(f"{self.source!r} has no variable <{min(unknown)}>. It has {self._listing}.")
        texts = {name: self._text(name, value) for name, value in values.items()}
        absent = {self._group(name) for name, text in texts.items() if text is None}
        present = {self._group(name) for name, text in texts.items() if text is not None}
        pieces = []
        for part, is_variable, group in self.marked_parts:
            if group in absent:
                continue
            if group in (0, *present) and (text := texts.get(part) if is_variable else part) is not None:
                pieces.append(_GLOB_SPECIAL.sub(r"\\\1", text))
            elif pieces[-1:] != ["*"]:
                pieces.append("*")
        return encoded("".join(pieces))

    def collision(self, other: Template, lead: bytes = b"", other_lead: bytes = b"") -> bytes | None:
        """Return a shortest name that both templates match; None proves that there is none.

        The names of each template begin with its lead: the prefix that its keyspace is bound to.
        """
        mine, theirs = lead + self.literal_prefix, other_lead + other.literal_prefix
        if not (mine.startswith(theirs) or theirs.startswith(mine)):
            return None
        return automaton.shortest_common(literal(lead) + self.language, literal(other_lead) + other.language)

    def two_readings(self) -> tuple[bytes, Reading, Reading] | None:
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
        if len(self._hashed) != len(other._hashed) or not (self.slot_known and other.slot_known):
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

    def _pattern(self, part: Part, capturing: bool) -> str:
        if not part.is_variable:
            return re.escape(part.text)
        return f"{'(' if capturing else '(?:'}{self.alphabets[part.text].pattern})"

    def _language(self, part: Part) -> Language:
        return self.alphabets[part.text].language if part.is_variable else literal(encoded(part.text))

    def _group(self, name: str) -> int:
        return next(part.group for part in self.marked_parts if part[:2] == (name, True))

    def _overlaps(self, place: int) -> bool:
        """Return whether a part is a variable that may hold the beginning of what may follow it."""
        part = self.marked_parts[place]
        if not part.is_variable:
            return False
        used = automaton.bytes_used(self.alphabets[part.text].language)
        for following in self._followers(place):
            if following.is_variable or used >> encoded(following.text)[0] & 1:
                return True
        return False

    def _followers(self, place: int) -> Iterator[Part]:
        """Yield what may follow a part: optional segments that begin after it, and what follows those."""
        own = self.marked_parts[place].group
        for group, together in groupby(self.marked_parts[place + 1 :], key=lambda part: part.group):
            yield next(together)
            if group in (0, own):
                return

    def _text(self, name: str, value: object) -> str | None:
        alphabet = self.alphabets[name]
        if value is None and name in self.optional:
            return None
        try:
            return alphabet.render(value)
        except ValueError as error:
            raise VariableError(self.source, name, alphabet.expected, value, alphabet.python_type) from error

    def _reading(self, split: Sequence[bytes]) -> Reading:
        # An optional segment has text of its own: without any, it is not there.
        present = {part.group for part, piece in zip(self.marked_parts, split, strict=True) if piece} | {0}
        # A split of valid UTF-8 is valid UTF-8: every segment is a language of whole characters.
        return {
            part.text: piece.decode("utf-8", self._errors) if part.group in present else None
            for part, piece in zip(self.marked_parts, split, strict=True)
            if part.is_variable
        }

    def _agrees(self, mine: Part, other: Template, theirs: Part, shared: Mapping[str, str]) -> bool:
        if not mine.is_variable or not theirs.is_variable:
            return mine == theirs
        if shared.get(mine.text) != theirs.text:
            return False
        a, b = self.alphabets[mine.text], other.alphabets[theirs.text]
        # Equal values have equal texts if the alphabet is the same, or if both write a value as it is.
        return a == b or (a.inline("v", "m") is not None and b.inline("v", "m") is not None)


def _forms(parts: Sequence[Part]) -> tuple[tuple[Part, ...], ...]:
    groups = sorted({part.group for part in parts if part.group})
    chosen = chain.from_iterable(combinations(groups, count) for count in range(len(groups), -1, -1))
    return tuple(tuple(part for part in parts if part.group in (0, *present)) for present in chosen)


def not_a_name(found: object) -> UsageError:
    """Return the error for something else in the place of a key name."""
    remedy = f"Pass {found.encode()!r}." if isinstance(found, str) else "Pass the name as Redis has it."
    return UsageError(f"a key name is bytes, got {excerpt(found)}. {remedy}")


def escaped(text: bytes) -> bytes:
    """Return a literal escaped for a glob, as SCAN and PSUBSCRIBE take it."""
    return b"".join(b"\\" + bytes([byte]) if byte in b"*?[]\\^" else bytes([byte]) for byte in text)


def encoded(text: str) -> bytes:
    """Return the bytes of a text of a name, in which surrogates stand for bytes that are not UTF-8."""
    return text.encode("utf-8", "surrogateescape")


def _has_bytes(text: str) -> bool:
    return any("\udc80" <= char <= "\udcff" for char in text)


class _Token(NamedTuple):
    part: Part
    mark: str
    """``{`` or ``}`` if it is a brace around the hash tag."""


def _tokens(source: str) -> Iterator[_Token]:
    if not source:
        raise DeclarationError(repr(source), "a template cannot be empty", "Name the key.")
    group, groups = 0, 0
    for token in _TOKEN.finditer(source):
        if token["stray"]:
            remedy = "Write a variable as <name>." if token[0] in "<>" else "Write a backslash as \\\\."
            raise DeclarationError(source, f"stray {token['stray']!r}", remedy)
        match token["mark"]:
            case "[" if not group:
                group = groups = groups + 1
                continue
            case "]" if group:
                group = 0
                continue
            case "[" | "]":
                raise DeclarationError(
                    source, "brackets that are not pairs", "Write […] around an optional segment, or \\[."
                )
            case "{" | "}" if group:
                raise DeclarationError(source, "a brace in an optional segment", "Move it out.")
        yield _token(source, token, group)
    if group:
        raise DeclarationError(source, "a [ without a ]", "Close the optional segment, or write \\[.")


def _token(source: str, token: re.Match[str], group: int) -> _Token:
    if token["variable"]:
        return _Token(Part(token["variable"], is_variable=True, group=group), "")
    if token["byte"]:
        byte = bytes.fromhex(token["byte"])
        return _Token(Part(byte.decode("utf-8", "surrogateescape"), is_variable=False, group=group), "")
    if token["text"]:
        for char in token["text"]:
            if char.isspace() or not char.isprintable():
                escape = "".join(f"\\x{byte:02x}" for byte in char.encode("utf-8", "surrogatepass"))
                remedy = f"If it belongs there, write {escape}."
                raise DeclarationError(source, f"{char!r} in a key name", remedy)
    return _Token(Part(token["escaped"] or token[0], is_variable=False, group=group), token["mark"] or "")


def _merged(tokens: Iterable[_Token]) -> Iterator[Part]:
    """Yield the parts, neighbouring texts as one; two bytes may together be a character."""
    joined = groupby((token.part for token in tokens), key=lambda part: (part.is_variable, part.group))
    for (is_variable, group), parts in joined:
        if is_variable:
            yield from parts
        else:
            text = encoded("".join(part.text for part in parts)).decode("utf-8", "surrogateescape")
            yield Part(text, is_variable=False, group=group)


def _check_variables(source: str, used: Sequence[str], alphabets: Mapping[str, Alphabet[object]]) -> None:
    for name in used:
        if name not in alphabets:
            if keyword.iskeyword(name):
                remedy = f"Name it otherwise, such as <{name}_>: {name!r} is a keyword of Python."
                raise DeclarationError(source, f"<{name}> has no type", remedy)
            raise DeclarationError(source, f"<{name}> has no type", f"Annotate {name!r} in the class.")
        if used.count(name) > 1:
            raise DeclarationError(
                source, f"<{name}> stands there twice", "Give each place its own variable."
            )
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
    for group, together in groupby(parts, key=lambda part: part.group):
        inside = list(together)
        if group and (all(part.is_variable for part in inside) or not any(part[1] for part in inside)):
            raise DeclarationError(
                source,
                "an optional segment needs a variable, and text that shows that it is there",
                "Write it as [:<name>].",
            )


def _tag(
    source: str, tokens: Sequence[_Token], alphabets: Mapping[str, Alphabet[object]]
) -> tuple[Part, ...] | None:
    braces = "".join(token.mark for token in tokens)
    if not braces:
        return None
    if braces != "{}":
        raise DeclarationError(
            source,
            "braces mark the hash tag, and a name has one",
            "Write one { and one } after it, and \\{ and \\} for braces that are data.",
        )
    start, end = (next(n for n, token in enumerate(tokens) if token.mark == mark) for mark in braces)
    tag = tuple(_merged(tokens[start + 1 : end]))
    for part, forbidden in (
        *((token.part, _OPENING) for token in tokens[:start]),
        *((part, _CLOSING) for part in tag),
    ):
        language = alphabets[part.text].language if part.is_variable else literal(encoded(part.text))
        if automaton.bytes_used(language) & forbidden:
            raise DeclarationError(
                source,
                f"{f'<{part.text}>' if part.is_variable else repr(part.text)} may hold a brace, and move the "
                f"hash tag",
                "Use an alphabet without { and }, or leave out the braces around the tag.",
            )
    hashed = concatenation(
        alphabets[part.text].language if part.is_variable else literal(encoded(part.text))
        for part in tag
        if not part.group
    )
    # Redis does not take an empty pair for a tag: it would hash the whole name.
    if automaton.accepts(hashed, b""):
        raise DeclarationError(
            source, "the hash tag may be empty", "Put what decides the slot between the braces."
        )
    return tag
