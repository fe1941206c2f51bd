"""Members of stored JSON and MessagePack that the declared type does not have."""

from __future__ import annotations

import dataclasses
from typing import Any, TypedDict

import msgspec
import pytest

from keywright.keyspace.codecs.members import undeclared_members


class Room(msgspec.Struct):
    name: str


class Guest(msgspec.Struct, rename="camel"):
    first_name: str
    room: Room | None = None
    companions: list[Guest] = []


class Cat(msgspec.Struct, tag=True):
    lives: int


class Dog(msgspec.Struct, tag="dog"):
    tricks: list[str]


class Pair(msgspec.Struct, array_like=True):
    left: Room
    right: Room


@dataclasses.dataclass
class Point:
    x: int


class Options(TypedDict, total=False):
    depth: int


ROOM: dict[str, Any] = {"name": "a"}


@pytest.mark.parametrize(
    ("hint", "value", "found"),
    [
        (Room, ROOM, []),
        (Room, {**ROOM, "password": "x", "age": 1}, ["age", "password"]),
        (Guest, {"firstName": "a", "room": {**ROOM, "key": 1}}, ["room.key"]),
        (Guest, {"firstName": "a", "room": None}, []),
        (Guest, {"firstName": "a", "companions": [{"firstName": "b", "x": 1}]}, ["companions[].x"]),
        (list[Room], [ROOM, {**ROOM, "x": 1}], ["[].x"]),
        (dict[str, Room], {"one": {**ROOM, "x": 1}}, ["*.x"]),
        (tuple[int, Room], [1, {**ROOM, "x": 1}], ["[].x"]),
        (Cat | Dog, {"type": "Cat", "lives": 9}, []),
        (Cat | Dog, {"type": "dog", "tricks": [], "lives": 9}, ["lives"]),
        (Room | int, 7, []),
        (Room | None, {**ROOM, "x": 1}, ["x"]),
        (Pair, [ROOM, {**ROOM, "x": 1}], ["[].x"]),
        (Point, {"x": 1, "y": 2}, ["y"]),
        (Options, {"depth": 1, "width": 2}, ["width"]),
    ],
    ids=str,
)
@pytest.mark.parametrize("form", [msgspec.json, msgspec.msgpack], ids=["json", "msgpack"])
def test_undeclared_members_are_found_at_any_depth(
    form: Any, hint: Any, value: Any, found: list[str]
) -> None:
    search = undeclared_members(hint, form.Decoder)
    assert search is not None
    assert search(form.encode(value)) == found


@pytest.mark.parametrize("hint", [int, list[str], dict[str, int], Any, str | None, bytes])
def test_a_type_without_objects_is_not_searched(hint: Any) -> None:
    assert undeclared_members(hint, msgspec.json.Decoder) is None


def test_malformed_bytes_have_no_undeclared_members() -> None:
    search = undeclared_members(Room, msgspec.json.Decoder)
    assert search is not None
    assert search(b"{") == []


def test_the_number_of_paths_is_bounded() -> None:
    search = undeclared_members(Room, msgspec.json.Decoder)
    assert search is not None
    assert len(search(msgspec.json.encode({f"x{n}": n for n in range(10_000)}))) == 20
