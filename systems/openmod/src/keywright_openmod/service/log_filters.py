"""The filters of the public log in an address: `?subreddit=…&moderator=…&action=…&user=…&since=…&until=…`."""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import UTC, date, datetime, time, timedelta
from urllib.parse import urlencode

from keywright.errors import UsageError
from keywright_openmod.actions import ACTIONS
from keywright_openmod.public_log import LARGEST_PAGE, LogPosition, LogQuery

__all__ = ["FILTERS", "LONGEST_NAME", "address_of", "query_of", "refuse_unknown"]

FILTERS = ("subreddit", "moderator", "action", "user", "since", "until")
PARAMETERS = (*FILTERS, "before", "limit")

LONGEST_NAME = 64
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
MILLISECOND = timedelta(milliseconds=1)
_position = re.compile(r"([0-9]{1,14})\.(t3_[0-9a-z]{1,32})").fullmatch
_size = re.compile("[0-9]{1,3}").fullmatch


def query_of(parameters: Mapping[str, str]) -> LogQuery:
    """Return the query of an address. Raise UsageError, which names the parameter, if one is invalid."""
    given = {name: parameters.get(name, "").strip() for name in PARAMETERS}
    return LogQuery(
        subreddit=_name(given, "subreddit", "r/"),
        moderator=_name(given, "moderator", "u/"),
        action=_action(given["action"]),
        user=_name(given, "user", "u/"),
        since=_moment(given, "since", time.min),
        until=_moment(given, "until", time.max),
        before=_before(given["before"]),
        size=_limit(given["limit"]),
    )


def refuse_unknown(parameters: Mapping[str, str]) -> None:
    """Raise UsageError for a parameter that is not a filter: without it too much would be listed."""
    for name in parameters:
        if name not in PARAMETERS:
            raise UsageError(
                f"{name[:LONGEST_NAME]!r} is not a parameter. There are {', '.join(PARAMETERS)}."
            )


def address_of(path: str, parameters: Mapping[str, str], before: LogPosition | None = None) -> str:
    """Return an address with the filters that are given, from a position on."""
    names = FILTERS if before is None else (*FILTERS, "limit")
    kept = {name: value for name in names if (value := parameters.get(name, "").strip())}
    if before is not None:
        kept["before"] = f"{(before.at - EPOCH) // MILLISECOND}.{before.post}"
    return f"{path}?{urlencode(kept)}" if kept else path


def _name(given: Mapping[str, str], parameter: str, prefix: str) -> str | None:
    name = given[parameter].removeprefix("/").removeprefix(prefix)
    if len(name) > LONGEST_NAME:
        raise UsageError(f"{parameter} must be a name of at most {LONGEST_NAME} characters.")
    return name or None


def _action(name: str) -> str | None:
    if name and name.lower() not in ACTIONS:
        raise UsageError(f"action must be one of {', '.join(ACTIONS)}.")
    return name.lower() or None


def _moment(given: Mapping[str, str], parameter: str, within_a_day: time) -> datetime | None:
    text = given[parameter]
    if not text:
        return None
    try:
        found = datetime.fromisoformat(text)
        if len(text) <= len("2024-01-02"):
            found = datetime.combine(date.fromisoformat(text), within_a_day)
        return (found if found.tzinfo else found.replace(tzinfo=UTC)).astimezone(UTC)
    except (ValueError, OverflowError) as error:
        example = "2024-01-02 or 2024-01-02T12:00:00Z"
        raise UsageError(f"{parameter} must be a day or a time, as in {example}.") from error


def _before(text: str) -> LogPosition | None:
    if not text:
        return None
    found = _position(text)
    if found is None:
        raise UsageError("before must be taken from the address of the next page.")
    try:
        return LogPosition(EPOCH + int(found[1]) * MILLISECOND, found[2])
    except OverflowError as error:
        raise UsageError("before must be taken from the address of the next page.") from error


def _limit(text: str) -> int:
    if not text:
        return LogQuery().size
    if not _size(text) or not 1 <= int(text) <= LARGEST_PAGE:
        raise UsageError(f"limit must be a number from 1 to {LARGEST_PAGE}.")
    return int(text)
