"""Templates that make the same names: the one that yields does not own them, and the proof says which."""

from __future__ import annotations

from typing import Annotated

import pytest

from declaring import key_class
from keywright import U64, Bytes, Id, Key, Keyspace, Segment, Set, Value, check
from keywright.errors import UsageError
from keywright.keyspace.context import Context
from keywright.tools.audit.matcher import Matcher

queues = Keyspace("queues", "Jobs in queues, as BullMQ names them.")


class Waiting(Set[str], key="bull:<queue>:wait", space=queues):
    """The jobs that wait."""

    queue: Id


class Meta(Value[str], key="bull:<queue>:meta", space=queues):
    """The settings of a queue."""

    queue: Id


class Job(Value[str], key="bull:<queue>:<job>", space=queues, yields_to=[Waiting, Meta]):
    """One job; its id is any text but the names of the queue's own keys."""

    queue: Id
    job: Id


class Anything(Value[bytes], key="<name>", space=queues, fallback=True):
    """What else is stored."""

    name: Annotated[bytes, Bytes(b"")]


class Later(Value[str], key="later:<number>", space=queues):
    """Declared after the fallback, which yields to it all the same."""

    number: U64


CASES: list[tuple[bytes, Key]] = [
    (b"bull:mail:wait", Waiting("mail")),
    (b"bull:mail:meta", Meta("mail")),
    (b"bull:mail:17", Job("mail", "17")),
    (b"bull:mail:waiting", Job("mail", "waiting")),
    (b"bull:mail", Anything(b"bull:mail")),
    (b"bull:mail:a:b", Anything(b"bull:mail:a:b")),
    (b"later:7", Later(7)),
    (b"later:07", Anything(b"later:07")),
    (b"\xff\n", Anything(b"\xff\n")),
]


@pytest.mark.parametrize(("name", "key"), CASES)
def test_a_name_belongs_to_the_class_that_has_precedence(name: bytes, key: Key) -> None:
    assert queues.parse(name) == key
    assert bytes(key) == name
    assert [kind for kind in queues if kind.parse(name) is not None] == [type(key)]


def test_the_audit_matches_names_the_same_way() -> None:
    matcher = Matcher([queues], Context())
    for name, key in CASES:
        known = matcher.match(name)
        assert known is not None
        assert known.kind is type(key)
    groups, unknown = matcher.grouped([name for name, _ in CASES])
    assert unknown == []
    assert {known.kind: sorted(names) for known, names in groups.items()} == {
        kind: sorted(name for name, key in CASES if type(key) is kind)
        for kind in (Waiting, Meta, Job, Anything, Later)
    }


def test_a_name_of_another_class_cannot_be_made() -> None:
    with pytest.raises(UsageError, match=r"'bull:mail:wait' is a name of Waiting.* over Job.*Waiting\("):
        Job("mail", "wait")
    with pytest.raises(UsageError, match="is a name of Later"):
        Anything(b"later:7")
    with pytest.raises(UsageError, match="is a name of Meta"):
        Job.names([("mail", "meta")])
    with pytest.raises(UsageError, match="is a name of Meta"):
        Job.names_along(("mail",), ["1", "meta"])
    assert Job.names_along(("mail",), ["1", "2"]) == [b"bull:mail:1", b"bull:mail:2"]


def test_the_proof_shows_who_has_precedence() -> None:
    findings = check(queues)
    assert {finding.severity for finding in findings} == {"note"}
    shown = [str(finding) for finding in findings]
    assert "'bull:a:wait' is a Waiting, not a Job" in "\n".join(shown)
    assert any("no other template makes" in each for each in shown)


def declared(*templates: str) -> Keyspace:
    space = Keyspace("s", "d")
    kinds: list[type[Key]] = []
    for number, template in enumerate(templates):
        variables = {"x": Annotated[str, Segment()]} if "<x>" in template else {}
        superiors = tuple(kinds) if number == len(templates) - 1 else ()
        kinds.append(key_class(space, template, variables, yields_to=superiors))
    return space


def test_a_precedence_without_a_common_name_is_found() -> None:
    assert [finding.code for finding in check(declared("a", "b:<x>"))] == ["needless-precedence"]


def test_a_template_that_is_left_no_name_is_found() -> None:
    assert [finding.code for finding in check(declared("a:<x>", "a:b"))] == [
        "precedence",
        "unreachable-template",
    ]


def test_a_precedence_over_another_keyspace_is_found() -> None:
    space = Keyspace("s", "d")
    key_class(space, "<x>", {"x": str}, yields_to=Meta)
    assert "foreign-precedence" in {finding.code for finding in check(space)}


def test_an_overlap_without_a_precedence_is_still_found() -> None:
    space = Keyspace("s", "d")
    key_class(space, "a:<x>", {"x": str})
    key_class(space, "<x>:a", {"x": str})
    key_class(space, "<x>", {"x": Annotated[str, Segment("")]}, fallback=True)
    assert [finding.code for finding in check(space) if finding.severity == "error"] == [
        "overlapping-templates"
    ]
