"""References: where a value leads, to a key or into a map or set, and what is proved of them."""

from __future__ import annotations

import pytest

from keywright import Id, Key, Keyspace, Map, Set, Value, check, refers
from keywright.errors import DeclarationError
from keywright.keyspace.references import Place
from keywright_discord.drc import drc
from keywright_discord.spectacles import spectacles
from keywright_meetup import meetup


def library() -> tuple[Keyspace, type[Key], type[Key], type[Key], type[Key]]:
    space = Keyspace("library", "Loans of a library.")

    class Loan(Value[dict[str, str]], key="loan:<loan>", space=space):
        """A loan, with whose it is."""

        loan: Id

    class Reader(Value[str], key="reader:<reader>", space=space):
        """A reader."""

        reader: Id

    class Titles(Map[Id, str], key="titles", space=space):
        """Titles by book."""

    class Late(Set[Id], key="late:<branch>", space=space):
        """The loans of a branch that are late."""

        branch: Id

    return space, Loan, Reader, Titles, Late


def test_a_reference_leads_to_keys() -> None:
    space, loan, reader, _, _ = library()
    lent_to = refers(loan, reader, lambda _, found: [found["reader"]], name="reader")
    assert list(lent_to.places(loan("l1"), {"reader": "ann"})) == [Place(reader("ann"))]  # type: ignore[call-arg]
    assert space.references == [lent_to]
    assert lent_to.required


def test_a_reference_leads_into_a_map_or_a_set() -> None:
    _, loan, _, titles, late = library()
    title = refers(loan, titles, lambda _, found: [((), found["book"])], name="title")
    (place,) = title.places(loan("l1"), {"book": "b1"})  # type: ignore[call-arg]
    assert place == Place(titles(), "b1")
    assert place.stored_field == b"b1"
    overdue = refers(
        loan, late, lambda key, found: [(found["branch"], key.loan)], name="late", required=False
    )
    (listed,) = overdue.places(loan("l1"), {"branch": "north"})  # type: ignore[call-arg]
    assert (listed.key, listed.stored_field) == (late("north"), b"l1")  # type: ignore[call-arg]


def test_a_reference_into_another_keyspace_is_a_finding() -> None:
    space, loan, _, _, _ = library()
    _, _, foreign, _, _ = library()
    refers(loan, foreign, lambda _, found: [found["reader"]], name="reader")
    assert [finding.code for finding in check(space)] == ["foreign-reference"]


def test_two_references_of_one_name_are_a_finding() -> None:
    space, loan, reader, _, _ = library()
    for _ in range(2):
        refers(loan, reader, lambda _, found: [found["reader"]], name="reader")
    assert {finding.code for finding in check(space)} == {"reference-twice"}


def test_a_reference_has_a_name() -> None:
    _, loan, reader, _, _ = library()
    with pytest.raises(DeclarationError, match="has no name"):
        refers(loan, reader, lambda *_: [], name="")


@pytest.mark.parametrize("space", [drc, spectacles, meetup], ids=lambda space: space.name)
def test_the_references_of_shipped_models_are_sound(space: Keyspace) -> None:
    assert space.references
    assert [finding for finding in check(space) if "reference" in finding.code] == []


def test_an_optional_reference_may_lead_to_another_keyspace() -> None:
    space, loan, *_ = library()
    _, _, foreign, _, _ = library()
    refers(loan, foreign, lambda _, found: [found["reader"]], name="reader", required=False)
    assert check(space) == []
