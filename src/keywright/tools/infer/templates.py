"""Templates from patterns: variables with names and alphabets, each template proved to have one reading.

Where two templates make the same name, the narrower one has it and the wider one yields. A template that is
left no name, or that cannot be proved, is dropped: the fallback takes its names.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress

from keywright.errors import KeywrightError
from keywright.keyspace import Counter, Key, List, Map, Record, Set, SortedSet, Stream, Value
from keywright.keyspace.languages.automaton import alternation, is_empty
from keywright.keyspace.languages.language import difference
from keywright.keyspace.template import Template
from keywright.tools.infer.patterns import Observation, Pattern, Slot
from keywright.tools.infer.structs import attribute_of
from keywright.tools.infer.variables import Variable, alphabets_of

__all__ = [
    "Declared",
    "declared_templates",
    "escaped",
    "known_templates",
    "let_fall_back",
    "template_of",
    "variable_name",
    "with_precedence",
    "words_of",
]

MOST_SUPERIORS = 60
WIDE = 3
"""The breadth of an alphabet of words."""
RECURRING = 4
"""Words of an enumeration have so many names each, at least, on average."""
_KINDS = (Counter, List, Map, Record, Set, SortedSet, Stream, Value)
_WORD = re.compile(r"[A-Za-z][A-Za-z0-9_-]*")
_SPECIAL = "<>{}[]\\"


class Declared:
    """A template to declare, and the names that led to it."""

    def __init__(self, template: Template, variables: dict[str, Variable], words: list[str]) -> None:
        self.template = template
        self.variables = variables
        self.words = words
        """The literal words, from which the class is named; a variable is an empty one."""
        self.observations: list[Observation] = []
        self.yields_to: list[Declared] = []
        self.name = ""
        """The class that declares it already, if one does."""
        self.fallback = False
        """Whether it has what no other template has."""

    @property
    def weight(self) -> float:
        return sum(each.weight for each in self.observations)

    @property
    def is_catch_all(self) -> bool:
        """Whether the template is nothing but a variable that may be nearly any text."""
        return len(self.template.marked_parts) == 1 and self.rank[0] >= WIDE

    @property
    def rank(self) -> tuple[int, int, int, str]:
        """The order of precedence, the narrowest first; an optional segment does not make it wider."""
        optional = self.template.optional
        breadths = [each.breadth for name, each in self.variables.items() if name not in optional]
        text = sum(len(part.text) for part in self.template.marked_parts if not part.is_variable)
        return max(breadths, default=0), sum(breadths), -text, self.template.source


def words_of(template: Template) -> list[str]:
    """Return the literal words of a template."""
    return [
        word for part in template.marked_parts if not part.is_variable for word in _WORD.findall(part.text)
    ]


def known_templates(classes: Mapping[str, type[Key]]) -> list[Declared]:
    """Return the templates that a module declares already, by the names of their classes."""
    known = []
    for name, kind in classes.items():
        declared = Declared(kind.declaration.template, {}, [])
        declared.name = name
        known.append(declared)
    return known


def declared_templates(
    patterns: Iterable[Pattern],
    observations: Sequence[Observation],
    known: Sequence[Declared] = (),
    outside: Sequence[tuple[bytes, Template]] = (),
    lead: bytes = b"",
) -> tuple[list[Declared], list[Observation]]:
    """Return templates that `check` proves, and the names that none of them has.

    They yield to those that are `known`, where both make the same name. A template that makes a name of one
    `outside`, of another keyspace with its prefix, is dropped; `lead` is the prefix of these templates.
    """
    found: dict[str, Declared] = {}
    origins: dict[str, Pattern] = {}
    for pattern in patterns:
        made = _template(pattern)
        if made is None:
            continue
        source = made.template.source
        if source in found:
            joined = _joined_patterns(origins[source], pattern)
            wider = _template(joined)
            if wider is not None and wider.template.source == source:
                found[source], origins[source] = wider, joined
        else:
            found[source], origins[source] = made, pattern
    apart = [
        each
        for each in found.values()
        if all(each.template.collision(other, lead, there) is None for there, other in outside)
    ]
    kept = with_precedence(apart, known)
    rest = _assign(kept, observations)
    used = [each for each in kept if each.observations]
    for each in used:
        each.yields_to = [other for other in each.yields_to if other.observations or other.name]
    return used, rest


def with_precedence(found: Iterable[Declared], known: Sequence[Declared] = ()) -> list[Declared]:
    """Return the templates that are left names, the narrowest first; each yields to narrower ones."""
    kept: list[Declared] = []
    for each in sorted(found, key=lambda each: each.rank):
        each.yields_to = [
            other for other in (*known, *kept) if each.template.collision(other.template) is not None
        ]
        if len(each.yields_to) <= MOST_SUPERIORS and _has_names_left(each):
            kept.append(each)
    return kept


def let_fall_back(declared: Sequence[Declared]) -> None:
    """Make a fallback of the widest template that has nearly any text, if there is one."""
    for each in reversed(declared):
        if each.is_catch_all:
            each.fallback = not any(other.fallback or each in other.yields_to for other in declared)
            if each.fallback:
                return


def _joined_patterns(one: Pattern, other: Pattern) -> Pattern:
    """Return a pattern with the texts of both, which have the same literal texts."""
    pieces = (
        mine._replace(values=(*mine.values, *theirs.values))
        if isinstance(mine, Slot) and isinstance(theirs, Slot)
        else mine
        for mine, theirs in zip(_joined(one.pieces), _joined(other.pieces), strict=False)
    )
    return Pattern(tuple(pieces), (*one.observations, *other.observations))


def _has_names_left(each: Declared) -> bool:
    if not each.yields_to:
        return True
    try:
        taken = alternation(other.template.language for other in each.yields_to)
        return not is_empty(difference(each.template.language, taken))
    except ValueError:
        return False


def _assign(declared: list[Declared], observations: Sequence[Observation]) -> list[Observation]:
    """Give each name to the first template that has it. Return the others."""
    rest = []
    by_lead: dict[bytes, list[Declared]] = {}
    for each in declared:
        by_lead.setdefault(each.template.literal_prefix[:3], []).append(each)
    short = [each for lead, group in by_lead.items() if len(lead) < 3 for each in group]
    for observation in observations:
        near = by_lead.get(observation.name[:3], []) if len(observation.name) >= 3 else []
        for each in sorted((*near, *short), key=declared.index) if near and short else near or short:
            if each.template.parse(observation.name) is not None:
                each.observations.append(observation)
                break
        else:
            rest.append(observation)
    return rest


def template_of(pattern: Pattern) -> Template | None:
    """Return the template of a pattern; None if it cannot be proved that no name has two readings."""
    made = _template(pattern)
    return made.template if made is not None else None


def _template(pattern: Pattern) -> Declared | None:
    pieces = _joined(pattern.pieces)
    slots = [piece for piece in pieces if isinstance(piece, Slot)]
    if not pieces or len(slots) > 8 or not all(slot.values for slot in slots):
        return None
    literal = b"".join(piece for piece in pieces if isinstance(piece, bytes))
    braced = any(b"{" in value or b"}" in value for slot in slots for value in slot.values)
    tagged = _is_tag(pieces) and not braced
    first = next((number for number, piece in enumerate(pieces) if isinstance(piece, Slot)), 0)
    choices: list[list[Variable]] = []
    for number, piece in enumerate(pieces):
        if isinstance(piece, Slot):
            following = piece.after or _following(pieces[number + 1 :])
            last = number + 1 == len(pieces) and not piece.after
            if not (following or last):
                return None
            text = following.decode("utf-8", "replace")
            closed = tagged or (b"{" in literal and not braced)
            free = last or piece.optional  # the proof decides whether what follows ends the text
            recurring = number > first and len(pattern.observations) >= RECURRING * len(piece.values)
            found = list(alphabets_of(piece.values, text, tagged=closed, last=free, recurring=recurring))
            if not found:
                return None
            choices.append(found)
    for attempt in range(max(map(len, choices), default=1)):
        chosen = [options[min(attempt, len(options) - 1)] for options in choices]
        made = _proved(pieces, chosen, tagged=tagged)
        if made is not None:
            return made
    return None


def _following(pieces: Sequence[bytes | Slot]) -> bytes:
    """Return the literal text that follows a variable; empty if another variable does, or nothing."""
    following = pieces[0] if pieces else b""
    return following.before if isinstance(following, Slot) else following


def _proved(pieces: Sequence[bytes | Slot], chosen: Sequence[Variable], *, tagged: bool) -> Declared | None:
    """Return the template if it is well formed and no name has two readings."""
    source, variables, words = _written(pieces, chosen, tagged=tagged)
    with suppress(KeywrightError):
        template = Template(source, {name: variable.alphabet for name, variable in variables.items()})
        if template.two_readings() is None:
            return Declared(template, variables, words)
    return None


def _written(
    pieces: Sequence[bytes | Slot], chosen: Sequence[Variable], *, tagged: bool
) -> tuple[str, dict[str, Variable], list[str]]:
    source, words = "", [""]
    variables: dict[str, Variable] = {}
    remaining = iter(chosen)
    for piece in pieces:
        if isinstance(piece, Slot):
            variable = next(remaining)
            name = variable_name(words[-1], variable, variables)
            variables[name] = variable
            before, after = (escaped(text, tagged=False) for text in (piece.before, piece.after))
            source += f"[{before}<{name}>{after}]" if piece.optional else f"<{name}>"
            words.append("")
        else:
            source += escaped(piece, tagged=tagged)
            words += _WORD.findall(piece.decode("ascii", "replace"))
    return source, variables, [word for word in words if word]


def variable_name(before: str, variable: Variable, taken: Mapping[str, Variable]) -> str:
    """Return the name of a variable: the word before it in the singular, else what it looks like."""
    base = attribute_of(_singular(before)) if before and len(before) > 1 else variable.word.rstrip("_")
    if any(hasattr(kind, base) for kind in _KINDS) or base in ("member", "key", "space", "expiry"):
        base = f"{base}_id"
    name, number = base, 1
    while name in taken:
        number += 1
        name = f"{base}_{number}"
    return name


def _singular(word: str) -> str:
    for plural, singular in (
        ("series", "series"),
        ("ies", "y"),
        ("sses", "ss"),
        ("ss", "ss"),
        ("us", "us"),
        ("s", ""),
    ):
        if word.endswith(plural) and len(word) > len(plural) + 1:
            return word[: -len(plural)] + singular
    return word


def _joined(pieces: Iterable[bytes | Slot]) -> list[bytes | Slot]:
    joined: list[bytes | Slot] = []
    for piece in pieces:
        if isinstance(piece, bytes) and joined and isinstance(joined[-1], bytes):
            joined[-1] += piece
        elif piece:
            joined.append(piece)
    return joined


def _is_tag(pieces: Sequence[bytes | Slot]) -> bool:
    shown = b"".join(piece if isinstance(piece, bytes) else b"v" for piece in pieces)
    return re.fullmatch(rb"[^{}]*\{[^{}]+\}[^{}]*", shown) is not None


def escaped(literal: bytes, *, tagged: bool) -> str:
    """Return literal text as a template has it; braces are those of the hash tag if there is one."""
    return "".join(_escapes(literal, tagged=tagged))


def _escapes(literal: bytes, *, tagged: bool) -> Iterator[str]:
    for byte in literal:
        char = chr(byte)
        if tagged and char in "{}":
            yield char
        elif char in _SPECIAL:
            yield f"\\{char}"
        else:
            yield char if 0x20 < byte < 0x7F else f"\\x{byte:02x}"
