"""Every proof finds the fault planted for it, and nothing in a sound keyspace."""

from __future__ import annotations

import re
from datetime import timedelta
from functools import partial
from typing import Annotated, Any

import msgspec
import pydantic
import pytest

from declaring import key_class
from keywright import (
    Codec,
    Finding,
    Id,
    Json,
    Keyspace,
    LiveIndex,
    Map,
    MessagePack,
    Plain,
    Set,
    SortedSet,
    Value,
    check,
    expires_in,
    index,
    many_to_many,
    many_to_one,
    one_to_one,
)
from keywright.errors import DeclarationError

Colons = Annotated[str, Plain(extra=":")]
Tagged = Annotated[str, Plain(max_length=8)]


def codes(space: Keyspace) -> list[str]:
    return [finding.code for finding in check(space)]


def errors(space: Keyspace) -> list[Finding]:
    return [finding for finding in check(space) if finding.severity == "error"]


class Forgetful(Codec[str]):
    """Writes less than it was given."""

    expected = "text, shortened"
    python_type = str
    samples = ("whole",)

    def encode(self, value: str) -> bytes:
        return value[:-1].encode()

    def decode(self, data: bytes) -> str:
        return data.decode()


class Stubborn(Forgetful):
    """Refuses its own sample."""

    def encode(self, value: str) -> bytes:
        raise self.refusal(value)


class Lossy(pydantic.BaseModel):
    """A model that dumps less than it takes."""

    kept: int
    dropped: int = pydantic.Field(default=0, exclude=True)


class Coded(msgspec.Struct):
    """A struct of which no value can be generated."""

    code: Annotated[str, msgspec.Meta(pattern="^[A-Z]{3}-[0-9]{4}$")]


class Silent(Codec[Coded]):
    """A codec without samples, of a type of which none can be generated."""

    expected = "a code"
    python_type = Coded

    def encode(self, value: Coded) -> bytes:
        return value.code.encode()

    def decode(self, data: bytes) -> Coded:
        return Coded(data.decode())


class Mute(Codec[int]):
    """A codec without samples, of a type of which values can be generated; it reads back another one."""

    expected = "a number"
    python_type = int

    def encode(self, value: int) -> bytes:
        return b"%d" % value

    def decode(self, data: bytes) -> int:
        return abs(int(data))


def related(space: Keyspace, **forward: Any) -> tuple[type[Any], type[Any]]:
    holder = key_class(space, "event:<event>:series", {"event": Id}, base=Value[Id], name="Holder", **forward)
    items = key_class(space, "series:<series>:events", {"series": Id}, base=Set[Id], name="Items")
    return holder, items


def test_a_sound_keyspace_has_no_findings() -> None:
    space = Keyspace("sound", "Nothing is wrong.")
    event = key_class(space, "event:<event>", {"event": Id})
    key_class(space, "event:<event>:series", {"event": Id}, part_of=event)
    key_class(space, "slot:{<event>}:a", {"event": Id})
    assert check(space) == []


def test_an_empty_keyspace_is_sound() -> None:
    assert check(Keyspace("empty", "Nothing yet.")) == []


def test_overlapping_templates_are_found_with_a_name_that_both_make() -> None:
    space = Keyspace("s", "d")
    one = key_class(space, "event:<event>", {"event": Colons}, name="One")
    other = key_class(space, "event:<event>:series", {"event": Id}, name="Other")
    (finding,) = check(space)
    assert finding.code == "overlapping-templates"
    assert finding.counterexample is not None
    name = finding.counterexample.split("'")[1].encode()
    assert one.parse(name) is not None
    assert other.parse(name) is not None
    assert finding.counterexample.endswith("is a One and a Other")


def test_the_same_template_twice_overlaps() -> None:
    space = Keyspace("s", "d")
    key_class(space, "event", {})
    key_class(space, "event", {})
    assert codes(space) == ["overlapping-templates"]


def test_an_ambiguous_template_is_found_with_both_readings() -> None:
    space = Keyspace("s", "d")
    made = key_class(space, "path:<a>:<b>", {"a": Colons, "b": Colons})
    (finding,) = check(space)
    assert finding.code == "ambiguous-template"
    assert finding.counterexample is not None
    name = finding.counterexample.split("'")[1].encode()
    assert made.parse(name) is not None
    assert finding.counterexample.count("a=") == 2


@pytest.mark.parametrize(
    ("codec", "reason"),
    [(Forgetful, "reads back 'whol'"), (Stubborn, "fails on its own sample")],
)
def test_a_codec_that_does_not_round_trip_is_found(codec: type[Codec[str]], reason: str) -> None:
    space = Keyspace("s", "d")
    key_class(space, "k", {}, base=Value[Annotated[str, codec()]])
    (finding,) = check(space)
    assert finding.code == "codec-does-not-round-trip"
    assert reason in finding.reason
    assert finding.counterexample == "'whole'"


def test_a_model_that_loses_a_field_is_found() -> None:
    space = Keyspace("s", "d")
    key_class(space, "k", {}, base=Value[Annotated[Lossy, Json]])
    assert set(codes(space)) == {"codec-does-not-round-trip"}


def test_values_are_generated_for_a_codec_without_samples() -> None:
    space = Keyspace("s", "d")
    key_class(space, "k", {}, base=Value[Annotated[int, Mute()]])
    (finding,) = check(space)
    assert (finding.code, finding.counterexample) == ("codec-does-not-round-trip", "-1")


@pytest.mark.parametrize(
    ("codec", "remedy"),
    [
        (Silent(), "Declare `samples` on the codec"),
        (Json, r"Write partial\(Json, samples=\(…,\)\)"),
        (MessagePack, r"Write partial\(MessagePack, samples="),
    ],
)
def test_a_codec_that_cannot_be_exercised_is_found(codec: Any, remedy: str) -> None:
    space = Keyspace("s", "d")
    key_class(space, "k", {}, base=Value[Annotated[Coded, codec]])
    (finding,) = check(space)
    assert finding.code == "codec-without-samples"
    assert re.search(remedy, finding.reason)


def test_given_samples_are_exercised() -> None:
    space = Keyspace("s", "d")
    codec = partial(Json, samples=(Coded("ABC-1234"),))
    key_class(space, "k", {}, base=Value[Annotated[Coded, codec]])
    assert check(space) == []


def test_a_codec_that_raises_another_error_is_a_finding() -> None:
    class Broken(Forgetful):
        """Raises what a codec must not."""

        def decode(self, data: bytes) -> str:
            raise ZeroDivisionError("by zero")

    space = Keyspace("s", "d")
    key_class(space, "k", {}, base=Value[Annotated[str, Broken()]])
    (finding,) = check(space)
    assert "fails on its own sample: by zero" in finding.reason


@pytest.mark.parametrize("doc", [None, "", "   "])
def test_a_missing_docstring_is_found(doc: str | None) -> None:
    space = Keyspace("s", "d")
    key_class(space, "k", {}, doc=doc)
    assert codes(space) == ["missing-docstring"]


def test_a_docstring_of_the_kind_does_not_count() -> None:
    space = Keyspace("s", "d")

    class Silent(Value[int], key="silent", space=space):
        pass

    assert Silent.__mro__[1].__doc__
    assert codes(space) == ["missing-docstring"]


def test_a_missing_description_is_found() -> None:
    assert codes(Keyspace("s", " ")) == ["missing-description"]


def test_a_part_that_cannot_be_named_from_its_whole_is_found() -> None:
    space = Keyspace("s", "d")
    whole = key_class(space, "event:<event>", {"event": Id})
    key_class(space, "event:<event>:guest:<guest>", {"event": Id, "guest": Id}, part_of=whole)
    assert codes(space) == ["unreachable-part"]


def test_a_part_of_another_keyspace_is_found() -> None:
    space = Keyspace("s", "d")
    whole = key_class(Keyspace("other", "d"), "event:<event>", {"event": Id})
    key_class(space, "event:<event>:series", {"event": Id}, part_of=whole)
    assert codes(space) == ["foreign-part"]


def test_sides_that_expire_at_different_times_are_found() -> None:
    space = Keyspace("s", "d")
    holder, items = related(space, expiry=expires_in(timedelta(hours=1)))
    many_to_one(holder, inverse=items)
    (finding,) = errors(space)
    assert finding.code == "expiries-differ"
    assert finding.counterexample == "Holder expires in 3600 s, Items never expires"


def test_sides_that_expire_together_are_sound() -> None:
    space = Keyspace("s", "d")
    hour = expires_in(timedelta(hours=1))
    one = key_class(space, "a:<v>", {"v": Id}, base=Value[Id], expiry=hour)
    other = key_class(space, "b:<v>", {"v": Id}, base=Value[Id], expiry=hour)
    one_to_one(one, inverse=other)
    assert errors(space) == []


def test_sides_whose_expiries_drift_apart_are_found() -> None:
    for options in ({"jitter": 0.1}, {"since": "last use"}):
        space = Keyspace("s", "d")
        hour = expires_in(timedelta(hours=1), **options)
        one = key_class(space, "a:<v>", {"v": Id}, base=Value[Id], expiry=hour)
        other = key_class(space, "b:<v>", {"v": Id}, base=Value[Id], expiry=hour)
        one_to_one(one, inverse=other)
        assert [finding.code for finding in errors(space)] == ["expiries-differ"]


def test_an_index_of_keys_that_expire_is_found() -> None:
    space = Keyspace("s", "d")
    hour = expires_in(timedelta(hours=1))
    event = key_class(space, "event:<event>", {"event": Id}, name="Event", expiry=hour)
    every = key_class(space, "events", {}, base=Set[Id], name="Every")
    index(event, by=every)
    (finding,) = errors(space)
    assert finding.code == "lists-expired-keys"
    assert "Event expires, and Every still lists it afterwards. Use LiveIndex instead" in finding.reason
    assert finding.counterexample == "Event expires in 3600 s"


def test_an_index_that_expires_is_found() -> None:
    space = Keyspace("s", "d")
    hour = expires_in(timedelta(hours=1))
    event = key_class(space, "event:<event>", {"event": Id}, name="Event")
    every = key_class(space, "events", {}, base=Set[Id], name="Every", expiry=hour)
    index(event, by=every)
    (finding,) = errors(space)
    assert finding.code == "expiries-differ"
    assert finding.counterexample == "Every expires in 3600 s, Event never expires"


def test_a_set_that_keeps_members_which_expired_is_found() -> None:
    hour = expires_in(timedelta(hours=1))
    for base, relate in ((Value[Id], many_to_one), (Set[Id], many_to_many)):
        space = Keyspace("s", "d")
        holder = key_class(space, "event:<event>", {"event": Id}, base=base, expiry=hour)
        items = key_class(space, "series:<series>", {"series": Id}, base=Set[Id], expiry=hour)
        relate(holder, inverse=items)
        assert {finding.code for finding in errors(space)} == {"lists-expired-keys"}


def test_the_index_of_a_relation_whose_sides_expire_is_found() -> None:
    space = Keyspace("s", "d")
    hour = expires_in(timedelta(hours=1))
    one = key_class(space, "a:<v>", {"v": Id}, base=Value[Id], expiry=hour)
    other = key_class(space, "b:<v>", {"v": Id}, base=Value[Id], expiry=hour)
    one_to_one(one, inverse=other, index=key_class(space, "all", {}, base=Set[Id]))
    assert [finding.code for finding in errors(space)] == ["lists-expired-keys"]


def test_a_relation_across_slots_is_noted_and_one_in_a_slot_is_not() -> None:
    spread, together = Keyspace("s", "d"), Keyspace("t", "d")
    holder, items = related(spread)
    many_to_one(holder, inverse=items)
    assert codes(spread) == ["several-slots"]
    assert errors(spread) == []
    holder = key_class(together, "{t}:event:<event>", {"event": Id}, base=Value[Id])
    items = key_class(together, "{t}:series:<series>", {"series": Id}, base=Set[Id])
    many_to_one(holder, inverse=items)
    assert codes(together) == []


def test_an_inverse_of_other_ids_is_refused_at_once() -> None:
    space = Keyspace("s", "d")
    holder = key_class(space, "event:<event>", {"event": Tagged}, base=Value[Id], name="Holder")
    items = key_class(space, "series:<series>", {"series": Id}, base=Set[Id], name="Items")
    with pytest.raises(
        DeclarationError, match=r"Items holds .*, but Holder is named by .*Give both the same id"
    ):
        many_to_one(holder, inverse=items)


def test_an_index_of_other_ids_is_refused_at_once() -> None:
    space = Keyspace("s", "d")
    event = key_class(space, "event:<event>", {"event": Tagged}, name="Event")
    every = key_class(space, "events", {}, base=Set[Id], name="Every")
    with pytest.raises(DeclarationError, match=r"Every holds .*, but Event is named by"):
        index(event, by=every)


def test_an_index_by_a_sorted_set_is_refused_with_a_remedy_that_works() -> None:
    space = Keyspace("s", "d")
    event = key_class(space, "event:<event>", {"event": Id}, name="Event")
    by_age = key_class(space, "events", {}, base=SortedSet[Id, int], name="ByAge")
    with pytest.raises(DeclarationError, match=r"a sorted set.*Use a Set, or LiveIndex\(Event, by=ByAge\)"):
        index(event, by=by_age)
    assert LiveIndex(event, by=by_age).put(event("a"), event("a").set(1), score=7)


@pytest.mark.parametrize("relate", [many_to_one, one_to_one, many_to_many])
def test_a_relation_of_other_kinds_is_refused(relate: Any) -> None:
    space = Keyspace("s", "d")
    holder = key_class(space, "event:<event>", {"event": Id}, base=Map[Id, int], name="Holder")
    items = key_class(space, "series:<series>", {"series": Id}, base=Map[Id, int], name="Items")
    with pytest.raises(DeclarationError, match=r"Holder is a map, not a (value|set). Use a (Value|Set) here"):
        relate(holder, inverse=items)


def test_an_index_of_another_kind_is_refused() -> None:
    space = Keyspace("s", "d")
    event = key_class(space, "event:<event>", {"event": Id}, name="Event")
    every = key_class(space, "events", {}, base=Map[Id, int], name="Every")
    with pytest.raises(DeclarationError, match=r"Every is a map, not a set\. Use a Set here"):
        index(event, by=every)
    with pytest.raises(DeclarationError, match=r"Every is a map, not a set\. Use a Set or a SortedSet"):
        LiveIndex(event, by=every)
    holder, items = related(space)
    with pytest.raises(DeclarationError, match="Every is a map, not a set"):
        many_to_one(holder, inverse=items, index=every)


def test_a_refused_relation_is_not_part_of_the_keyspace() -> None:
    space = Keyspace("s", "d")
    holder = key_class(space, "event:<event>", {"event": Tagged}, base=Value[Id])
    items = key_class(space, "series:<series>", {"series": Id}, base=Set[Id])
    with pytest.raises(DeclarationError):
        many_to_one(holder, inverse=items)
    assert space.links == []


def _union() -> tuple[Keyspace, Keyspace]:
    one, other = Keyspace("one", "d"), Keyspace("other", "d", prefix="a")
    key_class(one, "a:<v>", {"v": Colons}, name="One", moved_from="b:<v>")
    key_class(other, "k:<v>", {"v": Id}, name="Other")
    return one, other


def test_keyspaces_that_make_the_same_name_are_found_in_any_order() -> None:
    one, other = _union()
    (finding,) = check(one, other)
    assert check(other, one) == [finding]
    assert (finding.code, finding.template) == ("overlapping-keyspaces", "a:<v>")
    assert "one overlaps with 'a:k:<v>' of other" in finding.reason
    assert finding.counterexample is not None
    assert finding.counterexample.endswith("is a One of one and a Other of other")
    name = finding.counterexample.split("'")[1].encode()
    assert one.find(name) is not None
    assert other.find(name) is not None


def test_the_bound_prefix_decides_whether_keyspaces_overlap() -> None:
    one, other = _union()
    assert check(one, other.bind(prefix="c")) == []
    assert [f.code for f in check(one.bind(prefix="c"), other.bind(prefix="c:a"))] == [
        "overlapping-keyspaces"
    ]
    assert check(one, one) == []


def test_a_fallback_yields_to_other_keyspaces_and_not_to_their_fallbacks() -> None:
    _, other = _union()
    rest = Keyspace("rest", "d")
    key_class(rest, "<x>", {"x": Colons}, name="Rest", fallback=True)
    noted = [finding for finding in check(other, rest) if finding.severity == "note"]
    assert check(other, rest) == noted
    assert [(finding.template, finding.reason) for finding in noted] == [
        ("<x>", "the fallback yields to Other of other")
    ]
    twice = Keyspace("twice", "d")
    key_class(twice, "<y>", {"y": Colons}, name="Twice", fallback=True)
    assert "overlapping-keyspaces" in [finding.code for finding in check(rest, twice)]


def test_a_former_name_that_another_keyspace_makes_is_found() -> None:
    one, other = _union()
    (finding,) = check(one, other.bind(prefix="b"))
    assert finding.template == "b:<v>"


def test_a_replaced_keyspace_may_make_the_names_of_its_successor() -> None:
    one, _ = _union()
    old = Keyspace("old", "d", replaced_by=one)
    key_class(old, "a:<v>", {"v": Id}, name="Old")
    assert check(one, old) == check(old, one) == []


def test_a_finding_prints_its_code_template_reason_and_example() -> None:
    finding = Finding("some-code", "k:<v>", "it is wrong", "'k:1'")
    assert str(finding) == "some-code k:<v>: it is wrong\n    for example 'k:1'"
    assert "for example" not in str(finding._replace(counterexample=None))
