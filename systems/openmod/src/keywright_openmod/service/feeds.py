"""The feeds of a subreddit: listings of Reddit, newest first, as events for the recorder.

Reddit does not push events to outside programs, so its listings are polled: the moderation log, new posts,
new comments, and the moderators' list of edited submissions. No listing has deletions; see `deletions`.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from datetime import datetime
from typing import Any, NamedTuple, Protocol

from keywright_openmod.actions import action_of
from keywright_openmod.service.connection import RedditConnection
from keywright_openmod.service.reddit import utc_time

__all__ = ["Feed", "FeedEntry", "RedditFeed", "reddit_feeds", "submission_event"]


class FeedEntry(NamedTuple):
    """One entry of a feed; `event` is None if there is nothing to handle."""

    id: str
    at: datetime
    event: dict[str, Any] | None


class Feed(Protocol):
    """A named listing of entries."""

    @property
    def name(self) -> str: ...

    def newest_first(self) -> AsyncIterator[FeedEntry]:
        """Yield entries from the newest back, as far as the platform goes; the poller stops earlier."""
        ...


class RedditFeed:
    """A listing of Reddit as a Feed."""

    def __init__(
        self,
        name: str,
        connection: RedditConnection,
        subreddit: str,
        listing: Callable[[Any], AsyncIterator[Any]],
        entry: Callable[[Any], FeedEntry],
    ) -> None:
        self.name = name
        self._connection = connection
        self._subreddit = subreddit
        self._listing = listing
        self._entry = entry

    async def newest_first(self) -> AsyncIterator[FeedEntry]:
        asked = f"the {self.name} of r/{self._subreddit}"
        listing: AsyncIterator[Any] | None = None
        while True:
            async with self._connection.asking(asked):
                if listing is None:
                    listing = self._listing(await self._connection.reddit.subreddit(self._subreddit))
                found = await anext(listing, None)
                if found is None:
                    return
                entry = self._entry(found)
            yield entry


def reddit_feeds(connection: RedditConnection, subreddit: str) -> list[Feed]:
    """Return the four feeds of a subreddit."""

    def feed(
        name: str, listing: Callable[[Any], AsyncIterator[Any]], entry: Callable[[Any], FeedEntry]
    ) -> RedditFeed:
        return RedditFeed(name, connection, subreddit, listing, entry)

    return [
        feed("log", lambda here: here.mod.log(limit=None), _log_entry),
        feed("posts", lambda here: here.new(limit=None), _submission_entry),
        feed("comments", lambda here: here.comments(limit=None), _submission_entry),
        feed("edits", lambda here: here.mod.edited(limit=None), _edit_entry),
    ]


def submission_event(thing: str, happening: str) -> dict[str, Any]:
    """Return a Submit or Update event of a submission of which only the id is known."""
    if thing.startswith("t3_"):
        return {"type": f"Post{happening}", "post": {"id": thing}}
    return {"type": f"Comment{happening}", "comment": {"id": thing}}


def _log_entry(found: Any) -> FeedEntry:
    entry = FeedEntry(found.id, utc_time(found.created_utc), None)
    if action_of(found.action) is None:
        return entry
    target = found.target_fullname or ""
    moderator = getattr(found, "mod_id36", None)
    event = {
        "type": "ModAction",
        "action": found.action,
        "actionedAt": round(found.created_utc * 1000),
        "subreddit": {"name": str(found.subreddit)},
        "moderator": {"name": found.mod.name, "id": f"t2_{moderator}" if moderator else ""},
        "targetUser": {"name": found.target_author or "", "id": target if target.startswith("t2_") else ""},
        "targetPost": {"id": target if target.startswith("t3_") else ""},
        "targetComment": {"id": target if target.startswith("t1_") else ""},
    }
    return entry._replace(event=event)


def _submission_entry(found: Any) -> FeedEntry:
    return FeedEntry(found.fullname, utc_time(found.created_utc), submission_event(found.fullname, "Submit"))


def _edit_entry(found: Any) -> FeedEntry:
    # A submission can be edited several times, so its id alone does not identify an entry.
    name = f"{found.fullname} {found.edited:.0f}"
    return FeedEntry(name, utc_time(found.edited), submission_event(found.fullname, "Update"))
