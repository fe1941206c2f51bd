"""The document of a model: blocks made from its description."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TypeAlias

from keywright.tools.audit.formats.units import bytes_shown, share_shown
from keywright.tools.describe.description import (
    KeyDescription,
    LinkDescription,
    ShapeDescription,
    SpaceDescription,
    StoredDescription,
    TypeDescription,
)
from keywright.tools.diagram.entities import schema_of
from keywright.tools.docs.anchors import key_anchor, link_anchor
from keywright.tools.docs.content import (
    Block,
    Bullets,
    Code,
    Figure,
    Heading,
    Inline,
    Line,
    Link,
    Paragraph,
    Table,
    Text,
    joined,
    prose,
)
from keywright.tools.model import CountedDescription, ModelDescription

__all__ = ["document_of"]

Blocks: TypeAlias = Iterator[Block]

_READING = (
    "In a key's name `<name>` is a variable. Braces are the hash tag of Redis Cluster: only what stands "
    "between them decides the slot. Prefix, version and expiries are the declared ones; a database may be "
    "opened with others."
)
_CAPTION = (
    "The keys, and what joins them. A line with an arrow is a reference: a stored value that names another "
    "key. Other lines are relations, which are written on both sides together, and their indexes: a bar "
    "stands for one, a fork for many."
)
_SHARED = (
    "Keys that share a slot where their variables agree, so that one script can write them on a cluster too:"
)
_SPREAD = (
    "No two keys provably share a slot: what concerns several keys is atomic on one server, and goes through "
    "the journal on a cluster."
)
_HIDDEN = {
    (True, False, False): "Secret: never printed, logged or rendered.",
    (True, True, False): "Secret, and sealed: encrypted at rest.",
    (False, True, False): "Sealed: encrypted at rest.",
    (True, True, True): "Secret. Encrypted at rest where a keyring is bound, else stored in clear.",
    (False, True, True): "Encrypted at rest where a keyring is bound, else stored in clear.",
}


_CHANNELS = (
    "Messages between programs, by pub/sub. The server does not store them: a program that is not "
    "subscribed when one is published does not get it."
)


def document_of(model: ModelDescription) -> list[Block]:
    """Return the blocks of the whole document, in reading order."""
    return list(_document(model))


def _document(model: ModelDescription) -> Blocks:
    yield Heading(1, [Text(f"Data model: {model.name}")], "top")
    yield from _paragraphs(model.description)
    yield Paragraph(prose(_READING))
    if model.counted is not None:
        yield Paragraph([Text(_counted(model.counted))])
    for space in model.spaces:
        yield from _overview(space, model)
    yield Heading(2, [Text("Relations")], "relations")
    yield Figure(schema_of(model.spaces), _CAPTION)
    for space in model.spaces:
        yield from _relations(space)
    if not any(space.links for space in model.spaces):
        yield Paragraph([Text("No relations are declared: no key is kept consistent with another.")])
    yield from _references(model)
    yield from _invariants(model)
    for space in model.spaces:
        yield Heading(2, [Text("Keys of "), Code(space.name)], f"keys-{space.name}")
        for key in space.keys:
            yield from _key(key, space)
    yield from _channels(model)
    yield from _slots(model)
    yield from _guarantees(model)


def _overview(space: SpaceDescription, model: ModelDescription) -> Blocks:
    alone = len(model.spaces) == 1
    title: Line = [Text("Overview")] if alone else [Text("Overview of "), Code(space.name)]
    yield Heading(2, title, f"space-{space.name}")
    if space is not model.spaces[0]:
        yield from _paragraphs(space.description)
    yield Paragraph(_naming(space))
    yield Table(
        ("Key", "Redis type", "Holds", "Expires", *(["Keys"] if model.counted else [])),
        [
            [
                [_to(key, space)],
                prose(_redis_type(key)),
                prose(_holds(key)),
                prose(_expires(key)),
                *([[Text(f"{key.stored.keys:,}")]] if key.stored else []),
            ]
            for key in space.keys
        ],
    )


def _counted(counted: CountedDescription) -> str:
    unknown = f"; no template matches {counted.unknown:,} more" if counted.unknown else ""
    outside = (
        f"; {counted.outside:,} keys outside of the prefixes were not counted" if counted.outside else ""
    )
    matched = counted.names - counted.unknown
    return f"Counts are those of {counted.dump}: {matched:,} keys of these templates{unknown}{outside}."


def _naming(space: SpaceDescription) -> Line:
    line = _leading(space)
    return line if space.database is None else [*line, *prose(f" The keys are in database {space.database}.")]


def _leading(space: SpaceDescription) -> Line:
    if not space.lead:
        return [Text("Names have no prefix.")]
    parts = [f"the prefix `{space.prefix}`"] if space.prefix else []
    parts += [f"the version `{space.version}`"] if space.version else []
    return prose(f"Every name begins with `{space.lead}`: {' and '.join(parts)}.")


def _relations(space: SpaceDescription) -> Blocks:
    for link in space.links:
        yield Heading(3, [Text(link.name)], link_anchor(space, link))
        yield Bullets([*_sides(link, space)])
        yield Paragraph([Text("On one server: "), *prose(link.on_one_server)])
        yield Paragraph([Text("On a cluster: "), *prose(link.on_a_cluster)])


def _references(model: ModelDescription) -> Blocks:
    declared = [(space, each) for space in model.spaces for each in space.references]
    if not declared:
        return
    yield Heading(2, [Text("References")], "references")
    yield Paragraph([Text("Stored values that name other keys. Tools follow them; nothing keeps them.")])
    spaces = {space.name: space for space in model.spaces}
    yield Table(
        ("Key", "Refers to", "By", "The target"),
        [
            [
                [_mentioned(each.source, space)],
                [_mentioned(each.target, spaces.get(each.target_space, space))],
                [Text(each.name)],
                [Text("must exist" if each.required else "may be missing")],
            ]
            for space, each in declared
        ],
    )


def _invariants(model: ModelDescription) -> Blocks:
    declared = [(space, each) for space in model.spaces for each in space.invariants]
    if not declared:
        return
    yield Heading(2, [Text("Invariants")], "invariants")
    yield Paragraph([Text("Rules over several keys. The audit checks them, and a repair follows the model.")])
    yield Table(
        ("Invariant", "Says", "Checked on", "Decides about"),
        [
            [
                [Code(each.name)],
                prose(f"{each.description}{' Only noted.' if each.note else ''}"),
                joined([[_mentioned(key, space)] for key in each.keys]),
                [Text(", ".join(each.settles))],
            ]
            for space, each in declared
        ],
    )


def _sides(link: LinkDescription, space: SpaceDescription) -> Iterator[Line]:
    if link.type == "index":
        yield [
            Text("index: "),
            _to(space.key(link.inverse), space),
            Text(" names every existing "),
            _to(space.key(link.forward), space),
        ]
        return
    yield [
        Text(f"{link.type}: "),
        _to(space.key(link.forward), space),
        Text(", inverse "),
        _to(space.key(link.inverse), space),
    ]
    for title, name in (("index", link.index), ("index of the inverse", link.inverse_index)):
        if name:
            yield [Text(f"{title}: "), _to(space.key(name), space)]


def _key(key: KeyDescription, space: SpaceDescription) -> Blocks:
    yield Heading(3, [Code(key.full_template)], key_anchor(space, key.name))
    yield from _paragraphs(key.doc)
    yield Table(("", ""), [[[Text(title)], line] for title, line in _facts(key, space)])
    if key.variables:
        yield Table(
            ("Variable", "Is"),
            [
                [[Code(f"<{each.name}>")], _variable(each.type, each.derived_from, each.derived_by)]
                for each in key.variables
            ],
        )
    for shape in key.shapes:
        yield from _shape(shape, several=len(key.shapes) > 1, of="Member")
    for part in (key.field, key.value):
        for shape in part.shapes if part else ():
            yield from _shape(shape, several=True, of="Field")


def _channels(model: ModelDescription) -> Blocks:
    declared = [(space, channel) for space in model.spaces for channel in space.channels]
    if not declared:
        return
    yield Heading(2, [Text("Channels")], "channels")
    yield Paragraph([Text(_CHANNELS)])
    for space, channel in declared:
        yield Heading(3, [Code(channel.full_template)], key_anchor(space, channel.name))
        yield from _paragraphs(channel.doc)
        facts = [("Declared as", [Code(channel.name)]), ("Messages", prose(_words(channel.message)))]
        if channel.sharded:
            facts.append(
                ("Sharded", [Text("on a cluster, messages stay in the shard of the channel's slot")])
            )
        yield Table(("", ""), [[[Text(title)], line] for title, line in facts])
        if channel.variables:
            yield Table(
                ("Variable", "Is"),
                [[[Code(f"<{each.name}>")], _variable(each.type, None, None)] for each in channel.variables],
            )
        for shape in channel.message.shapes:
            yield from _shape(shape, several=len(channel.message.shapes) > 1, of="Field")


def _facts(key: KeyDescription, space: SpaceDescription) -> Iterator[tuple[str, Line]]:
    yield "Declared as", [Code(key.name)]
    yield "Redis type", prose(_redis_type(key))
    yield "Holds", prose(_holds(key))
    if key.secret or key.sealed:
        yield "Confidential", prose(_HIDDEN[key.secret, key.sealed, key.optional_seal])
    yield "Expires", prose(_expires(key))
    if key.stored:
        yield "Stored", [Text(_stored(key.stored))]
    if key.field_expiry:
        yield "Entries expire", prose(key.field_expiry.words)
    if key.cached:
        yield "Cached by clients", prose(key.cached)
    if key.groups:
        yield "Consumer groups", joined([[Code(group)] for group in key.groups])
    for link in space.links_of(key.name):
        yield "Relation", _seen_from(key, link, space)
    for reference in space.references:
        if reference.source == key.name:
            must = ", which must exist" if reference.required else ""
            yield "Refers to", [_mentioned(reference.target, space), Text(f" by {reference.name}{must}")]
        if reference.target == key.name:
            yield "Referred to by", [_mentioned(reference.source, space), Text(f" by {reference.name}")]
    if key.part_of:
        yield "Part of", [_to(space.key(key.part_of), space), Text(", and erased with it")]
    if key.yields_to:
        owners = joined([[_to(space.key(each), space)] for each in key.yields_to])
        yield "Precedence", [*owners, Text(": a name that is also one of theirs is theirs")]
    if key.fallback:
        yield "Precedence", [Text("the names that no other key makes")]
    if key.parts:
        yield "Parts", joined([[_to(space.key(part), space)] for part in key.parts])
    for upgrade in key.upgrades:
        place = f", from `{upgrade.moved_from}`" if upgrade.moved_from else ""
        yield (
            "Older version",
            prose(f"`{upgrade.version}`{place}: upgraded when read. {upgrade.doc}".rstrip()),
        )
    yield "Slot", _slot(key, space)


def _mentioned(name: str, space: SpaceDescription) -> Inline:
    """Return a link to a key of this keyspace, or the name of a key of another."""
    found = next((key for key in space.keys if key.name == name), None)
    return Code(name) if found is None else _to(found, space)


def _seen_from(key: KeyDescription, link: LinkDescription, space: SpaceDescription) -> Line:
    """Return a relation from the side of one of its keys, with a link to the other side."""
    more: Line = [Text(" ("), Link("how", link_anchor(space, link)), Text(")")]
    if link.type == "index":
        if key.name == link.inverse:
            return [Text("index of every existing "), _to(space.key(link.forward), space), *more]
        return [Text("named in the index "), _to(space.key(link.inverse), space), *more]
    if key.name in (link.index, link.inverse_index):
        side = link.forward if key.name == link.index else link.inverse
        return [Text("index of every existing "), _to(space.key(side), space), *more]
    forward, backward = _DIRECTIONS[link.type]
    if key.name == link.forward:
        return [Text(f"{forward}, inverse "), _to(space.key(link.inverse), space), *more]
    return [Text(f"{backward}, inverse "), _to(space.key(link.forward), space), *more]


_DIRECTIONS = {
    "one-to-one": ("one-to-one", "one-to-one"),
    "many-to-one": ("many-to-one", "one-to-many"),
    "many-to-many": ("many-to-many", "many-to-many"),
}


def _shape(shape: ShapeDescription, *, several: bool, of: str) -> Blocks:
    if several:
        when = f", where {shape.when}" if shape.when else ""
        yield Paragraph(prose(f"`{shape.name}`{when}:"))
    yield from _paragraphs(shape.doc)
    yield Table(
        (of, "Type", "Required", "Description"),
        [
            [
                [Code(each.name)],
                prose(each.type),
                [Text("yes" if each.required else "no")],
                prose(
                    _told(
                        each.doc,
                        each.default,
                        _HIDDEN.get((each.secret, each.sealed, each.optional_seal)),
                        each.expires,
                    )
                ),
            ]
            for each in shape.members
        ],
    )


def _told(doc: str, default: str | None, hidden: str | None, expires: str) -> str:
    absent = f"Without it: `{default}`." if default else ""
    return " ".join(filter(None, [doc, absent, hidden, f"Expires: {expires}." if expires else ""]))


def _variable(words: str, derived_from: str | None, derived_by: str | None) -> Line:
    derived = f"; derived from {derived_from}: {derived_by}" if derived_from else ""
    return prose(words + derived)


_TYPE_NAMES = {"zset": "sorted set"}


def _redis_type(key: KeyDescription) -> str:
    stored = _TYPE_NAMES.get(key.redis_type, key.redis_type)
    return stored if key.kind in (stored, "value", "record", "map") else f"{stored} ({key.kind})"


def _holds(key: KeyDescription) -> str:
    """Return the stored type in one line."""
    if len(key.shapes) == 1:
        what = "entries with the members" if key.kind == "stream" else "the members"
        return f"{what} {', '.join(f'`{member.name}`' for member in key.shapes[0].members)}"
    if key.shapes:
        return f"one of {len(key.shapes)} shapes: {', '.join(f'`{shape.name}`' for shape in key.shapes)}"
    if key.field and key.value:
        return f"{_words(key.field)} → {_words(key.value)}"
    if key.score and key.value:
        return f"members: {_words(key.value)}; score: {key.score}"
    return (
        _words(key.value) if key.value else "what only its module reads" if key.kind == "opaque" else "bytes"
    )


_MARKS = {
    (True, False, False): " (secret)",
    (True, True, False): " (secret, sealed)",
    (False, True, False): " (sealed)",
    (True, True, True): " (secret, sealed if a keyring is bound)",
    (False, True, True): " (sealed if a keyring is bound)",
}


def _words(held: TypeDescription) -> str:
    return held.words + _MARKS.get((held.secret, held.sealed, held.optional_seal), "")


def _expires(key: KeyDescription) -> str:
    return key.expiry.words if key.expiry else "no expiry"


def _stored(stored: StoredDescription) -> str:
    if not stored.keys:
        return "no key in the dump"
    size = "" if stored.bytes is None else f", {bytes_shown(stored.bytes)} in the file"
    return f"{stored.keys:,} {'key' if stored.keys == 1 else 'keys'}{size}{_expiring(stored.expiring)}"


def _expiring(share: float | None) -> str:
    if share is None:
        return ""
    return {0.0: ", none expires", 1.0: ", all expire"}.get(share, f", {share_shown(share)} of them expire")


def _slot(key: KeyDescription, space: SpaceDescription) -> Line:
    what = "one slot for all of them" if key.slot.fixed else "decided by"
    line: list[Inline] = [Text(f"{what}{': ' if key.slot.fixed else ' '}"), Code(key.slot.hashed)]
    if not key.slot.shared_with:
        return [*line, Text("" if key.slot.tagged else ", the whole name")]
    others = joined([[Link(name, key_anchor(space, name))] for name in key.slot.shared_with])
    return [*line, Text("; shared, where the variables agree, with "), *others]


def _slots(model: ModelDescription) -> Blocks:
    yield Heading(2, [Text("Slots of a cluster")], "slots")
    groups: dict[tuple[str, ...], Line] = {}
    for space in model.spaces:
        for key in space.keys:
            if key.slot.shared_with:
                names = sorted({key.name, *key.slot.shared_with})
                groups[key.slot.hashed, *names] = _links(space, names)
    yield Paragraph([Text(_SHARED if groups else _SPREAD)])
    if groups:
        yield Bullets([[Code(hashed[0]), Text(": "), *names] for hashed, names in groups.items()])


def _guarantees(model: ModelDescription) -> Blocks:
    """Yield each guarantee once, with the keys that give it."""
    yield Heading(2, [Text("Guarantees")], "guarantees")
    givers: dict[tuple[str, ...], list[Line]] = {}
    for space in model.spaces:
        for key in space.keys:
            givers.setdefault(key.guarantees, []).append(_links(space, [key.name]))
    for guarantees, keys in givers.items():
        yield Paragraph([*joined(keys), Text(":")])
        yield Bullets([prose(guarantee) for guarantee in guarantees])


def _links(space: SpaceDescription, names: Iterable[str]) -> Line:
    return joined([[Link(name, key_anchor(space, name))] for name in names])


def _to(key: KeyDescription, space: SpaceDescription) -> Link:
    return Link(key.full_template, key_anchor(space, key.name))


def _paragraphs(text: str) -> Blocks:
    for paragraph in filter(None, text.split("\n\n")):
        yield Paragraph(prose(paragraph))
