"""What happens on a subreddit, newest first, as the events that the model handles.

Reddit tells outside programs of nothing: the moderation log, new posts and comments, and the moderators'
list of edited submissions are read again and again. Deletions are in no list; see `deletions`.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from datetime import datetime
from typing import Any, NamedTuple, Protocol

from keywright_openmod.actions import action_of
from keywright_openmod.service.connection import RedditConnection
from keywright_openmod.service.reddit import moment

__all__ = ["Entry", "Feed", "RedditFeed", "reddit_feeds"]


class Entry(NamedTuple):
    """One entry of a feed; `event` is None where there is nothing to handle."""

    id: str
    at: datetime
    event: dict[str, Any] | None


class Feed(Protocol):
    @property
    def name(self) -> str: ...

    def newest_first(self) -> AsyncIterator[Entry]:
        """From the newest entry back, as far as the platform goes; the reader stops when it has enough."""
        ...


class RedditFeed:
    def __init__(
        self,
        name: str,
        connection: RedditConnection,
        subreddit: str,
        listing: Callable[[Any], AsyncIterator[Any]],
        entry: Callable[[Any], Entry],
    ) -> None:
        self.name = name
        self._connection = connection
        self._subreddit = subreddit
        self._listing = listing
        self._entry = entry

    async def newest_first(self) -> AsyncIterator[Entry]:
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
    def feed(
        name: str, listing: Callable[[Any], AsyncIterator[Any]], entry: Callable[[Any], Entry]
    ) -> RedditFeed:
        return RedditFeed(name, connection, subreddit, listing, entry)

    return [
        feed("log", lambda here: here.mod.log(limit=None), _logged),
        feed("posts", lambda here: here.new(limit=None), _submitted),
        feed("comments", lambda here: here.comments(limit=None), _submitted),
        feed("edits", lambda here: here.mod.edited(limit=None), _edited),
    ]


def _logged(found: Any) -> Entry:
    entry = Entry(found.id, moment(found.created_utc), None)
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


def _submitted(found: Any) -> Entry:
    return Entry(found.fullname, moment(found.created_utc), about(found.fullname, "Submit"))


def _edited(found: Any) -> Entry:
    return Entry(
        f"{found.fullname} {found.edited:.0f}", moment(found.edited), about(found.fullname, "Update")
    )


def about(thing: str, happening: str) -> dict[str, Any]:
    """The event that something happened to a submission, where its id is all there is to tell."""
    if thing.startswith("t3_"):
        return {"type": f"Post{happening}", "post": {"id": thing}}
    return {"type": f"Comment{happening}", "comment": {"id": thing}}
