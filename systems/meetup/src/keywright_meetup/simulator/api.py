"""The part of Meetup's GraphQL API that a bot asks: itself, a group's events, an event with its RSVPs.

Queries are not parsed: the one field that is asked for at the top decides, and variables say the rest, under
the names that Meetup's own arguments have.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any, TypeVar

from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from keywright_meetup.simulator.oauth import OAuthProvider
from keywright_meetup.simulator.world import MeetupWorld, SimulatedEvent

__all__ = ["GraphQl"]

Json = dict[str, Any]
T = TypeVar("T")

_TOP = re.compile(r"\{\s*(self|groupByUrlname|event)\b")
LARGEST_PAGE = 200


class GraphQl:
    """POST /gql-ext, for every client with an access token."""

    def __init__(self, world: MeetupWorld, oauth: OAuthProvider) -> None:
        self._world = world
        self._oauth = oauth
        self.limited = 0
        """How many requests are still refused with RATE_LIMITED."""

    async def answer(self, request: Request) -> Response:
        token = request.headers.get("authorization", "").removeprefix("Bearer ")
        member = self._oauth.holder(token)
        if member is None:
            return JSONResponse(
                {"errors": [{"code": "auth_fail", "message": "Invalid oauth credentials"}]}, 401
            )
        if self.limited > 0:
            self.limited -= 1
            return _limited()
        asked = await request.json()
        top = _TOP.search(asked["query"])
        if top is None:
            return _refused("Syntax Error")
        answer: Callable[[Json, str, int], Json | None] = getattr(self, f"_{top[1]}")
        data = answer(asked.get("variables") or {}, asked["query"], member)
        return JSONResponse({"data": {top[1]: data}})

    def _self(self, given: Json, query: str, member: int) -> Json:
        return {"id": str(member), "name": self._world.members[member]}

    def _groupByUrlname(self, given: Json, query: str, member: int) -> Json | None:  # noqa: N802  # Meetup's
        if given["urlname"] not in self._world.groups:
            return None
        after = (given.get("filter") or {}).get("afterDateTime")
        since = datetime.fromisoformat(after) if after else None
        events = self._world.events_of(given["urlname"], since)
        page = _page(events, given, lambda each: self._node(each, given))
        return {"id": given["urlname"], "events": page}

    def _event(self, given: Json, query: str, member: int) -> Json | None:
        event = self._world.events.get(given["eventId"])
        return None if event is None else self._node(event, given, paged=True)

    def _node(self, event: SimulatedEvent, given: Json, *, paged: bool = False) -> Json:
        shown = {"first": given.get("rsvps", 100), "after": given.get("after") if paged else None}
        return {
            "id": event.id,
            "title": event.title,
            "eventUrl": event.link,
            "description": event.description,
            "dateTime": _local(event.time),
            "status": event.status,
            "group": {"urlname": event.urlname},
            "eventHosts": [{"memberId": str(host)} for host in event.hosts],
            "rsvps": _page(list(event.rsvps.items()), shown, _rsvp),
        }


def _rsvp(rsvp: tuple[int, str]) -> Json:
    return {"status": rsvp[1], "member": {"id": str(rsvp[0])}}


def _local(time: datetime) -> str:
    """Return a time as Meetup writes it: without seconds and in the group's time zone."""
    offset = timedelta(hours=2)
    return f"{time.astimezone(UTC) + offset:%Y-%m-%dT%H:%M}+02:00"


def _page(items: Sequence[T], given: Json, shown: Callable[[T], Json]) -> Json:
    start = int(given.get("after") or 0)
    end = start + min(LARGEST_PAGE, int(given.get("first") or 20))
    more = end < len(items)
    return {
        "totalCount": len(items),
        "pageInfo": {"hasNextPage": more, "endCursor": str(end) if more else None},
        "edges": [{"node": shown(each)} for each in items[start:end]],
    }


def _limited() -> Response:
    reset = (datetime.now(UTC) + timedelta(milliseconds=50)).isoformat()
    extensions = {"code": "RATE_LIMITED", "consumedPoints": 500, "resetAt": reset}
    return JSONResponse({"errors": [{"message": "Too many requests", "extensions": extensions}]})


def _refused(message: str) -> Response:
    return JSONResponse({"errors": [{"message": message}]})
