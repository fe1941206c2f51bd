"""A keyspace as plain data: words without Python, flags, slots, relations, and the same every time."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Annotated, Any

import msgspec
import pytest

import cli_spaces
from declaring import key_class
from keywright import (
    Choice,
    Codec,
    Counter,
    Derived,
    FreeText,
    Id,
    Json,
    Key,
    Keyspace,
    Map,
    MessagePack,
    Plain,
    Record,
    Sealed,
    Secret,
    Set,
    Sha256,
    Upgrade,
    Value,
    Zstd,
    before_first,
    expires_at,
    expires_in,
    index,
    many_to_one,
    one_to_one,
    refers,
    sha256_hex,
)
from keywright.keyspace.alphabets import alphabet_of
from keywright.keyspace.template import Template
from keywright.tools.describe.description import SpaceDescription, describe
from keywright.tools.describe.globs import MOST, globs_of
from keywright.tools.describe.words import attribute_docs, default_words, duration
from keywright.tools.docs.formats import Format, written
from keywright.tools.model import Model

farm = Keyspace("farm", "Animals\n    and where they live.", prefix="farm", version="v2")


class Collar(msgspec.Struct, rename={"made_on": "madeOn"}):
    """What an animal wears."""

    made_on: datetime
    """When it was made, in
    the factory."""
    tags: list[str] = []
    inner: Collar | None = None


@dataclass
class Size:
    height: int
    weight: float = 1.5


class Animal(msgspec.Struct):
    name: str
    collar: Collar | None = None
    legs: int = 4
    microchip: Annotated[Secret[str], Sealed] | None = None


def _from_v1(stored: dict[bytes, bytes], key: object) -> Animal:
    """A v1 animal had its name only."""
    return Animal(stored[b"called"].decode())


class Animals(
    Record[Animal],
    key="animal:<animal>",
    space=farm,
    upgrades=[Upgrade("v1", lambda stored: b"called" in stored, _from_v1)],
):
    """One animal.

    Kept without expiry.
    """

    animal: Id


class Photo(
    Value[Annotated[Size, MessagePack, Zstd]],
    key="photo:{<animal>}",
    space=farm,
    part_of=Animals,
    expiry=expires_in(timedelta(hours=6), jitter=0.1, since="last use"),
):
    """Its photo."""

    animal: Id


class Thumbnail(Value[dict[str, list[int]]], key="photo:{<animal>}:small", space=farm):
    """The same, smaller."""

    animal: Id


class StallOf(Value[Id], key="animal:<animal>:stall", space=farm):
    """Where it sleeps."""

    animal: Id


class Sleepers(Set[Id], key="stall:<stall>:animals", space=farm):
    """Who sleeps there."""

    stall: Id


class AllAnimals(Set[Id], key="animals", space=farm):
    """Every animal that has a stall."""


class PathOf(
    Value[str],
    key="path:{<top>:<path_hash>}",
    space=farm,
    expiry=expires_at(datetime(2030, 1, 1, tzinfo=UTC)),
):
    """Where a path leads."""

    top: Annotated[FreeText, Derived("path", before_first("/"))]
    path_hash: Annotated[Sha256, Derived("path", sha256_hex)]


class Moved(
    Value[int],
    key="moved:<animal>",
    space=farm,
    upgrades=[
        Upgrade(
            "v0", lambda _: True, lambda stored, _: int(stored), moved_from=lambda key: StallOf(key.animal)
        )
    ],
):
    """How often it moved."""

    animal: Id


sleeping = many_to_one(StallOf, inverse=Sleepers, index=AllAnimals)


@pytest.fixture
def described() -> SpaceDescription:
    return describe(farm)


def test_a_description_is_json_and_back_and_the_same_every_time(described: SpaceDescription) -> None:
    data = msgspec.json.encode(described)
    assert msgspec.json.decode(data, type=SpaceDescription) == described
    assert msgspec.json.encode(msgspec.json.decode(data, type=SpaceDescription)) == data
    assert msgspec.json.encode(describe(farm)) == data


def test_names_have_the_declared_prefix_and_version(described: SpaceDescription) -> None:
    assert (described.prefix, described.version, described.lead) == ("farm", "v2", "farm:v2:")
    assert described.key("Photo").full_template == "farm:v2:photo:{<animal>}"


def test_docstrings_are_one_line_a_paragraph(described: SpaceDescription) -> None:
    assert described.description == "Animals and where they live."
    assert described.key("Animals").doc == "One animal.\n\nKept without expiry."


def test_members_tell_type_default_confidence_and_their_docstring(described: SpaceDescription) -> None:
    name, collar, legs, microchip = described.key("Animals").shapes[0].members
    assert (name.type, name.required) == ("UTF-8 text", True)
    assert (collar.type, collar.required) == ("JSON: Collar", False)
    assert "madeOn (RFC 3339 time)" in collar.doc
    assert "inner (Collar or null, optional)" in collar.doc
    assert (legs.type, legs.default) == ("a signed 64-bit integer", "4")
    assert (microchip.secret, microchip.sealed, microchip.type) == (True, True, "UTF-8 text")
    assert attribute_docs(Collar) == {"made_on": "When it was made, in the factory."}


def test_a_structured_value_lists_its_fields(described: SpaceDescription) -> None:
    photo = described.key("Photo").value
    assert photo is not None
    assert photo.words == "MessagePack: Size, zstd-compressed"
    [size] = photo.shapes
    assert [(member.name, member.type, member.required, member.default) for member in size.members] == [
        ("height", "integer", True, None),
        ("weight", "number", False, "1.5"),
    ]
    assert size.doc == ""  # the docstring that dataclass makes says nothing
    small = described.key("Thumbnail").value
    assert small is not None
    assert small.words == "JSON: object from text to array of integer"


def test_expiries_are_described_in_words_and_numbers(described: SpaceDescription) -> None:
    sliding, fixed = described.key("Photo").expiry, described.key("PathOf").expiry
    assert sliding is not None
    assert fixed is not None
    assert sliding.words == "6 hours ± 10% after the last read or write"
    assert (sliding.ttl_ms, sliding.jitter, sliding.sliding) == (21_600_000, 0.1, True)
    assert not sliding.since_first_write
    assert (fixed.words, fixed.moment) == ("at 2030-01-01T00:00:00+00:00", "2030-01-01T00:00:00+00:00")


@pytest.mark.parametrize(
    ("since", "words", "in_lock"),
    [
        ("first write", "1 hour after the first write", {"since_first_write": True}),
        ("last write", "1 hour after the last write", {}),
        ("last use", "1 hour after the last read or write", {"sliding": True}),
    ],
)
def test_the_event_that_an_expiry_counts_from_is_described(
    since: Any, words: str, in_lock: dict[str, bool]
) -> None:
    space = Keyspace("limits", "…")
    key_class(space, "hits", {}, base=Counter, expiry=expires_in(timedelta(hours=1), since=since))
    expiry = describe(space).key("Made").expiry
    assert msgspec.to_builtins(expiry) == {"words": words, "ttl_ms": 3_600_000, **in_lock}


def test_slots_tell_what_is_hashed_and_who_lives_beside(described: SpaceDescription) -> None:
    photo, animal = described.key("Photo").slot, described.key("Animals").slot
    assert (photo.hashed, photo.tagged, photo.fixed, photo.shared_with) == (
        "<animal>",
        True,
        False,
        ("Thumbnail",),
    )
    assert (animal.hashed, animal.tagged, animal.shared_with) == ("farm:v2:animal:<animal>", False, ())
    assert described.key("AllAnimals").slot.fixed


def test_a_prefix_with_a_hash_tag_keeps_everything_together() -> None:
    space = Keyspace("tagged", "One slot.", prefix="{all}")

    class One(Value[Id], key="one:<id>", space=space):
        """One."""

        id: Id

    class Other(Value[Id], key="other:<id>", space=space):
        """Other."""

        id: Id

    one_to_one(One, inverse=Other)
    found = describe(space)
    assert found.key("One").slot.hashed == "all"
    assert found.key("One").slot.shared_with == ("Other",)
    assert found.links[0].one_slot
    assert "share a slot" in found.links[0].on_a_cluster


def test_relations_name_their_inverse_and_indexes(described: SpaceDescription) -> None:
    [link] = described.links
    assert (link.type, link.forward, link.inverse, link.index) == (
        "many-to-one",
        "StallOf",
        "Sleepers",
        "AllAnimals",
    )
    assert not link.one_slot
    assert "journal" in link.on_a_cluster
    assert described.links_of("AllAnimals") == (link,)
    assert described.links_of("Photo") == ()


def test_parts_know_their_whole_and_the_whole_its_parts(described: SpaceDescription) -> None:
    assert described.key("Photo").part_of == "Animals"
    assert described.key("Animals").parts == ("Photo",)


def test_upgrades_tell_the_version_and_where_it_was(described: SpaceDescription) -> None:
    [shape], [move] = described.key("Animals").upgrades, described.key("Moved").upgrades
    assert (shape.version, shape.doc, shape.moved) == ("v1", "A v1 animal had its name only.", False)
    assert (move.moved, move.moved_from) == (True, "farm:v2:animal:<animal>:stall")


def test_derived_variables_tell_from_what_and_how(described: SpaceDescription) -> None:
    top, path_hash = described.key("PathOf").variables
    assert (top.derived_from, path_hash.derived_from) == ("path", "path")
    assert top.derived_by == "The text before the first '/', or all of it when there is none."
    assert path_hash.derived_by is not None
    assert path_hash.derived_by.startswith("The SHA-256")


def test_no_word_needs_python() -> None:
    found = describe(cli_spaces.kinds)
    text = msgspec.json.encode(found).decode()
    assert not re.search(r"\bstr\b|\bint\b|\bdict\[|\blist\[|None|<Colour|Secret\[", text)
    [order] = found.key("Orders").shapes
    assert [member.type for member in order.members][1] == "`red`"


def test_shapes_of_a_union_say_how_they_are_distinguished() -> None:
    pets = describe(cli_spaces.kinds).key("Pets")
    assert [(shape.name, shape.when) for shape in pets.shapes] == [
        ("Cat", "`kind` is `cat`"),
        ("Dog", "`kind` is `dog`"),
    ]


def test_a_codec_of_its_own_may_name_a_struct_for_its_parts() -> None:
    class Packed(Codec[Size]):
        expected = "eight bytes"
        python_type = Size
        layout = Size

        def encode(self, value: Size) -> bytes:
            return b"%d" % value.height

        def decode(self, data: bytes) -> Size:
            return Size(int(data))

    space = Keyspace("packed", "Bytes.")

    class Sizes(Map[Id, Annotated[Size, Packed()]], key="sizes", space=space):
        """Sizes."""

    value = describe(space).key("Sizes").value
    assert value is not None
    assert value.words == "eight bytes"
    assert [member.name for member in value.shapes[0].members] == ["height", "weight"]


def test_an_index_is_a_link_between_what_it_lists_and_the_set() -> None:
    space = Keyspace("indexed", "An index.")

    class Thing(Value[Annotated[Any, Json]], key="thing:<id>", space=space):
        """A thing."""

        id: Id

    class Things(Set[Id], key="things", space=space):
        """All."""

    index(Thing, by=Things)
    [link] = describe(space).links
    assert (link.type, link.forward, link.inverse) == ("index", "Thing", "Things")


@pytest.mark.parametrize(
    ("milliseconds", "words"),
    [(900_000, "15 minutes"), (86_400_000, "1 day"), (1500, "1500 ms"), (90_000, "90 seconds"), (0, "0 ms")],
)
def test_durations_take_the_largest_whole_unit(milliseconds: int, words: str) -> None:
    assert duration(milliseconds) == words


def test_defaults_are_described_as_they_are_stored() -> None:
    values = (None, False, "", "a", 3, list, cli_spaces.Colour.RED)
    assert [default_words(value) for value in values] == [None, None, "the empty text", "a", "3", "[]", "red"]


def _matches(glob: str, name: str) -> bool:
    """Redis' own rules: * ? [classes] and backslash; no braces, no character that is special otherwise."""
    return re.fullmatch("".join(_regex(glob)), name, re.DOTALL) is not None


def _regex(glob: str) -> Iterator[str]:
    for escaped, star, one, chars, other in re.findall(
        r"\\(.)|(\*)|(\?)|\[((?:\\.|[^\]])*)\]|(.)", glob, re.DOTALL
    ):
        if star or one:
            yield ".*" if star else "."
        else:
            yield f"[{chars}]" if chars else re.escape(escaped or other)


@pytest.mark.parametrize("kind", [*farm, *cli_spaces.kinds, *cli_spaces.overlapping])
def test_globs_match_every_name_a_template_makes(kind: type[Key]) -> None:
    template = kind._template
    for values in zip(*(alphabet.samples for alphabet in template.alphabets.values()), strict=False):
        name = template.render(values).decode()
        globs = globs_of(template.forms, template.alphabets)
        assert any(_matches(glob, name) for glob in globs), name


def test_globs_are_no_wider_than_alphabets_allow() -> None:
    hint = Annotated[str, Plain(extra="[-]")]
    template = Template("we*ird:<id>", {"id": alphabet_of(hint)[0]})
    [glob] = globs_of(template.forms, template.alphabets)
    assert _matches(glob, "we*ird:[a]")
    assert not _matches(glob, "weXird:a")
    assert not _matches(glob, "we*ird::a")
    assert not _matches(glob, "we*ird:")


def test_globs_have_no_character_that_would_end_a_rule() -> None:
    template = Template(r"a\x20b\x06<x>", {"x": alphabet_of(Id)[0]})
    assert globs_of(template.forms, template.alphabets) == (r"a?b?[A-Za-z0-9\_\-]*",)


def test_a_template_of_too_many_choices_gets_one_wide_glob() -> None:
    many = Choice(*(f"v{number}" for number in range(MOST + 1)))
    few = Choice("a", "b")
    template = Template("k:<x>:<y>", {"x": many, "y": few})
    assert globs_of(template.forms, template.alphabets) == ("k:?*:a", "k:?*:b")


def test_references_tell_where_they_lead() -> None:
    space = Keyspace("mentions", "Who mentions whom.")

    class User(Value[str], key="user:<user>", space=space):
        """A user."""

        user: Id

    class Note(Value[Id], key="note:<note>", space=space):
        """A note, and whose it is."""

        note: Id

    refers(Note, User, lambda _, value: [value], name="author")
    [reference] = describe(space).references
    assert (reference.name, reference.source, reference.target) == ("author", "Note", "User")
    assert reference.required
    text = written(Model("mentions", (space,)).described(), Format.MARKDOWN)
    assert "| Refers to | [`user:<user>`](#mentions-User) by author, which must exist |" in text
    assert "| Referred to by | [`note:<note>`](#mentions-Note) by author |" in text
