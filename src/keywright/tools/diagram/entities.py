"""The entities of a model: its templates as cards, its relations and references as wires between them."""

from __future__ import annotations

import textwrap
from collections.abc import Callable, Iterable, Iterator
from typing import NamedTuple

from keywright.tools.describe.description import (
    KeyDescription,
    LinkDescription,
    MemberDescription,
    ShapeDescription,
    SpaceDescription,
)
from keywright.tools.diagram.layout import COLUMNS
from keywright.tools.diagram.svg import (
    LONGEST_CODE,
    LONGEST_TEXT,
    LONGEST_TITLE,
    Card,
    Line,
    Mark,
    Wire,
    drawn,
    shortened,
)

__all__ = ["Entity", "Facts", "Schema", "Tie", "identity", "schema_of"]

MOST_LINES, MOST_MEMBERS = 3, 6
_MARKS: dict[str, tuple[Mark, Mark]] = {
    "one-to-one": ("one", "one"),
    "many-to-one": ("many", "one"),
    "many-to-many": ("many", "many"),
    "index": ("many", "one"),
    "reference": ("", "arrow"),
    "part": ("many", "one"),
}
_TYPE_NAMES = {"zset": "sorted set"}


class Entity(NamedTuple):
    """One template of a keyspace."""

    space: SpaceDescription
    key: KeyDescription

    @property
    def identity(self) -> str:
        return identity(self.space.name, self.key.name)


class Tie(NamedTuple):
    """A relation, an index, a reference or a part-of, between two templates by their identities."""

    space: SpaceDescription
    sort: str
    """one-to-one, many-to-one, many-to-many, index, reference or part."""
    name: str
    source: str
    target: str
    required: bool = False
    link: LinkDescription | None = None
    """The relation that it is of."""

    @property
    def words(self) -> str:
        """Return the tie as a sentence."""
        source, target = (each.partition("@")[0] for each in (self.source, self.target))
        if self.sort == "reference":
            must = ", which must exist" if self.required else ", which may be missing"
            return f"{source} refers to {target} by {self.name}{must}."
        if self.sort == "part":
            return f"{source} is part of {target}, and erased with it."
        if self.sort == "index":
            return f"{target} names every existing {source}."
        return f"{source} and {target} are inverses, {self.sort}, and written together."


class Facts(NamedTuple):
    """What a page adds to the box of a template: its link, its class, and badges with their classes."""

    url: str | None = None
    style: str = ""
    badges: tuple[tuple[str, str], ...] = ()


class Schema(NamedTuple):
    """The entities and ties of some keyspaces."""

    entities: tuple[Entity, ...]
    ties: tuple[Tie, ...]

    def only(self, space: str) -> Schema:
        """Return the part about one keyspace, with the templates of others that it is tied to."""
        ties = tuple(
            tie for tie in self.ties if space in (each.partition("@")[2] for each in (tie.source, tie.target))
        )
        kept = {each for tie in ties for each in (tie.source, tie.target)}
        entities = [each for each in self.entities if each.space.name == space or each.identity in kept]
        entities.sort(key=lambda each: each.space.name != space)
        return Schema(tuple(entities), ties)

    def svg(
        self,
        facts: Callable[[Entity], Facts],
        url: Callable[[Tie], str | None],
        label: str = "Entity diagram",
        columns: int = COLUMNS,
    ) -> str:
        """Return the drawing; the functions give what the page adds to a box, and the link of a line."""
        several = len({each.space.name for each in self.entities}) > 1
        spaces = {each.space.name: each.space for each in self.entities}
        notes = {name: f"{space.lead}…" for name, space in spaces.items() if space.lead}
        framed = several or bool(notes)
        return drawn(
            [_card(each, facts(each), framed=framed) for each in self.entities],
            [_wire(tie, url(tie)) for tie in self.ties],
            label,
            notes,
            columns,
        )


def identity(space: str, key: str) -> str:
    """Return the identity of a template: a class name has no @, whatever the name of the keyspace has."""
    return f"{key}@{space}"


def schema_of(spaces: Iterable[SpaceDescription]) -> Schema:
    """Return the entities of some keyspaces, and every tie whose two templates are among them."""
    spaces = tuple(spaces)
    entities = tuple(Entity(space, key) for space in spaces for key in space.keys)
    known = {each.identity for each in entities}
    ties = (tie for space in spaces for tie in _ties(space))
    return Schema(entities, tuple(tie for tie in ties if {tie.source, tie.target} <= known))


def _ties(space: SpaceDescription) -> Iterator[Tie]:
    for link in space.links:
        yield _tie(space, link.type, link.name, link.forward, link.inverse, link)
        for index, of in ((link.index, link.forward), (link.inverse_index, link.inverse)):
            if index is not None:
                yield _tie(space, "index", f"index of {link.name}", of, index, link)
    for each in space.references:
        target = identity(each.target_space or space.name, each.target)
        yield Tie(space, "reference", each.name, identity(space.name, each.source), target, each.required)
    for key in space.keys:
        if key.part_of is not None:
            yield _tie(space, "part", "part of", key.name, key.part_of, None)


def _tie(
    space: SpaceDescription, sort: str, name: str, source: str, target: str, link: LinkDescription | None
) -> Tie:
    return Tie(space, sort, name, identity(space.name, source), identity(space.name, target), link=link)


def _wire(tie: Tie, url: str | None) -> Wire:
    bundled = tie.sort in ("reference", "part")
    label = tie.name if tie.sort == "reference" else "part of" if tie.sort == "part" else tie.sort
    return Wire(
        tie.source,
        tie.target,
        label,
        tie.words if tie.link is None else f"{tie.name}: {tie.words}",
        tie.sort if tie.sort in ("reference", "part", "index") else "relation",
        _MARKS[tie.sort],
        url,
        "target" if bundled else "",
        f"{tie.sort} {tie.target}" if bundled else "",
    )


def _card(entity: Entity, facts: Facts, *, framed: bool) -> Card:
    key = entity.key
    lines = [
        Line(shortened(key.name, LONGEST_TITLE), "entity"),
        *(Line(text, "key") for text in _wrapped(key.template)),
        *(Line(text, "kind") for text in _held_lines(key)),
        *_members(key),
    ]
    title = f"{key.full_template}\n{' '.join(key.doc.split())[:200]}"
    return Card(
        entity.identity,
        tuple(lines),
        title,
        facts.url,
        entity.space.name if framed else "",
        facts.style,
        facts.badges,
    )


def _wrapped(template: str) -> list[str]:
    """Return a template in a few lines, broken after separators; only its end is left out."""
    lines = [""]
    for piece in _pieces(template):
        if lines[-1] and len(lines[-1]) + len(piece) > LONGEST_CODE:
            lines.append("")
        lines[-1] += piece
    if len(lines) > MOST_LINES:
        lines = [*lines[: MOST_LINES - 1], shortened("".join(lines[MOST_LINES - 1 :]) + "…", LONGEST_CODE)]
    return lines


def _pieces(template: str) -> Iterator[str]:
    piece = ""
    for char in template:
        piece += char
        if char in ":/}_-." or len(piece) == LONGEST_CODE:
            yield piece
            piece = ""
    if piece:
        yield piece


def _held_lines(key: KeyDescription) -> list[str]:
    return textwrap.wrap(_held(key), LONGEST_TEXT, max_lines=2, placeholder="…")


def _held(key: KeyDescription) -> str:
    """Return the kind and the type of its content in a few words."""
    kind = _TYPE_NAMES.get(key.kind, key.kind)
    if key.shapes:
        return kind if len(key.shapes) == 1 else f"{kind}, one of {len(key.shapes)} shapes"
    if key.field is not None and key.value is not None:
        return f"{kind}: {_short(key.field.words)} → {_short(key.value.words)}"
    return f"{kind}: {_short(key.value.words)}" if key.value is not None else kind


def _short(words: str) -> str:
    """Return the words for a type without their article and their explanation."""
    first, _, others = words.replace("`", "").partition(", or ")
    first = first.partition(" (")[0]
    for article in ("a ", "an ", "the "):
        first = first.removeprefix(article)
    return f"{first} or …" if others else first


def _members(key: KeyDescription) -> Iterator[Line]:
    if len(key.shapes) > 1:
        rows = [(shape.name, f"{len(shape.members)} members") for shape in key.shapes]
    else:
        rows = [(member.name, _type(member)) for shape in _shapes(key)[:1] for member in shape.members]
    shown = rows if len(rows) <= MOST_MEMBERS else rows[: MOST_MEMBERS - 1]
    for name, words in shown:
        left = shortened(name, LONGEST_CODE - 9)
        yield Line(left, "member", shortened(words, LONGEST_CODE - len(left) - 1))
    if len(rows) > len(shown):
        yield Line(f"and {len(rows) - len(shown)} more", "more")


def _shapes(key: KeyDescription) -> tuple[ShapeDescription, ...]:
    return key.shapes or (key.value.shapes if key.value is not None else ())


def _type(member: MemberDescription) -> str:
    return _short(member.type) + ("" if member.required else "?")
