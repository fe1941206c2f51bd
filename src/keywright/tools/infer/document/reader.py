"""Reading the blocks of a document for names of keys and the words that belong to each."""

from __future__ import annotations

import re
from collections.abc import Container, Sequence

import msgspec

from keywright.tools.infer.document.blocks import Block, Code, Heading, Line, Table, Text, text_of
from keywright.tools.infer.document.commands import expiry_set, kind_used
from keywright.tools.infer.document.keys import (
    MOST_MEMBERS,
    DocumentedKey,
    Member,
    member_of,
    members_within,
    merged_keys,
    without_label,
)
from keywright.tools.infer.document.notation import Notation, notation_of
from keywright.tools.infer.document.tables import keys_in, lists_members, members_in
from keywright.tools.infer.document.words import kinds_in

__all__ = ["documented_keys"]

LONGEST_EXAMPLE = 1 << 16

_LABEL = re.compile(
    r"(?i)^\W*(?:redis |cache )?(?:keys?(?: (?:name|pattern|format|template))?|patterns?|template)"
    r"\W*[:=\u2013-]\W*$"
)
_DELIMITER = re.compile(r"^\s*(?:[:\u2013\u2014=(-]|->|=>|\u2192|is an?\b|holds?\b|stores?\b|contains?\b)")
_TEXT_CODE = frozenset(
    ("", "text", "txt", "plain", "plaintext", "redis", "resp", "sh", "bash", "shell", "console")
)
_PREFIX_SENTENCE = re.compile(
    r"(?i)\b(?:all|every|each)\b.{0,40}\b(?:keys?|names?)\b.{0,60}\b(?:prefix|begin|start)"
)


def documented_keys(blocks: Sequence[Block]) -> tuple[list[DocumentedKey], int]:
    """Return the keys of a document, one for each template, and how many more it names than are looked at."""
    reader = _Reader()
    for block in blocks:
        reader.read(block)
    reader.append_sections()
    return merged_keys(reader.found, reader.prefix)


class _Reader:
    def __init__(self) -> None:
        self.found: list[DocumentedKey] = []
        self.prefix = ""
        """What all names begin with, as the document states."""
        self._headings: list[tuple[int, str]] = []
        self._current: list[DocumentedKey] = []
        self._level = 0
        self._group = 0
        self._lead = ""
        self._section = 0
        self._with_keys: set[int] = set()
        self._texts: dict[str, list[tuple[int, str]]] = {}
        """The texts that no key has, by heading, each with the line of its section."""

    def read(self, block: Block) -> None:
        match block:
            case Heading():
                self._heading(block)
            case Text():
                self._text(block)
            case Table():
                self._table(block)
            case Code():
                self._code(block)

    def append_sections(self) -> None:
        """Add the text of a section without keys to the keys of the section with the same heading."""
        for key in self.found:
            if key.headings:
                for section, text in self._texts.get(key.headings[-1].lower(), ()):
                    if section not in self._with_keys:
                        key.describe(text, joined=True)

    def _heading(self, block: Heading) -> None:
        text = " ".join(text_of(block.line).split())[:200]
        while self._headings and self._headings[-1][0] >= block.level:
            self._headings.pop()
        if not self._current or block.level <= self._level:
            self._current = []
        self._headings.append((block.level, text))
        self._section = block.number
        self._group, self._lead = 0, ""
        notations = [found for span in block.line if span.is_code and (found := notation_of(span.text))]
        whole = notation_of(text)
        certain = [each for each in notations if each.is_certain or not each.is_word]
        if not certain and whole is not None and whole.is_certain:
            certain = [whole]
        if certain:
            self._define(certain, block.number)
            for key in self._current:
                key.describe("" if whole else "".join(span.text for span in block.line if not span.is_code))

    def _define(self, notations: Sequence[Notation], number: int) -> None:
        titles = [title for _, title in self._headings]
        self._current = [DocumentedKey(each, number, titles, defined=True) for each in notations]
        for key in self._current:
            key.lead = self._lead
        self._level = self._headings[-1][0] if self._headings else 0
        self._with_keys.add(self._section)
        self.found += self._current

    def _mention(self, notation: Notation, number: int, sentence: str, short: str = "") -> DocumentedKey:
        titles = [title for _, title in self._headings]
        key = DocumentedKey(notation, number, titles, defined=False)
        key.describe(sentence)
        key.short = short
        self._with_keys.add(self._section)
        self.found.append(key)
        return key

    def _text(self, block: Text) -> None:
        whole = " ".join(text_of(line) for line in block.lines)
        if not block.depth:
            self._lead = whole[-300:] if whole.endswith(":") else ""
        self._find_prefix(block, whole)
        for position, line in enumerate(block.lines):
            defined = self._definition(line, block)
            if defined is not None:
                notations, rest = defined
                shapes = {each.shape for each in notations}
                self._mentions(line, block.number, whole, shapes)
                self._define(notations, block.number)
                self._group = block.group
                for key in self._current:
                    key.short = _short(rest)
                    key.describe("" if _bare(rest).strip(" .") == key.short.strip() else _bare(rest))
                if any(key.holds_members for key in self._current):
                    self._add_members(members_within(line))
                continue
            if block.depth and self._member(line, block):
                continue
            self._mentions(line, block.number, whole)
            text = text_of(line)
            if self._current:
                for key in self._current:
                    key.add(text, joined=position > 0)
            elif self._headings:
                title = self._headings[-1][1].lower()
                self._texts.setdefault(title, []).append((self._section, without_label(text)))

    def _definition(self, line: Line, block: Text) -> tuple[list[Notation], str] | None:
        """Return the keys that a line defines, and the text behind them."""
        spans = [span for span in line if span.is_code or span.text.strip()]
        if not spans:
            return None
        if not spans[0].is_code:
            return self._labelled(line)
        first = notation_of(spans[0].text)
        if first is None or first.is_prefix:
            return None
        rest = text_of(line)[text_of(line).find(spans[0].text) + len(spans[0].text) :]
        sure = first.is_certain or (first.variables and _DELIMITER.match(rest))
        if not sure:
            listed = bool(block.depth) and ":" in first.literal
            if not (listed or _DELIMITER.match(rest)) or self._is_member(block):
                return None
            if not kinds_in(_short(rest) or rest[:80], short=True):
                return None
        notations, number = [first], 1
        while number + 1 < len(spans) and re.fullmatch(r"\s*(?:,|and|or|/|,\s*and)\s*", spans[number].text):
            other = notation_of(spans[number + 1].text)
            if other is None or other.is_word != first.is_word:
                break
            notations.append(other)
            number += 2
        if len(notations) > 1:
            rest = "".join(span.text for span in spans[number:])
        return notations, rest

    def _labelled(self, line: Line) -> tuple[list[Notation], str] | None:
        text = text_of(line)
        if len(line) > 1 and _LABEL.match(line[0].text):
            codes = [span for span in line if span.is_code]
            found = [each for span in codes if (each := notation_of(span.text)) is not None]
            found = [each for each in found if not each.is_prefix]
            if found:
                return found, "".join(span.text for span in line[1:] if not span.is_code)
        label, colon, behind = text.partition(":")
        if colon and _LABEL.match(label + colon) and len(line) == 1:
            word, _, rest = behind.strip().partition(" ")
            notation = notation_of(word)
            if notation is not None and not notation.is_prefix:
                return [notation], rest
        word, _, rest = text.strip().partition(" ")
        notation = notation_of(word.rstrip(",;"))
        if notation is not None and notation.is_certain and _is_marked(word):
            return [notation], rest
        return None

    def _is_member(self, block: Text) -> bool:
        """Return whether a plain word that begins a list item is a field of the key before it."""
        if not block.depth or not self._current or not self._current[-1].holds_members:
            return False
        return block.group != self._group

    def _member(self, line: Line, block: Text) -> bool:
        if not self._is_member(block) or not line:
            return False
        first = line[0]
        name, rest = first.text, text_of(line)[len(first.text) :]
        if not first.is_code:
            name, colon, rest = text_of(line).partition(":")
            if not colon:
                return False
        member = member_of(name, rest)
        if member is None:
            return False
        self._add_members([member])
        return True

    def _add_members(self, members: Sequence[Member]) -> None:
        for key in self._current:
            known = {each.name for each in key.members}
            key.members += [each for each in members if each.name not in known]
            del key.members[MOST_MEMBERS:]

    def _mentions(self, line: Line, number: int, whole: str, but: Container[str] = frozenset()) -> None:
        """Record the keys that a line names, except those of the shapes `but`, each with its sentence."""
        for position, span in enumerate(line):
            texts = [span.text] if span.is_code else [word for word in span.text.split() if _is_marked(word)]
            for text in texts[:200]:
                found = notation_of(text if span.is_code else text.strip(".,;()"))
                if found is not None and found.is_certain and found.shape not in but:
                    behind = line[position + 1].text if span.is_code and position + 1 < len(line) else ""
                    self._mention(found, number, _sentence(whole, text), _short(behind))

    def _find_prefix(self, block: Text, whole: str) -> None:
        if not self.prefix and _PREFIX_SENTENCE.search(whole):
            for line in block.lines:
                for span in line:
                    found = notation_of(span.text) if span.is_code else None
                    if found is not None and found.is_prefix and not found.variables:
                        self.prefix = found.literal
                        return

    def _table(self, table: Table) -> None:
        holding = any(key.holds_members for key in self._current)
        if self._current and lists_members(table, holding=holding):
            self._add_members(members_in(table))
            return
        found = keys_in(table, [title for _, title in self._headings])
        if found:
            self._current = []
            self._with_keys.add(self._section)
            self.found += found
        else:
            for row in table.rows:
                for cell in row:
                    self._mentions(cell, table.number, " ".join(text_of(each) for each in row))

    def _code(self, code: Code) -> None:
        if code.language in ("json", "json5", "jsonc"):
            self._json(code)
        elif code.language in _TEXT_CODE:
            before = len(self.found)
            for offset, line in enumerate(code.text.splitlines()[:2_000]):
                self._code_line(line[:400], code.number + offset + 1)
            if len(self.found) > before + 1:
                self._current = []  # what follows is about none of them alone

    def _json(self, code: Code) -> None:
        if len(self._current) != 1 or len(code.text) > LONGEST_EXAMPLE:
            return
        try:
            example = msgspec.json.decode(code.text)
        except (msgspec.MsgspecError, RecursionError, ValueError):
            return
        if isinstance(example, dict):
            self._current[0].example = example

    def _code_line(self, line: str, number: int) -> None:
        words = line.strip().removeprefix("redis-cli ").lstrip("$>- ").split()
        if not words:
            return
        kind = kind_used(words[0])
        if kind is not None and len(words) > 1:
            notation = notation_of(words[1])
            if notation is not None and notation.is_certain:
                key = self._mention(notation, number, "", kind)
                key.expiry = expiry_set(words)
            return
        notation = notation_of(words[0].rstrip(",:"))
        if notation is not None and notation.is_certain and _is_marked(words[0]):
            self._define([notation], number)
            rest = line.strip()[len(words[0]) :]
            for key in self._current:
                key.short = _short(f": {rest.strip(' #-:=>|')}")
                key.describe(_bare(rest))


def _is_marked(word: str) -> bool:
    """Return whether a plain word has a placeholder in brackets, as no ordinary word has."""
    return re.search(r"\{[^{}]*\}|<[^<>]+>|%[sd]|:\*|\[\w+\]", word) is not None


def _sentence(whole: str, text: str) -> str:
    """Return the sentence that has a text."""
    return next((each for each in re.split(r"(?<=[.!?])\s+", whole) if text in each), whole)


def _short(rest: str) -> str:
    """Return the few words behind a name that say its type: in parentheses, or up to the end of a clause."""
    found = re.match(r"\s*\((?P<inside>[^()]{1,80})\)", rest)
    if found is not None:
        return found["inside"].strip()
    found = re.match(r"\s*(?:[:\u2013\u2014=-]|->|=>|\u2192|is an?\b)\s*(?P<words>[^.;\n]{1,60})", rest)
    return "" if found is None else found["words"]


def _bare(rest: str) -> str:
    """Return the text behind a name without the delimiter before it."""
    return re.sub(r"^\s*(?:\([^()]{1,80}\)|[:\u2013\u2014=-]|->|=>|\u2192|#)\s*", "", rest)
