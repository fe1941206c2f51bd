"""The JSON of Reddit's API: the members that clients rely on, as a moderator sees them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from keywright_openmod.simulator.world import LogEntry, SimulatedSubmission, SimulatedSubreddit, SimulatedUser

__all__ = ["account", "listing", "log_entry", "submission", "subreddit"]

DELETED = "[deleted]"
SITE = "https://www.reddit.com"
LARGEST_PAGE = 100


def account(user: SimulatedUser) -> dict[str, Any]:
    """Return `/user/<name>/about`. A suspended account has few members."""
    if user.suspended:
        data: dict[str, Any] = {"name": user.name, "is_suspended": True, "total_karma": 0}
        return {"kind": "t2", "data": data}
    return {"kind": "t2", "data": own_account(user)}


def own_account(user: SimulatedUser) -> dict[str, Any]:
    return {
        "id": user.id.removeprefix("t2_"),
        "name": user.name,
        "is_employee": user.employee,
        "is_mod": True,
        "created_utc": 1.0e9,
    }


def subreddit(found: SimulatedSubreddit) -> dict[str, Any]:
    data = {
        "id": found.id.removeprefix("t5_"),
        "name": found.id,
        "display_name": found.name,
        "subreddit_type": "public",
    }
    return {"kind": "t5", "data": data}


def submission(found: SimulatedSubmission) -> dict[str, Any]:
    gone = found.deleted or found.author.deleted
    data: dict[str, Any] = {
        "id": found.id.partition("_")[2],
        "name": found.id,
        "author": DELETED if gone else found.author.name,
        "subreddit": found.subreddit.name,
        "subreddit_id": found.subreddit.id,
        "permalink": found.permalink,
        "created_utc": float(int(found.created)),
        "edited": False if found.edited is None else float(int(found.edited)),
    }
    if not gone:
        data["author_fullname"] = found.author.id
    return {"kind": found.id[:2], "data": data | (_post(found) if found.is_post else _comment(found))}


def _post(found: SimulatedSubmission) -> dict[str, Any]:
    removed_by = "deleted" if found.deleted else "moderator" if found.removed else None
    return {
        "title": found.title,
        "selftext": DELETED if found.deleted else found.body,
        "is_self": found.link is None,
        "url": found.link or f"{SITE}{found.permalink}",
        "removed_by_category": removed_by,
    }


def _comment(found: SimulatedSubmission) -> dict[str, Any]:
    return {
        "body": DELETED if found.deleted else found.body,
        "link_id": found.below,
        "parent_id": found.below,
    }


def log_entry(entry: LogEntry) -> dict[str, Any]:
    target = entry.target
    data: dict[str, Any] = {
        "id": entry.id,
        "action": entry.action,
        "mod": entry.moderator.name,
        "mod_id36": entry.moderator.id.removeprefix("t2_"),
        "subreddit": entry.subreddit.name,
        "sr_id36": entry.subreddit.id.removeprefix("t5_"),
        "created_utc": float(int(entry.created)),
        "target_fullname": target.id,
        "target_author": target.name if isinstance(target, SimulatedUser) else target.author.name,
        "target_permalink": None if isinstance(target, SimulatedUser) else target.permalink,
    }
    return {"kind": "modaction", "data": data}


def listing(newest_first: Sequence[dict[str, Any]], asked: Mapping[str, str]) -> dict[str, Any]:
    """Return a page of a listing, after the requested entry."""
    names = [str(each["data"].get("name", each["data"]["id"])) for each in newest_first]
    start = names.index(asked["after"]) + 1 if asked.get("after") in names else 0
    size = max(1, min(int(asked.get("limit", "25")), LARGEST_PAGE))
    page = newest_first[start : start + size]
    more = start + size < len(newest_first)
    after = names[start + size - 1] if more else None
    return {"kind": "Listing", "data": {"children": page, "after": after, "before": None, "dist": len(page)}}
