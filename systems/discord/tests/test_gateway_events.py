"""The table of gateway events: complete, true of the interpreter, and in the documentation."""

from __future__ import annotations

from pathlib import Path

import pytest

from keywright.errors import UsageError
from keywright_discord.gateway_events import GATEWAY_EVENTS, Treatment, event_of, page
from keywright_discord.interpreter import EVENTS

PAGE = Path(__file__).parents[1] / "docs/events.md"


def test_all_82_documented_events_are_listed() -> None:
    assert len(GATEWAY_EVENTS) == 82


def test_the_kept_events_are_those_that_the_interpreter_handles() -> None:
    kept = {name for name, event in GATEWAY_EVENTS.items() if event.treatment is Treatment.KEPT}
    assert kept == set(EVENTS)


def test_every_event_says_what_changes_or_why_nothing_does() -> None:
    assert [name for name, event in GATEWAY_EVENTS.items() if not event.about] == []


def test_packets_with_an_opcode_of_their_own_are_not_dispatched() -> None:
    alone = {name for name, event in GATEWAY_EVENTS.items() if not event.dispatched}
    assert alone == {"HELLO", "RECONNECT", "INVALID_SESSION"}


@pytest.mark.parametrize("written", ["MESSAGE_CREATE", "message_create", " Message_Create "])
def test_an_event_is_found_in_any_case(written: str) -> None:
    assert event_of(written).name == "MESSAGE_CREATE"


def test_a_misspelt_event_is_refused_with_the_nearest() -> None:
    with pytest.raises(UsageError, match=r"'MESSAGE_CRATE' is not an event .* nearest is MESSAGE_CREATE\."):
        event_of("MESSAGE_CRATE")


def test_the_page_of_events_is_up_to_date() -> None:
    assert PAGE.read_text("utf-8") == page()
