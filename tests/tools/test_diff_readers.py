"""What `diff` says about a running reader in another language, and what such a reader meets."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Annotated, Any, Literal

import msgspec
import pytest

from declaring import key_class
from keywright import I64, U64, EpochMs, Id, Keyspace, Pattern, Plain, Record, Value, expires_in
from keywright.keyspace.codecs import CodecError
from keywright.tools import Model
from keywright.tools.diff import diff
from keywright.tools.lock import parsed_lock, version_of
from keywright.tools.schema import keyspaces_from_schema, parsed_schema, schema_of, schema_text


class Old(msgspec.Struct):
    name: str
    age: int | None = None


class More(msgspec.Struct):
    name: str
    age: int | None = None
    mail: str = "m"


class Fewer(msgspec.Struct):
    name: str


class Nameless(msgspec.Struct):
    age: int | None = None


class NameMayLack(msgspec.Struct):
    name: str | None = None
    age: int | None = None


class AgeNeeded(msgspec.Struct):
    name: str
    age: int = msgspec.field()


class Closed(msgspec.Struct, forbid_unknown_fields=True):
    name: str


class ClosedMore(msgspec.Struct, forbid_unknown_fields=True):
    name: str
    mail: str = "m"


def value(hint: Any) -> Callable[[Keyspace], type[Any]]:
    return lambda space: key_class(space, "thing:<id>", {"id": Id}, base=Value.__class_getitem__(hint))  # type: ignore[attr-defined]


def record(hint: Any) -> Callable[[Keyspace], type[Any]]:
    return lambda space: key_class(space, "thing:<id>", {"id": Id}, base=Record.__class_getitem__(hint))  # type: ignore[attr-defined]


def named(hint: Any, template: str = "thing:<id>") -> Callable[[Keyspace], type[Any]]:
    return lambda space: key_class(space, template, {"id": hint}, base=Value[int])


def model(declare: Callable[[Keyspace], type[Any]]) -> Model:
    space = Keyspace("shop", "A shop.")
    declare(space)
    return Model("shop", (space,))


CASES = [
    ("another codec", value(int), value(Annotated[Any, EpochMs()]), None, True),
    ("a type that the former one does not read", value(int), value(str), "seven", True),
    ("one more choice", value(Literal["a", "b"]), value(Literal["a", "b", "c"]), "c", True),
    ("one choice less", value(Literal["a", "b"]), value(Literal["a", "c"]), "c", True),
    ("fewer choices", value(Literal["a", "b"]), value(Literal["a"]), "a", False),
    ("a member more, in JSON", value(Old), value(More), More("n", 1), False),
    ("an optional member less", value(Old), value(Fewer), Fewer("n"), False),
    ("a required member less", value(Old), value(Nameless), Nameless(1), True),
    ("a required member that may be absent", record(Old), record(NameMayLack), NameMayLack(None, 1), True),
    ("an optional member that is required", record(Old), record(AgeNeeded), AgeNeeded("n", 1), False),
    ("a member more, in a closed object", value(Closed), value(ClosedMore), ClosedMore("n"), True),
    ("a member more, in a hash", record(Old), record(More), More("n", 1), False),
    ("a required member less, in a hash", record(Old), record(Nameless), Nameless(1), True),
]


@pytest.mark.parametrize(("what", "old", "new", "written", "breaks"), CASES, ids=[case[0] for case in CASES])
def test_the_verdict_on_values_is_what_a_reader_with_the_old_schema_meets(
    what: str, old: Any, new: Any, written: Any, breaks: bool
) -> None:
    found = diff(version_of(model(old)).description, version_of(model(new)).description)
    assert found.breaks_readers is breaks, found.as_text()
    if written is None:
        return
    reader = next(iter(_restored(model(old)).spaces[0]))
    writer = next(iter(model(new).spaces[0]))
    assert _refuses(reader, writer, written) is breaks


def _restored(declared: Model) -> Model:
    schema = parsed_schema(schema_text(schema_of(declared)).encode(), "the old file")
    return Model(schema.model, keyspaces_from_schema(schema))


def _refuses(reader: Any, writer: Any, written: Any) -> bool:
    try:
        if writer.kind == "record":
            reader.declaration.decode_members(
                reader("a"), writer.declaration.encode_members(writer("a"), written)
            )
        else:
            reader.declaration.decode(writer.declaration.encode(written))
    except CodecError:
        return True
    return False


NAMES = [
    ("more texts", named(Annotated[str, Pattern("[a-z]{2}")]), named(Id), True, "such as"),
    ("fewer texts", named(Id), named(Annotated[str, Pattern("[a-z]{2}")]), False, "every text that is left"),
    ("other texts", named(U64), named(I64), True, "such as '-1'"),
    ("longer texts", named(Annotated[str, Plain(max_length=2)]), named(Id), True, "such as"),
    ("another template", named(Id), named(Id, "things:<id>"), True, "it looks for the former names"),
]


@pytest.mark.parametrize(("what", "old", "new", "breaks", "because"), NAMES, ids=[case[0] for case in NAMES])
def test_the_verdict_on_names_follows_from_their_texts(
    what: str, old: Any, new: Any, breaks: bool, because: str
) -> None:
    found = diff(version_of(model(old)).description, version_of(model(new)).description)
    assert [change.readers.breaking for change in found.changes] == [breaks]
    assert because in found.changes[0].readers.because
    assert (
        f"A running reader in another language breaks: {'yes' if breaks else 'no'}, because"
        in found.as_text()
    )


def test_what_a_reader_does_not_look_at_does_not_break_it() -> None:
    def expiring(space: Keyspace) -> type[Any]:
        expiry = expires_in(timedelta(days=1))
        key_class(space, "other:<id>", {"id": Id}, base=Value[int], name="Other")
        return key_class(
            space, "thing:<id>", {"id": Id}, doc="Said otherwise.", name="Renamed", expiry=expiry
        )

    found = diff(version_of(model(named(Id))).description, version_of(model(expiring)).description)
    assert len(found.changes) == 4
    assert not found.breaks_readers
    data = found.as_data()
    assert data["breaks_readers"] is False
    assert all(set(change["readers"]) == {"breaking", "because"} for change in data["changes"])


def test_two_schema_files_are_compared_without_the_program() -> None:
    files = [schema_text(schema_of(model(value(hint)))).encode() for hint in (Old, Nameless)]
    old, new = (parsed_lock(data, "a file").description for data in files)
    assert diff(old, old).changes == ()
    (change, *_) = diff(old, new).changes
    assert (change.what, change.readers.breaking) == (
        "has no member name any more; a stored one is ignored",
        True,
    )
