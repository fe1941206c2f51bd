"""The operations that keys of every kind have."""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Annotated

import pytest

from keywright import (
    I64,
    BitFields,
    Bitmap,
    Counter,
    Derived,
    FreeText,
    Geo,
    Hex,
    HyperLogLog,
    JsonDocument,
    Key,
    Keyspace,
    List,
    Map,
    Plain,
    Record,
    RestOfName,
    Set,
    SnowflakeStr,
    SortedSet,
    Stream,
    Value,
    before_first,
    preview,
    sha256_hex,
)
from keywright.errors import DeclarationError, UnknownKeyError, VariableError
from keywright.testing.runs import Raw, Run

space = Keyspace("shelf", "Anything with a name.")


class Label(Value[str], key="label:<floor>:<text>", space=space):
    """A label; the class names its variables in another order than the template."""

    text: FreeText
    floor: I64


class Path_(Value[str], key="path:<path>", space=space):  # noqa: N801  # Path is pathlib's
    """A note under a path."""

    path: RestOfName


class Friend(Value[str], key="friend:<person>:<friend>", space=space):
    """A friend of somebody."""

    person: I64
    friend: SnowflakeStr


class Page(Value[str], key="page:{<site>}:<digest>", space=space):
    """A page by its address; the pages of a site share a slot."""

    site: Annotated[str, Plain("."), Derived("address", before_first("/"))]
    digest: Annotated[str, Hex(64), Derived("address", sha256_hex)]


def test_exists_and_delete_return_whether_the_key_existed(run: Run, raw: Raw) -> None:
    raw("SET", "label:-1:a", "x")
    assert run(Label("a", -1).exists()) is True
    assert run(Label("a", -1).delete()) is True
    assert run(Label("a", -1).delete()) is False
    assert run(Label("a", -1).exists()) is False


def test_the_expiry_is_set_read_and_removed(run: Run, raw: Raw) -> None:
    raw("SET", "label:0:a", "x")
    label = Label("a", 0)
    assert run(label.ttl()) is None
    assert run(label.expire(timedelta(minutes=1))) is True
    left = run(label.ttl())
    assert left is not None
    assert timedelta(seconds=50) < left <= timedelta(minutes=1)
    moment = datetime(2100, 1, 1, tzinfo=UTC)
    assert run(label.expire_at(moment)) is True
    assert raw.expires_at("label:0:a") == pytest.approx(moment.timestamp(), abs=1)
    assert run(label.persist()) is True
    assert run(label.persist()) is False
    assert raw("PTTL", "label:0:a") == -1


def test_a_missing_key_has_no_expiry_and_takes_none(run: Run) -> None:
    assert run(Label("a", 0).ttl()) is None
    assert run(Label("a", 0).expire(timedelta(minutes=1))) is False


def test_the_server_is_asked_about_the_key(run: Run, raw: Raw) -> None:
    raw("SET", "label:0:a", "x")
    assert run(Label("a", 0).touch()) is True
    assert run(Label("b", 0).touch()) is False
    assert run(Label("a", 0).stored_type()) == "string"
    assert run(Label("b", 0).stored_type()) == "none"
    memory = run(Label("a", 0).memory())
    assert memory is not None
    assert memory > 0
    assert run(Label("b", 0).memory()) is None
    assert run(Label("a", 0).dump()) == raw("DUMP", "label:0:a")
    assert run(Label("b", 0).dump()) is None


def test_free_text_is_escaped_and_parses_back(run: Run, raw: Raw) -> None:
    label = Label("50% {off}: now", -3)
    run(label.set("x"))
    assert raw.names() == {b"label:-3:50%25%20%7Boff%7D%3A%20now"}
    assert space.parse(b"label:-3:50%25%20%7Boff%7D%3A%20now") == label
    assert run.scan(Label) == [label]
    assert run.scan(Label, floor=-3) == [label]
    assert run.scan(Label, floor=3) == []


def test_the_rest_of_a_name_keeps_its_colons(run: Run, raw: Raw) -> None:
    run(Path_("a:b:c d").set("x"))
    assert raw.names() == {b"path:a:b:c d"}
    assert run.scan(Path_) == [Path_("a:b:c d")]


def test_derived_variables_come_from_one_source(run: Run, raw: Raw) -> None:
    page = Page.of("example.org/a")
    assert page.site == "example.org"
    run(page.set("x"))
    assert raw.names() == {b"page:{example.org}:" + sha256_hex("example.org/a").encode()}
    assert space.parse(raw.names().pop()) == page


def test_a_key_without_derived_variables_has_no_source() -> None:
    with pytest.raises(DeclarationError):
        Label.of("a")


def test_an_unknown_name_is_not_a_key() -> None:
    assert space.find(b"nothing:1") is None
    assert Label.parse(b"label:x:y") is None
    with pytest.raises(UnknownKeyError) as unknown:
        space.parse(b"label:x:y")
    assert unknown.value.near == "label:<floor>:<text>"


def test_keys_are_values() -> None:
    assert Label("a", 1) == Label("a", 1)
    assert len({Label("a", 1), Label("a", 1), Label("a", 2)}) == 2
    assert repr(Label("a", 1)) == "Label(text='a', floor=1)"
    assert Label.made(("a", 1)) == Label("a", 1)
    assert Label.names([("a", 1), Label("b", 2)]) == [b"label:1:a", b"label:2:b"]
    with pytest.raises(AttributeError):
        Label("a", 1).floor = 2  # type: ignore[misc]  # frozen


def test_names_that_differ_in_the_last_variable_are_those_of_each_key() -> None:
    assert Label.names_along(("a",), [1, -2]) == [b"label:1:a", b"label:-2:a"]
    assert Path_.names_along((), ["b:c", "d e"], b"x:") == [b"x:path:b:c", b"x:path:d e"]
    assert Friend.names_along((7,), ["1", "20"]) == [b"friend:7:1", b"friend:7:20"]
    assert Friend.names_along((7,), [str(2**64 - 1)]) == [b"friend:7:18446744073709551615"]
    assert Friend.names_along((7,), []) == []


@pytest.mark.parametrize("wrong", ["", "01", "1a", "１", str(2**64), 5, None])  # noqa: RUF001  # a wide digit
def test_one_wrong_id_among_many_is_named(wrong: object) -> None:
    with pytest.raises(VariableError) as refused:
        Friend.names_along((7,), ["1", "2", wrong, "3"])
    assert refused.value.found == wrong


def test_a_preview_needs_no_server() -> None:
    (wire,) = preview(Label("a", 1).set("x"))
    assert wire.arguments == (b"SET", b"label:1:a", b"x")
    assert wire.name == b"label:1:a"


KINDS: list[tuple[type[Key], str]] = [
    (Key, "key"),
    (Value, "value"),
    (Counter, "counter"),
    (Record, "record field_expiry"),
    (Map, "map field_expiry"),
    (Set, "set"),
    (SortedSet, "sorted_set"),
    (List, "list"),
    (Stream, "stream"),
    (HyperLogLog, "hyperloglog"),
    (Bitmap, "bitmap"),
    (Geo, "geo"),
    (BitFields, "bit_fields"),
    (JsonDocument, "json_document json_document_on_a_server"),
]


def _public_methods(kind: type[Key]) -> Iterator[str]:
    for name, member in vars(kind).items():
        if not name.startswith("_") and (callable(member) or isinstance(member, classmethod)):
            yield name


@pytest.mark.parametrize(("kind", "files"), KINDS)
def test_every_public_method_of_a_kind_is_run(kind: type[Key], files: str) -> None:
    text = "".join(Path(__file__).with_name(f"test_{file}.py").read_text() for file in files.split())
    untested = [name for name in _public_methods(kind) if not re.search(rf"\.{name}\b", text)]
    assert untested == []
