"""The changes between two declarations, and which of them are breaking."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Annotated, Any, Literal

import msgspec
import pytest

from declaring import key_class
from keywright import (
    I64,
    Id,
    Json,
    Keyspace,
    MessagePack,
    Plain,
    Record,
    Sealed,
    Set,
    SortedSet,
    Upgrade,
    Value,
    expires_in,
    many_to_one,
    one_to_one,
)
from keywright.errors import UsageError
from keywright.tools.diff import Severity, diff
from keywright.tools.lock import read_lock, version_of, write_lock
from keywright.tools.model import Model, ModelDescription
from keywright.tools.plugins import load_model, model_names

BREAKING, CAUTION, COMPATIBLE = Severity.BREAKING, Severity.CAUTION, Severity.COMPATIBLE


def made(*declare: Callable[[Keyspace], Any], **options: Any) -> ModelDescription:
    space = Keyspace("shop", "What a shop has.", **options)
    for each in declare:
        each(space)
    return Model("shop", (space,)).described()


def former_lock(described: ModelDescription) -> bytes:
    """Return a lock file of format 1, as earlier versions wrote it."""
    return msgspec.json.encode({"format": 1, "model": described})


def key(
    base: Any, template: str = "order:<order>", hint: Any = Id, **options: Any
) -> Callable[[Keyspace], Any]:
    variables = {"order": hint} if "<order>" in template else {}
    return lambda space: key_class(space, template, variables, base=base, **options)


def shape(**members: Any) -> Any:
    fields = [(name, *hint) if isinstance(hint, tuple) else (name, hint) for name, hint in members.items()]
    return msgspec.defstruct("Order", fields)


def record(shape: Any) -> Any:
    return Record.__class_getitem__(shape)  # type: ignore[attr-defined]  # a type made at run time


def json_of(shape: Any) -> Any:
    return Value.__class_getitem__(Annotated[shape, Json])  # type: ignore[attr-defined]  # the same


def severities(old: ModelDescription, new: ModelDescription) -> list[tuple[Severity, str]]:
    return [(change.severity, change.what) for change in diff(old, new).changes]


def only(old: ModelDescription, new: ModelDescription) -> tuple[Severity, str]:
    [change] = severities(old, new)
    return change


@pytest.mark.parametrize("model", model_names())
def test_a_model_does_not_differ_from_itself_nor_from_its_lock(model: str, tmp_path: Path) -> None:
    now = version_of(load_model(model))
    path = tmp_path / "lock.json"
    write_lock(path, now)
    locked = read_lock(path)
    assert locked.schema == now.schema
    assert diff(locked.description, now.description).changes == ()
    path.write_bytes(former_lock(now.description))
    assert read_lock(path).description == now.description
    with pytest.raises(UsageError, match="Name a MODEL"):
        write_lock(path, read_lock(path))


def test_a_new_key_is_compatible_and_one_that_is_gone_breaks() -> None:
    one, two = key(Value[int], "a"), key(Value[int], "b", name="B")
    assert only(made(one), made(one, two)) == (COMPATIBLE, "is new")
    assert only(made(one, two), made(one)) == (BREAKING, "is not declared any more")


def test_another_template_breaks_unless_an_upgrade_moves_stored_keys() -> None:
    old = made(key(Value[int], "order:<order>"))
    severity, what = only(old, made(key(Value[int], "orders:<order>")))
    assert (severity, "stored keys are not found" in what) == (BREAKING, True)

    def moving(space: Keyspace) -> None:
        before = Keyspace("before", "Before.")
        former = key_class(before, "order:<order>", {"order": Id}, base=Value[int])
        step = Upgrade("v1", lambda _: True, lambda stored, _: int(stored), lambda key: former(key.order))
        key_class(space, "orders:<order>", {"order": Id}, base=Value[int], upgrades=[step])

    assert [severity for severity, _ in severities(old, made(moving))] == [CAUTION, COMPATIBLE]


def test_a_former_name_takes_the_edge_off_the_rename_from_it_only() -> None:
    old = made(key(Value[int], "order:<order>"))
    moved = made(key(Value[int], "orders:{<order>}", moved_from="order:<order>"))
    assert diff(old, moved).compatible
    other = made(key(Value[int], "orders:{<order>}", moved_from="bestellung:<order>"))
    assert not diff(old, other).compatible


def test_a_renamed_class_changes_nothing_that_is_stored() -> None:
    change = only(made(key(Value[int], name="Order")), made(key(Value[int], name="Bestellung")))
    assert change == (COMPATIBLE, "the class is Bestellung, no longer Order")


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (Value[int], Set[Id]),
        (Value[int], Value[str]),
        (Value[Annotated[Any, Json]], Value[Annotated[Any, MessagePack]]),
        (Value[Annotated[str, Sealed]], Value[str]),
        (Set[Id], Set[I64]),
        (SortedSet[Id, int], SortedSet[Id, float]),
        (Value[Literal["a", "b"]], Value[Literal["a"]]),
    ],
)
def test_another_type_codec_or_seal_breaks(old: Any, new: Any) -> None:
    assert not diff(made(key(old)), made(key(new))).compatible


def test_another_alphabet_breaks_since_stored_names_may_not_parse() -> None:
    severity, what = only(made(key(Value[int])), made(key(Value[int], hint=I64)))
    assert severity is BREAKING
    assert what.startswith("<order> is a signed 64-bit integer")
    wider = made(key(Value[int], hint=Annotated[str, Plain(extra=":")]))
    assert not diff(made(key(Value[int])), wider).compatible


def test_a_further_choice_asks_for_caution() -> None:
    severity, what = only(made(key(Value[Literal["a"]])), made(key(Value[Literal["a", "b"]])))
    assert (severity, what) == (CAUTION, "what it holds may also be `b`")


def test_expiries_are_always_compatible() -> None:
    hour, day = expires_in(timedelta(hours=1)), expires_in(timedelta(days=1))
    fixed = expires_in(timedelta(hours=1), since="first write")
    for old, new in ((hour, day), (day, hour), (hour, None), (None, hour), (hour, fixed), (fixed, hour)):
        severity, what = only(made(key(Value[int], expiry=old)), made(key(Value[int], expiry=new)))
        assert severity is COMPATIBLE
        assert what.startswith("expires ")
        assert what.endswith("keys that have an expiry keep it" if new is fixed else "from its next write")


@pytest.mark.parametrize("stored", [record, json_of])
def test_members_come_and_go_by_whether_they_are_required(stored: Callable[[Any], Any]) -> None:
    small = made(key(stored(shape(name=str))))
    optional = made(key(stored(shape(name=str, note=(str | None, None)))))
    required = made(key(stored(shape(name=str, note=str))))
    assert only(small, optional) == (COMPATIBLE, "may have the new member note")
    assert only(small, required) == (BREAKING, "needs the new member note")
    assert only(required, small)[0] is CAUTION
    assert only(optional, small)[0] is COMPATIBLE
    assert not diff(optional, required).compatible
    assert diff(required, optional).compatible


def test_an_upgrade_step_makes_a_new_required_member_compatible() -> None:
    step = Upgrade("v1", lambda stored: b"note" not in stored, lambda stored, _: stored)
    old = made(key(record(shape(name=str))))
    new = made(key(record(shape(name=str, note=str)), upgrades=[step]))
    found = diff(old, new)
    assert found.compatible
    assert "needs the new member note; older data is upgraded from v1" in found.as_text()


def test_dropping_an_upgrade_breaks() -> None:
    step = Upgrade("v1", lambda _: False, lambda stored, _: stored)
    old, new = made(key(record(shape(name=str)), upgrades=[step])), made(key(record(shape(name=str))))
    assert only(old, new) == (BREAKING, "data of version v1 is not upgraded any more")


def test_a_renamed_struct_is_the_same_struct() -> None:
    one = msgspec.defstruct("One", [("name", str)])
    other = msgspec.defstruct("Other", [("name", str)])
    assert severities(made(key(json_of(one))), made(key(json_of(other)))) == []


def test_relations_that_come_ask_for_caution_and_ones_that_change_break() -> None:
    def keys(space: Keyspace) -> tuple[Any, Any, Any]:
        forward = key_class(space, "a:<a>", {"a": Id}, base=Value[Id], name="Forward")
        back = key_class(space, "b:<b>", {"b": Id}, base=Value[Id], name="Back")
        many = key_class(space, "c:<c>", {"c": Id}, base=Set[Id], name="Many")
        return forward, back, many

    def one(space: Keyspace) -> None:
        forward, back, _ = keys(space)
        one_to_one(forward, inverse=back)

    def several(space: Keyspace) -> None:
        forward, _, many = keys(space)
        many_to_one(forward, inverse=many)

    assert only(made(keys), made(one))[0] is CAUTION
    assert only(made(one), made(keys)) == (CAUTION, "is not kept any more: its sides may now disagree")
    assert {severity for severity, _ in severities(made(one), made(several))} == {CAUTION}


def test_another_prefix_or_version_breaks() -> None:
    one = key(Value[int])
    assert not diff(made(one, version="v1"), made(one, version="v2")).compatible


def test_the_worst_comes_first_and_the_verdict_last() -> None:
    old = made(key(Value[int], "a"), key(Value[int], "b", name="B"))
    text = diff(old, made(key(Value[int], "a"), key(Value[int], "c", name="C"))).as_text()
    assert text.splitlines()[0].startswith("breaking    b: is not declared any more")
    assert "shop: 1 of 2 changes break. A running reader in another language breaks." in text


def test_a_malformed_lock_file_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "lock.json"
    with pytest.raises(UsageError, match="Make it with --write"):
        read_lock(path)
    path.write_text('{"format": 1}')
    with pytest.raises(UsageError, match="is not a lock file"):
        read_lock(path)
    path.write_bytes(former_lock(made(key(Value[int]))).replace(b'"format":1', b'"format":3'))
    with pytest.raises(UsageError, match="has the format 3"):
        read_lock(path)
