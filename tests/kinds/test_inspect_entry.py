"""One entry of a collection, read as `inspect` reads the whole."""

from __future__ import annotations

import pytest

from keywright import Id, Keyspace, Map, Secret, Set, SortedSet, Value
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
