"""Shortcodes and the decisions that follow from them, without a server."""

from __future__ import annotations

import pytest

from keywright_meetup.events import (
    Change,
    Deferred,
    Joining,
    Known,
    KnownEvent,
    KnownSeries,
    Shortcodes,
    Skipped,
    decide,
    read_shortcodes,
    series_name,
)

from .meetup_town import BIG, announced, details


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("come! [new adventure]", Shortcodes("adventure")),
        ("(New Campaign) yes", Shortcodes("campaign")),
        ("[NEW  ADVENTURE] and ( new campaign )", Shortcodes("campaign")),
        ("[campaign 262402739]", Shortcodes(None, "262402739")),
        ("(Campaign qzfnqqyzpbjb)", Shortcodes(None, "qzfnqqyzpbjb")),
        (f"[new campaign][channel {BIG}]", Shortcodes("campaign", None, BIG)),
        ("new adventure, campaign 5, [renew adventure], [campaign]", Shortcodes()),
        ("[campaign\N{NO-BREAK SPACE}262402739]", Shortcodes(None, "262402739")),
        ("[campaign \N{KELVIN SIGN}5]", Shortcodes()),  # K in lower case is an ASCII letter, but it is none
        ("", Shortcodes()),
    ],
)
def test_shortcodes_are_read_in_either_bracket_and_any_case(text: str, found: Shortcodes) -> None:
    assert read_shortcodes(text) == found


@pytest.mark.parametrize(
    "text",
    [
        "[channel 5]",
        "[campaign abc] [new adventure]",
        "[campaign abc] [channel 5]",
        f"[new campaign] [channel {2**64}]",
        f"[new campaign] [channel {'9' * 5000}]",
    ],
)
def test_shortcodes_that_contradict_each_other_are_reported_and_not_followed(text: str) -> None:
    decision = decide(announced("e1", text), Known())
    assert isinstance(decision, Skipped)
    assert decision.reason is not None


def test_an_event_without_shortcodes_is_not_one_of_the_bots() -> None:
    assert decide(announced("e1", "boardgames"), Known()) == Skipped("e1", None)


def test_a_new_series_is_made_with_its_event() -> None:
    decision = decide(announced("e1", "[new campaign]", hosts=[1], guests=[2]), Known())
    assert isinstance(decision, Change)
    assert decision.joining == Joining("campaign")
    assert (set(decision.new_hosts), set(decision.new_guests)) == ({1}, {2})
    assert len(decision.series) == 22


def test_a_further_event_makes_its_series_a_campaign() -> None:
    stored = KnownSeries("adventure", events=frozenset({"e1"}))
    known = Known(series_of={"e1": "s1"}, series={"s1": stored})
    decision = decide(announced("e2", "[campaign e1]"), known)
    assert isinstance(decision, Change)
    assert decision.series == "s1"
    assert decision.joining == Joining("campaign", stored, "e1")


def test_an_event_of_a_series_that_is_still_to_come_waits() -> None:
    waiting = announced("e2", "[campaign e1]")
    assert decide(waiting, Known(), frozenset({"e1", "e2"})) == Deferred("e2", "e1")
    assert isinstance(decide(waiting, Known()), Skipped)
    assert isinstance(decide(announced("e2", "[campaign e2]"), Known(), frozenset({"e2"})), Skipped)


def test_a_channel_that_has_a_series_or_is_being_deleted_is_not_taken() -> None:
    asked = announced("e1", "[new adventure] [channel 5]")
    assert isinstance(decide(asked, Known(channels={5: "s1"})), Skipped)
    assert isinstance(decide(asked, Known(orphans=frozenset({5}))), Skipped)
    assert isinstance(decide(asked, Known()), Change)


def test_a_stored_event_that_is_the_same_needs_no_write() -> None:
    stored = KnownEvent("s1", details(), frozenset({1}), frozenset({2}))
    decision = decide(announced("e1", hosts=[1], guests=[2]), Known(events={"e1": stored}))
    assert isinstance(decision, Change)
    assert not decision.writes_something


def test_a_stored_event_follows_its_page_also_without_shortcodes() -> None:
    stored = KnownEvent("s1", details(), frozenset({1}), frozenset({2, 3}))
    decision = decide(announced("e1", "", hosts=[4], guests=[3], name="New"), Known(events={"e1": stored}))
    assert isinstance(decision, Change)
    assert decision.details == details(name="New")
    assert (set(decision.new_hosts), set(decision.gone_hosts)) == ({4}, {1})
    assert (set(decision.new_guests), set(decision.gone_guests)) == (set(), {2})


def test_guests_who_were_not_asked_about_stay() -> None:
    stored = KnownEvent("s1", details(), frozenset(), frozenset({2}))
    decision = decide(announced("e1", guests=None), Known(events={"e1": stored}))
    assert isinstance(decision, Change)
    assert not decision.writes_something


@pytest.mark.parametrize("text", ["[campaign e9]", "[new adventure] [channel 5]", "[channel 5]"])
def test_a_stored_event_keeps_its_series_whatever_its_shortcodes_say_later(text: str) -> None:
    stored = KnownEvent("s1", details(), frozenset({1}), frozenset({2}))
    known = Known(events={"e1": stored}, series_of={"e1": "s1", "e9": "s9"}, channels={5: "s9"})
    decision = decide(announced("e1", text, hosts=[7], guests=[3], name="Other"), known)
    assert isinstance(decision, Change)
    assert decision.warning is not None
    assert (decision.series, decision.details, set(decision.new_hosts)) == ("s1", None, set())
    assert decision.new_guests == {3}


@pytest.mark.parametrize(
    ("title", "name"),
    [
        ("Curse of Strahd [3/4]", "Curse of Strahd"),
        ("  Rats (beginners) ", "Rats"),
        ("No brackets", "No brackets"),
        ("X [1]", None),
        ("[all of it]", None),
        ("é", "é"),
        ("a" * 81, None),
    ],
)
def test_the_name_of_a_series_is_the_text_before_the_brackets(title: str, name: str | None) -> None:
    assert series_name(title) == name
