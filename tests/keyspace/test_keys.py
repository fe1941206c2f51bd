"""Keys are values of types: their names parse back, and a class that cannot mean anything is refused."""

from __future__ import annotations

import copy
import pickle
from typing import Annotated, Any

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from declaring import VARIABLES, key_class, key_classes
from keywright import (
    Counter,
    Derived,
    FreeText,
    Hex,
    Id,
    Keyspace,
    Set,
    SnowflakeId,
    SortedSet,
    Value,
    check,
    sha256_hex,
)
from keywright.errors import DeclarationError, UnknownKeyError, VariableError
from keywright.keyspace.template import Template

space = Keyspace("library", "Books and who has them.")


class Loan(Value[int], key="loan:<reader>:<book>", space=space):
    """Until when a reader has a book."""

    book: Id
    reader: SnowflakeId


class Desk(Counter, key="desk", space=space):
    """Who comes to the desk."""


@settings(max_examples=150, deadline=None)
@given(st.data())
def test_a_key_parses_back_from_its_name(data: st.DataObject) -> None:
    made, variables = data.draw(key_classes(Keyspace("s", "d")))
    assume(made._template.two_readings() is None)
    values = {name: data.draw(strategy) for name, strategy in variables.items()}
    key = made(**values)
    back = made.parse(key._name)
    assert back == key
    assert {name: getattr(back, name) for name in values} == values
    assert made(*values.values()) == key
    assert made.names([tuple(values.values())]) == [key._name]


@settings(max_examples=150, deadline=None)
@given(st.data())
def test_no_two_keys_of_an_accepted_keyspace_share_a_name(data: st.DataObject) -> None:
    made_in = Keyspace("s", "d")
    classes = [data.draw(key_classes(made_in)) for _ in range(data.draw(st.integers(1, 3)))]
    assume(not check(made_in))
    keys = {
        made(**{name: data.draw(strategy) for name, strategy in variables.items()})
        for made, variables in classes
        for _ in range(4)
    }
    assert len({key._name for key in keys}) == len(keys)
    for key in keys:
        assert made_in.parse(key._name) == key


@pytest.mark.parametrize("hint", list(VARIABLES), ids=str)
def test_every_type_of_variable_refuses_what_is_not_of_it(hint: Any) -> None:
    made = key_class(Keyspace("s", "d"), "k:<v>", {"v": hint})
    for wrong in (None, b"a", 1.5, True, ["a"], ""):
        if type(wrong) is hint:
            continue
        with pytest.raises(VariableError, match="<v> of 'k:<v>' must be"):
            made(wrong)


def test_the_constructor_takes_variables_in_the_order_of_the_class() -> None:
    loan = Loan("emma", 7)
    assert loan._name == b"loan:7:emma"
    assert Loan(reader=7, book="emma") == loan
    assert Loan.parse(b"loan:7:emma") == loan
    assert (loan.book, loan.reader) == ("emma", 7)


def test_a_key_without_variables_needs_none() -> None:
    assert Desk()._name == b"desk"
    assert Desk.parse(b"desk") == Desk()
    assert Desk.parse(b"desk:1") is None


def test_variables_cannot_be_changed() -> None:
    loan = Loan("emma", 7)
    with pytest.raises(AttributeError):
        loan.book = "ulysses"  # type: ignore[misc]  # that it is refused at run time too
    with pytest.raises(AttributeError):
        del loan.book
    assert loan._name == b"loan:7:emma"


def test_keys_are_equal_by_class_and_name() -> None:
    twin = key_class(Keyspace("s", "d"), "loan:<reader>:<book>", {"book": Id, "reader": SnowflakeId})
    assert Loan("emma", 7) == Loan("emma", 7)
    assert hash(Loan("emma", 7)) == hash(Loan("emma", 7))
    assert Loan("emma", 7) != Loan("emma", 8)
    assert Loan("emma", 7) != twin("emma", 7)
    assert Loan("emma", 7) != "loan:7:emma"
    assert len({Loan("emma", 7), Loan("emma", 7), twin("emma", 7)}) == 2


def test_copies_are_equal() -> None:
    loan = Loan("emma", 7)
    assert copy.copy(loan) == copy.deepcopy(loan) == pickle.loads(pickle.dumps(loan)) == loan


def test_the_repr_is_the_constructor_call() -> None:
    assert repr(Loan("emma", 7)) == "Loan(book='emma', reader=7)"
    assert repr(Desk()) == "Desk()"


@pytest.mark.parametrize("name", ["type", "str", "int", "len", "self", "cls", "put", "text_0", "name", "id"])
def test_a_variable_may_be_called_like_something_of_python(name: str) -> None:
    for hint, value in ((Id, "x"), (FreeText, "a b"), (SnowflakeId, 3)):
        made = key_class(Keyspace("s", "d"), f"k:<{name}>:<other>", {"other": Id, name: hint})
        key = made("o", value)
        assert getattr(key, name) == value
        assert made.parse(key._name) == key == made(**{name: value, "other": "o"})
        with pytest.raises(VariableError):
            made("o", None)


def test_derived_variables_come_from_one_source() -> None:
    made = key_class(
        Keyspace("s", "d"), "page:<digest>", {"digest": Annotated[str, Hex(64), Derived("path", sha256_hex)]}
    )
    assert made.of("/index").digest == sha256_hex("/index")
    with pytest.raises(DeclarationError, match="not every variable is derived"):
        Loan.of("/index")


def test_a_name_of_no_key_is_refused_with_the_nearest_template() -> None:
    with pytest.raises(UnknownKeyError, match="The closest template is 'loan:<reader>:<book>'"):
        space.parse(b"loan:x:emma")
    with pytest.raises(UnknownKeyError, match="Check the prefix"):
        space.parse(b"zebra")


def test_the_nearest_template_is_looked_for_behind_the_prefix() -> None:
    bound = Keyspace("bound", "Keys below a prefix.", prefix="loan")
    key_class(bound, "desk:<number>", {"number": int})
    key_class(bound, "loan:<number>", {"number": int})
    with pytest.raises(UnknownKeyError, match="The closest template is 'desk:<number>'"):
        bound.parse(b"loan:desk:x")


FAULTS: list[tuple[str, dict[str, Any], str, str]] = [
    ("k:<v>", {}, "<v> has no type", "Annotate 'v' in the class"),
    ("k:<pass>", {}, "<pass> has no type", "Name it otherwise, such as <pass_>"),
    ("k", {"v": Id}, "<v> is not in the template", "Add it, or drop the annotation"),
    ("k:<v>:<v>", {"v": Id}, "<v> stands there twice", "Give each place its own variable"),
    (
        "k:<v>",
        {"v": float},
        "float is not a type of a key variable",
        "Use int, str, UUID, date, an Enum class",
    ),
    ("k:<v>", {"v": Annotated[str, Hex]}, "Hex is a class", r"Write Hex\(\)"),
    ("k:<v>", {"v": Annotated[int, Hex(2)]}, "its values are str .*but the hint says int", "Write Annotated"),
    ("k:<delete>", {"delete": Id}, "cannot be called 'delete'", "Give the variable another name"),
    ("k:<get>", {"get": Id}, "cannot be called 'get'", "Give the variable another name"),
    ("k:<_v>", {"_v": Id}, "cannot begin with an underscore", "Give it another name"),
    ("", {}, "cannot be empty", "Name the key"),
    ("k v", {}, "' ' in a key name", r"write \\x20"),
    ("k\x06", {}, "in a key name", r"write \\x06"),
    ("k[:<v>]", {"v": Id}, "<v> is optional, but cannot be None", r"Declare v: … \| None"),
    ("k:<v>", {"v": str | None}, "<v> may be None, but is not optional", "Write"),
    ("k:<v", {"v": Id}, "stray '<'", "Write a variable as <name>"),
    ("k:{}", {}, "hash tag may be empty", "Put what decides the slot between the braces"),
    ("{a}:{b}", {}, "a name has one", "Write one { and one }"),
]


@pytest.mark.parametrize(
    ("template", "variables", "reason", "remedy"), FAULTS, ids=[each[2] for each in FAULTS]
)
def test_a_declaration_that_cannot_be_is_refused_with_its_remedy(
    template: str, variables: dict[str, Any], reason: str, remedy: str
) -> None:
    refusing = Keyspace("s", "d")
    with pytest.raises(DeclarationError, match=f"(?s){reason}.*{remedy}"):
        key_class(refusing, template, variables)
    assert refusing.keys == []


def test_a_key_belongs_to_a_keyspace() -> None:
    with pytest.raises(DeclarationError, match=r"belongs to no keyspace\. Add space="):

        class Lost(Value[int], key="lost"):
            """It has no home."""


def test_a_key_says_what_it_stores() -> None:
    with pytest.raises(DeclarationError, match=r"does not say what it stores\. Write Set\[\.\.\.\]"):
        key_class(Keyspace("s", "d"), "k", {}, base=Set)
    with pytest.raises(DeclarationError, match=r"a score cannot be <class 'str'>\. Use float, int, datetime"):
        key_class(Keyspace("s", "d"), "k", {}, base=SortedSet[str, str])  # type: ignore[type-var]  # on purpose


def test_an_unknown_type_in_a_later_annotation_is_named() -> None:
    with pytest.raises(
        DeclarationError, match=r"'Nowhere' is not defined.*Define the id types at module level"
    ):
        key_class(Keyspace("s", "d"), "k:<v>", {"v": "Nowhere"})


def test_a_keyspace_has_a_name() -> None:
    with pytest.raises(DeclarationError, match="Give it one"):
        Keyspace("", "d")


def test_a_class_without_key_is_not_a_declaration() -> None:
    before = len(space.keys)

    class Shared(Value[int]):
        """A base of others."""

    assert len(space.keys) == before
    assert isinstance(Loan._template, Template)
    assert not hasattr(Shared, "_template")


sessions = Keyspace("sessions", "Who is signed in.")


class Session(Value[str], key="session:<user>[:<device>]", space=sessions):
    """A session of a user, perhaps on one device."""

    user: Id
    device: str | None = None


def test_an_optional_variable_is_none_where_its_segment_is_left_out() -> None:
    assert bytes(Session("ann")) == bytes(Session("ann", None)) == b"session:ann"
    assert bytes(Session("ann", "phone")) == b"session:ann:phone"
    assert sessions.parse(b"session:ann") == Session("ann")
    found = sessions.parse(b"session:ann:phone")
    assert isinstance(found, Session)
    assert found.device == "phone"
    assert Session.names([("ann",), ("ann", "phone")]) == [b"session:ann", b"session:ann:phone"]
    assert Session.names_along(("ann",), ["a", "b"]) == [b"session:ann:a", b"session:ann:b"]
    assert repr(Session("ann")) == "Session(user='ann', device=None)"
    with pytest.raises(VariableError, match="device"):
        Session("ann", "a b")


class Blob(Value[bytes], key=r"blob\xff:<digest>", space=sessions):
    """A value whose name is not UTF-8."""

    digest: bytes


def test_a_name_may_hold_bytes_that_are_not_utf_8() -> None:
    assert bytes(Blob(b"\xfe{")) == b"blob\xff:\xfe{"
    assert sessions.parse(b"blob\xff:\xfe{") == Blob(b"\xfe{")
    assert sessions.find(b"blob\xfe:a") is None
    assert not check(sessions)
