"""One entry of a collection, read as `inspect` reads the whole."""

from __future__ import annotations

from typing import Annotated, Any

import pytest

from keywright import Id, Json, Keyspace, Map, Secret, Set, SortedSet, Value
from keywright.errors import StoredDataError
from keywright.testing.runs import Raw, Run
from keywright.tools.describe.inspection import Hidden, inspect, inspect_entry

pantry = Keyspace("pantry", "What is in the pantry.")


class Jars(Map[Id, int], key="jars", space=pantry):
    """How full each jar is."""


class Recipes(Map[Id, Secret[str]], key="recipes", space=pantry):
    """Family recipes."""


class Spices(Set[Id], key="spices", space=pantry):
    """Which there are."""


class Shelves(SortedSet[Id, int], key="shelves", space=pantry):
    """By height."""


class Letters(Value[dict[str, str]], key="letter:<letter>", space=pantry):
    """A letter, whose seal is nobody's business."""

    letter: Id
    hides = ("seal",)


def test_a_field_that_a_key_hides_is_stored_and_not_shown(run: Run) -> None:
    run(Letters("a").set({"to": "Ann", "seal": "sesame"}))
    found = run(inspect(Letters("a")))
    assert found is not None
    assert found.value == {"to": "Ann", "seal": Hidden.SECRET}
    assert run(Letters("a").get()) == {"to": "Ann", "seal": "sesame"}


class Parcels(Value[Annotated[Any, Json(Any)]], key="parcel:<parcel>", space=pantry):
    """Letters in letters."""

    parcel: Id
    hides = ("seal",)


def test_a_hidden_field_is_hidden_at_every_depth(run: Run, raw: Raw) -> None:
    sealed = {"seal": {"word": "sesame"}}
    run(Parcels("a").set([{"inner": sealed, "many": [[sealed]], "to": "Ann"}, sealed]))
    found = run(inspect(Parcels("a")))
    assert found is not None
    hidden = {"seal": Hidden.SECRET}
    assert found.value == [{"inner": hidden, "many": [[hidden]], "to": "Ann"}, hidden]
    raw("SET", "parcel:deep", "[" * 900 + '{"seal": "sesame"}' + "]" * 900)
    deep: Any = run(inspect(Parcels("deep")))
    deep = deep.value
    while isinstance(deep, list):
        (deep,) = deep
    assert deep == hidden


def test_a_call_and_an_error_of_a_key_with_hidden_fields_show_no_value(run: Run, raw: Raw) -> None:
    assert repr(Letters("a").set({"seal": "sesame"})) == "<SET Letters(letter='a') …>"
    raw("SET", "letter:b", '{"seal": "sesame", broken')
    for call in (Letters("b").get(), inspect(Letters("b"))):
        with pytest.raises(StoredDataError) as caught:
            run(call)
        assert "sesame" not in str(caught.value)
        assert "sesame" not in str(caught.value.__cause__)


def test_an_entry_is_decoded_as_declared(run: Run) -> None:
    run(Jars().put("salt", 7))
    run(Spices().add("mace"))
    run(Shelves().add("top", 0))
    run(Recipes().put("cake", Secret("flour")))
    found = [
        run(inspect_entry(key, entry))
        for key, entry in ((Jars(), b"salt"), (Spices(), b"mace"), (Shelves(), b"top"), (Recipes(), b"cake"))
    ]
    assert [each and each.value for each in found] == [
        [("salt", 7)],
        ["mace"],
        [("top", 0)],
        [("cake", Hidden.SECRET)],
    ]


def test_an_entry_that_is_not_there_is_none(run: Run) -> None:
    run(Jars().put("salt", 7))
    assert [run(inspect_entry(key, b"no")) for key in (Jars(), Spices(), Shelves())] == [None, None, None]


def test_an_entry_that_does_not_decode_is_said_to_be_so(run: Run, raw: Raw) -> None:
    raw("HSET", "jars", "salt", "seven")
    with pytest.raises(StoredDataError, match="seven"):
        run(inspect_entry(Jars(), b"salt"))
