"""Meetup to Redis, against a simulated Meetup: events, hosts, RSVPs, pages, outages, stale tokens."""

from __future__ import annotations

import json
from typing import Any

import pytest

from keywright.testing import Raw
from keywright_meetup import tokens
from keywright_meetup.errors import RefusedChangeError
from keywright_meetup.queries import tracked_events
from keywright_meetup.schema import AccessToken, EventGuests, EventHosts, MeetupEvent, RefreshToken
from keywright_meetup.service.meetup_api import MeetupApi
from keywright_meetup.service.meetup_sync import MeetupSync
from keywright_meetup.simulator import SimulatedEvent
from keywright_service.errors import PlatformRefusedError, PlatformTroubleError

from ..meetup_bots import GROUP, SLEEPLESS, Surroundings

pytestmark = pytest.mark.anyio


async def test_events_hosts_and_guests_are_stored_as_meetup_has_them(around: Surroundings) -> None:
    host, guest, other = (around.person(name).meetup for name in "HGO")
    event = around.announce("Dragon Hunt", hosts=(host,))
    event.rsvps = {guest: "YES", other: "WAITLIST"}
    async with around.opened() as opened:
        assert (await opened.sync_meetup()).added == {event.id}
        details = await opened.db.run(MeetupEvent(event.id).get())
        assert details is not None
        assert (details.name, details.link, details.urlname) == ("Dragon Hunt", event.link, GROUP)
        assert details.time == event.time.replace(second=0, microsecond=0)
        assert await opened.db.run(EventHosts(event.id).members()) == {host}
        assert await opened.db.run(EventGuests(event.id).members()) == {guest}


async def test_cancellations_and_other_hosts_are_followed(around: Surroundings) -> None:
    first, second = (around.person(name).meetup for name in "AB")
    event = around.announce(hosts=(first,))
    event.rsvps = {first: "YES", second: "YES"}
    async with around.opened() as opened:
        await opened.sync_meetup()
        event.rsvps[first] = "NO"
        event.hosts = [second]
        assert (await opened.sync_meetup()).changed == {event.id}
        assert await opened.db.run(EventHosts(event.id).members()) == {second}
        assert await opened.db.run(EventGuests(event.id).members()) == {second}


async def test_an_event_without_hosts_and_guests_is_stored(around: Surroundings) -> None:
    event = around.announce()
    async with around.opened() as opened:
        synced = await opened.sync_meetup()
        assert (synced.added, synced.failures) == ({event.id}, {})


async def test_all_pages_of_events_and_rsvps_are_read(around: Surroundings) -> None:
    people = {around.meetup.world.join(f"P{number}"): "YES" for number in range(7)}
    for number in range(5):
        around.announce(f"Event {number}", days=number + 1).rsvps = dict(people)
    async with around.opened() as opened:
        small = MeetupApi(around.meetup.api_url, events_a_page=2, rsvps_a_page=3)
        async with small:
            sync = MeetupSync(opened.db, small, opened.refresher, [GROUP], around.clock)
            assert len((await sync.run()).added) == 5
        for event in around.meetup.world.events:
            assert await opened.db.run(EventGuests(event).members()) == set(people)


@pytest.mark.parametrize("how", ["deleted", "cancelled"])
async def test_an_event_that_does_not_take_place_is_forgotten(around: Surroundings, how: str) -> None:
    event = around.announce()
    async with around.opened() as opened:
        await opened.sync_meetup()
        if how == "deleted":
            del around.meetup.world.events[event.id]
        else:
            event.status = "CANCELLED"
        assert (await opened.sync_meetup()).removed == {event.id}
        assert await opened.db.run(tracked_events()) == {}


async def test_a_past_event_and_one_that_is_only_not_listed_stay(around: Surroundings) -> None:
    past, hidden = around.announce(days=1), around.announce("Other", days=9)
    async with around.opened() as opened:
        await opened.sync_meetup()
        around.clock.advance(days=2)
        hidden.status = "DRAFT"  # not listed, but there
        assert (await opened.sync_meetup()).removed == set()
        assert set(await opened.db.run(tracked_events())) == {past.id, hidden.id}


async def test_nothing_is_written_when_meetup_answers_in_part(around: Surroundings) -> None:
    event = around.announce()
    async with around.opened() as opened:
        await opened.sync_meetup()
        around.announce("New")
        event.title = "Changed"
        groups = [GROUP, "no-such-group"]
        with pytest.raises(PlatformRefusedError):
            await MeetupSync(opened.db, opened.meetup, opened.refresher, groups, around.clock).run()
        stored = await opened.db.run(tracked_events())
        assert {each: details.name for each, details in stored.items()} == {event.id: "Dragon Hunt"}


async def test_nothing_is_forgotten_while_meetup_is_out(around: Surroundings) -> None:
    event = around.announce()
    async with around.opened() as opened:
        await opened.sync_meetup()
        del around.meetup.world.events[event.id]
        with around.meetup.faults.outage(), pytest.raises(PlatformTroubleError, match="status 503"):
            await opened.sync_meetup()
        assert set(await opened.db.run(tracked_events())) == {event.id}


async def test_limits_and_short_outages_are_waited_out(around: Surroundings) -> None:
    event = around.announce()
    around.meetup.graphql.limited = 1
    around.meetup.faults.fail("/gql-ext", 502, times=2)
    async with around.opened() as opened:
        assert (await opened.sync_meetup()).added == {event.id}


async def test_slow_answers_are_given_up_and_asked_for_again(around: Surroundings) -> None:
    event = around.announce()
    around.meetup.faults.fail("/gql-ext", None, times=2)
    async with around.opened() as opened:
        quick = SLEEPLESS._replace(timeout_seconds=0.3)
        async with MeetupApi(around.meetup.api_url, options=quick) as impatient:
            sync = MeetupSync(opened.db, impatient, opened.refresher, [GROUP], around.clock)
            assert (await sync.run()).added == {event.id}


async def test_a_stale_access_token_is_refreshed_once_and_the_question_repeated(around: Surroundings) -> None:
    event = around.announce()
    async with around.opened() as opened:
        before = await opened.db.run(tokens.organizer())
        around.meetup.oauth.expire_access()
        assert (await opened.sync_meetup()).added == {event.id}
        after = await opened.db.run(tokens.organizer())
        assert before.access_token != after.access_token
        assert before.refresh_token != after.refresh_token
    assert around.meetup.oauth.refreshes == 1


async def test_without_a_valid_refresh_token_it_says_to_authorize_again(around: Surroundings) -> None:
    async with around.opened() as opened:
        around.meetup.oauth.revoke()
        with pytest.raises(PlatformRefusedError, match=r"invalid_grant.*keywright meetup authorize"):
            await opened.sync_meetup()


async def test_without_tokens_the_error_names_the_command_that_gets_them(around: Surroundings) -> None:
    async with around.opened() as opened:
        await opened.db.run(AccessToken().delete())
        await opened.db.run(RefreshToken().delete())
        with pytest.raises(RefusedChangeError, match="keywright meetup authorize"):
            await opened.sync_meetup()


async def test_a_group_that_meetup_does_not_know_is_named(around: Surroundings) -> None:
    async with around.opened() as opened:
        sync = MeetupSync(opened.db, opened.meetup, opened.refresher, ["no-such-group"], around.clock)
        with pytest.raises(PlatformRefusedError, match=r"no-such-group.*Correct meetup\.groups"):
            await sync.run()


async def test_malformed_details_of_a_listed_event_are_written_again(around: Surroundings, raw: Raw) -> None:
    event, other = around.announce(), around.announce("Other")
    async with around.opened() as opened:
        await opened.sync_meetup()
        raw("HDEL", f"meetup_event:{event.id}", "time")
        synced = await opened.sync_meetup()
        assert (synced.changed, synced.unchanged) == ({event.id}, 1)
        assert set(await opened.db.run(tracked_events())) == {event.id, other.id}


def page_of(event: SimulatedEvent, page_info: dict[str, Any] | None = None, **changed: Any) -> str:
    """Return an answer of Meetup with one event."""
    node = {"id": event.id, "title": "T", "eventUrl": "u", "dateTime": "2030-05-06T18:30+02:00"}
    rsvps: dict[str, Any] = {"pageInfo": {}, "edges": []}
    whole = {**node, "group": {"urlname": GROUP}, "rsvps": rsvps, **changed}
    events = {"pageInfo": page_info or {}, "edges": [{"node": whole}]}
    return json.dumps({"data": {"groupByUrlname": {"events": events}}})


@pytest.mark.parametrize("time", ["2030-05-06T18:30", "0001-01-01T00:00+14:00", "tomorrow"])
async def test_a_time_that_is_none_is_trouble(around: Surroundings, time: str) -> None:
    event = around.announce()
    around.meetup.faults.fail("/gql-ext", 200, body=page_of(event, dateTime=time))
    async with around.opened() as opened:
        with pytest.raises(PlatformTroubleError, match=f"event {event.id}"):
            await opened.sync_meetup()


async def test_text_that_is_not_utf_8_is_trouble(around: Surroundings) -> None:
    """It raised an error of Python, which ended the bot."""
    page = page_of(around.announce()).encode().replace(b'"T"', b'"\xff"')
    around.meetup.faults.fail("/gql-ext", 200, body=page)
    async with around.opened() as opened:
        with pytest.raises(PlatformTroubleError, match="its answer"):
            await opened.sync_meetup()


ENDLESS = {"hasNextPage": True, "endCursor": None}


@pytest.mark.parametrize(
    "changed",
    [{"page_info": ENDLESS}, {"rsvps": {"pageInfo": ENDLESS, "edges": []}}],
    ids=["events", "RSVPs"],
)
async def test_a_list_that_cannot_be_read_to_its_end_is_trouble(
    around: Surroundings, changed: dict[str, Any]
) -> None:
    """A guest on a page that was not read would be taken for one who cancelled."""
    guest = around.person("Gino").meetup
    event = around.announce()
    event.rsvps = {guest: "YES"}
    async with around.opened() as opened:
        await opened.sync_meetup()
        around.meetup.faults.fail("/gql-ext", 200, body=page_of(event, **changed))
        with pytest.raises(PlatformTroubleError, match="next page"):
            await opened.sync_meetup()
        assert await opened.db.run(EventGuests(event.id).members()) == {guest}
