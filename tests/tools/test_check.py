"""The report of a check: proofs and findings."""

from __future__ import annotations

from typing import Annotated

from keywright import Id, Keyspace, Plain, Set, Value, check, many_to_one
from keywright.tools.check import prove, prove_model
from keywright.tools.model import Model


def sound() -> Keyspace:
    space = Keyspace("sound", "Nothing is wrong here.")

    class Holder(Value[Id], key="holder:<item>", space=space):
        """The holder of an item."""

        item: Id

    class Items(Set[Id], key="items:<owner>", space=space):
        """The items of a holder."""

        owner: Id

    many_to_one(Holder, inverse=Items)
    return space


def overlapping() -> Keyspace:
    space = Keyspace("overlapping", "Two templates make one name.")

    class Event(Value[str], key="event:<event>", space=space):
        """An event, whose id may hold a colon."""

        event: Annotated[str, Plain(extra=":")]

    class Series(Value[str], key="event:<event>:series", space=space):
        """Its series."""

        event: Id

    return space


def test_a_sound_keyspace_is_proved_and_counted() -> None:
    report = prove(sound())
    assert report.proved
    assert (report.keys, report.relations) == (2, 1)
    assert {proof.proved for proof in report.proofs} == {True}
    assert [finding.severity for finding in report.findings] == ["note"]


def test_the_report_has_exactly_the_findings_of_check() -> None:
    for space in (sound(), overlapping()):
        assert list(prove(space).findings) == check(space)


def test_the_text_names_every_proof_and_ends_with_the_verdict() -> None:
    report = prove(sound())
    text = report.as_text()
    assert text.startswith("sound: 2 keys, 1 relation\n")
    assert all(f"proved  {proof.name}: {proof.statement}" in text for proof in report.proofs)
    assert "1 note:" in text
    assert text.endswith("sound is proved.")


def test_the_text_of_a_finding_has_template_reason_and_counterexample() -> None:
    report = prove(overlapping())
    text = report.as_text()
    (finding,) = report.findings
    assert not report.proved
    assert "FAILED  names parse back" in text
    assert f"  {finding.template}\n    {finding.reason} [overlapping-templates]\n    for example: " in text
    assert text.endswith("overlapping is not proved.")


def test_the_data_has_the_same() -> None:
    data = prove(overlapping()).as_data()
    assert data["proved"] is False
    assert data["findings"][0]["code"] == "overlapping-templates"
    assert ":series" in data["findings"][0]["counterexample"]
    assert [proof["name"] for proof in data["proofs"] if not proof["proved"]] == ["names parse back"]


def test_a_model_of_several_keyspaces_has_a_report_of_their_union() -> None:
    other = Keyspace("other", "Shares a name.")

    class Held(Value[str], key="holder:<item>", space=other):
        """The same name."""

        item: Id

    assert len(prove_model(Model("alone", (sound(),)))) == 1
    *_, union = prove_model(Model("both", (sound(), other)))
    assert (union.keyspace, union.keys, union.proved) == ("the union of sound, other", 3, False)
    assert [finding.code for finding in union.errors] == ["overlapping-keyspaces"]
    assert union.as_text().endswith("the union of sound, other is not proved.")
