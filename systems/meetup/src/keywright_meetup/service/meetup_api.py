"""Meetup's GraphQL API, as far as the bot needs it: who a token belongs to, and a group's coming events."""

from __future__ import annotations

from datetime import UTC, datetime
from http import HTTPStatus
from typing import Annotated, Any, NamedTuple, TypeVar

import httpx
import msgspec

from keywright import Secret
from keywright_meetup.events import Announced
from keywright_meetup.schema import EventDetails
from keywright_service.errors import HttpRefusedError, PlatformRefusedError, PlatformTroubleError
from keywright_service.http_client import (
    DEFAULTS,
    LONGEST_WAIT_SECONDS,
    MALFORMED,
    Again,
    ClientOptions,
    HttpClient,
    is_worth_repeating,
    retry_after,
)

__all__ = ["API_URL", "MeetupApi", "Member", "StaleTokenError"]

API_URL = "https://api.meetup.com/gql-ext"
EVENTS_A_PAGE = 25
RSVPS_A_PAGE = 200
# Meetup says by its own clock when a limit ends.
CLOCK_SKEW_SECONDS = 1.0
GOING = "YES"
GONE = frozenset({"CANCELLED", "CANCELLED_PERM", "DELETED"})

T = TypeVar("T")
Number = Annotated[str, msgspec.Meta(pattern="^[0-9]{1,20}$")]
# Some of its interfaces put an address after an exclamation mark.
EventId = Annotated[str, msgspec.Meta(pattern="^[A-Za-z0-9_-]+(!.*)?$")]

_SELF = "query { self { id name } }"

_NODE = """id title eventUrl description dateTime status
  group { urlname } eventHosts { memberId }
  rsvps(first: $rsvps) { pageInfo { hasNextPage endCursor } edges { node { status member { id } } } }"""

_EVENTS = (
    "query ($urlname: String!, $first: Int!, $after: String, $filter: GroupEventFilter, $rsvps: Int!) {"
    " groupByUrlname(urlname: $urlname) { events(first: $first, after: $after, filter: $filter) {"
    f" pageInfo {{ hasNextPage endCursor }} edges {{ node {{ {_NODE} }} }} }} }} }}"
)

_RSVPS = """query ($eventId: ID!, $rsvps: Int!, $after: String) { event(id: $eventId) { status
  rsvps(first: $rsvps, after: $after) {
    pageInfo { hasNextPage endCursor } edges { node { status member { id } } } } } }"""

_STATUS = "query ($eventId: ID!) { event(id: $eventId) { status } }"


class Member(NamedTuple):
    """A member of Meetup. The name is empty where Meetup has none."""

    id: int
    name: str


class StaleTokenError(PlatformRefusedError):
    """The access token is not valid (any more): refresh it and ask again."""

    def __init__(self, asked: str) -> None:
        super().__init__("Meetup", asked, "the access token is not valid", "Refresh it, or authorize again.")


class _PageInfo(msgspec.Struct, frozen=True, rename="camel"):
    has_next_page: bool = False
    end_cursor: str | None = None

    def next(self, before: str | None) -> str | None:
        """Return the cursor of the next page, if there is one."""
        if not self.has_next_page:
            return None
        if self.end_cursor in (None, before):
            raise PlatformTroubleError("Meetup", "a list", "it does not say where the next page begins")
        return self.end_cursor


class _Identified(msgspec.Struct, frozen=True):
    id: Number


class _Self(msgspec.Struct, frozen=True):
    id: Number
    name: str | None = None


class _Rsvp(msgspec.Struct, frozen=True):
    status: str
    member: _Identified | None = None


class _RsvpEdge(msgspec.Struct, frozen=True):
    node: _Rsvp


class _Rsvps(msgspec.Struct, frozen=True, rename="camel"):
    page_info: _PageInfo
    edges: tuple[_RsvpEdge, ...]

    @property
    def going(self) -> set[int]:
        found = (edge.node for edge in self.edges)
        return {int(each.member.id) for each in found if each.status == GOING and each.member}


class _Host(msgspec.Struct, frozen=True, rename="camel"):
    member_id: Number


class _Group(msgspec.Struct, frozen=True):
    urlname: str


class _Event(msgspec.Struct, frozen=True, rename="camel"):
    id: EventId
    title: str
    event_url: str
    date_time: str
    group: _Group
    rsvps: _Rsvps
    status: str = ""
    description: str | None = None
    event_hosts: tuple[_Host, ...] | None = None


class _EventEdge(msgspec.Struct, frozen=True):
    node: _Event


class _Events(msgspec.Struct, frozen=True, rename="camel"):
    page_info: _PageInfo
    edges: tuple[_EventEdge, ...]


class _GroupEvents(msgspec.Struct, frozen=True):
    events: _Events


class _Of(msgspec.Struct, frozen=True):
    status: str = ""
    rsvps: _Rsvps | None = None


class _Problem(msgspec.Struct, frozen=True):
    message: str = ""
    extensions: dict[str, Any] = {}


class _Body(msgspec.Struct, frozen=True):
    data: dict[str, msgspec.Raw] | None = None
    errors: tuple[_Problem, ...] = ()


class MeetupApi(HttpClient):
    """`async with` it. Every method takes the access token to ask with."""

    def __init__(
        self,
        url: str = API_URL,
        *,
        events_a_page: int = EVENTS_A_PAGE,
        rsvps_a_page: int = RSVPS_A_PAGE,
        options: ClientOptions = DEFAULTS,
    ) -> None:
        super().__init__("Meetup", options)
        self._url = url
        self._events_a_page = events_a_page
        self._rsvps_a_page = rsvps_a_page

    async def self_member(self, token: Secret[str]) -> Member:
        """Return the member whom a token belongs to."""
        found = await self._asked(token, "self", _SELF, {}, _Self)
        if found is None:
            raise StaleTokenError("self")
        return Member(int(found.id), found.name or "")

    async def events(self, token: Secret[str], urlname: str, after: datetime) -> list[Announced]:
        """Return all of a group's events after a time, with hosts and the guests who said yes."""
        found: list[Announced] = []
        cursor: str | None = None
        while True:
            given = {
                "urlname": urlname,
                "first": self._events_a_page,
                "after": cursor,
                "filter": {"afterDateTime": after.isoformat()},
                "rsvps": self._rsvps_a_page,
            }
            page = await self._asked(token, "groupByUrlname", _EVENTS, given, _GroupEvents)
            if page is None:
                raise PlatformRefusedError(
                    "Meetup",
                    f"the events of {urlname}",
                    "the group does not exist",
                    "Correct meetup.groups.",
                )
            nodes = [edge.node for edge in page.events.edges if edge.node.status not in GONE]
            found += [await self._announced(token, node) for node in nodes]
            cursor = page.events.page_info.next(cursor)
            if cursor is None:
                return found

    async def is_gone(self, token: Secret[str], event: str) -> bool:
        """Return whether Meetup says that an event does not exist, or does not take place."""
        found = await self._asked(token, "event", _STATUS, {"eventId": event}, _Of)
        return found is None or found.status in GONE

    async def _announced(self, token: Secret[str], event: _Event) -> Announced:
        going = event.rsvps.going
        cursor = event.rsvps.page_info.next(None)
        while cursor is not None:
            given = {"eventId": event.id, "rsvps": self._rsvps_a_page, "after": cursor}
            page = await self._asked(token, "event", _RSVPS, given, _Of)
            if page is None or page.rsvps is None:
                raise PlatformTroubleError("Meetup", f"the RSVPs of event {event.id}", "it went meanwhile")
            going |= page.rsvps.going
            cursor = page.rsvps.page_info.next(cursor)
        details = EventDetails(
            event.title, _time(event.date_time, event.id), event.event_url, event.group.urlname
        )
        hosts = frozenset(int(host.member_id) for host in event.event_hosts or ())
        return Announced(
            event.id.partition("!")[0], details, event.description or "", hosts, frozenset(going)
        )

    async def _asked(
        self, token: Secret[str], field: str, query: str, given: dict[str, Any], kind: type[T]
    ) -> T | None:
        """Return one field of an answer, through limits and outages; None where Meetup says null."""
        body = await self._answered(token, field, {"query": query, "variables": given})
        found = (body.data or {}).get(field)
        if found is None:
            raise PlatformTroubleError("Meetup", field, "its answer lacks it")
        try:
            return msgspec.json.decode(found, type=kind | None)
        except MALFORMED as error:
            raise PlatformTroubleError("Meetup", field, f"its answer: {error}") from error

    async def _answered(self, token: Secret[str], field: str, asked: dict[str, Any]) -> _Body:
        async def attempt() -> _Body | Again:
            headers = {"Authorization": f"Bearer {token.reveal()}"}
            answer = await self._client.post(self._url, json=asked, headers=headers)
            if answer.status_code == HTTPStatus.UNAUTHORIZED:
                raise StaleTokenError(field)
            limited = answer.status_code == HTTPStatus.TOO_MANY_REQUESTS
            if limited or is_worth_repeating(answer.status_code):
                return Again(f"status {answer.status_code}", maybe_done=True, after=retry_after(answer))
            body = _body(answer, field)
            if not body.errors:
                return body
            reason, wait = body.errors[0].message, _limited_for(body)
            if wait is None:
                raise PlatformTroubleError("Meetup", field, reason)
            return Again(reason, maybe_done=False, after=wait + CLOCK_SKEW_SECONDS)

        return await self._ask(field, attempt)


def _body(answer: httpx.Response, field: str) -> _Body:
    if not answer.is_success:
        remedy = "Check the API's address and the client."
        raise HttpRefusedError("Meetup", field, answer.status_code, "", remedy)
    try:
        return msgspec.json.decode(answer.content, type=_Body)
    except MALFORMED as error:
        raise PlatformTroubleError("Meetup", field, f"its answer: {error}") from error


def _limited_for(body: _Body) -> float | None:
    """Return the seconds until a rate limit ends; None without one, or if it is too long to wait for."""
    limit = next((e.extensions for e in body.errors if e.extensions.get("code") == "RATE_LIMITED"), None)
    if limit is None:
        return None
    try:
        seconds = (datetime.fromisoformat(str(limit["resetAt"])) - datetime.now(UTC)).total_seconds()
    except (KeyError, ValueError, TypeError):
        return 1.0
    return max(0.0, seconds) if seconds <= LONGEST_WAIT_SECONDS else None


def _time(text: str, event: str) -> datetime:
    """Read a time as Meetup writes it: without seconds, with the offset of the group."""
    try:
        time = datetime.fromisoformat(text)
        if time.tzinfo is None:
            raise ValueError("no offset")
        return time.astimezone(UTC)
    except (ValueError, OverflowError) as error:
        raise PlatformTroubleError("Meetup", f"event {event}", f"{text!r} is not a time") from error
