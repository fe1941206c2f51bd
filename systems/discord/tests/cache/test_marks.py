"""A cache stores its progress with its writes."""

from __future__ import annotations

import msgspec
import pytest

from keywright import Keyspace, Value
from keywright.testing import OpenRun, Raw, Run
from keywright_discord.drc.schema import bind
from keywright_discord.drc.store import DrcCache

noted = Keyspace("noted", "How far a cache is.")

USER = {"id": "5", "username": "someone"}


class Place(Value[int], key="place", space=noted):
    """The position of the last event that was applied."""


def typing(user: str) -> tuple[str, bytes]:
    data = {"guild_id": "1", "channel_id": "2", "user_id": user, "member": {"user": {**USER, "id": user}}}
    return "TYPING_START", msgspec.json.encode(data)


MESSAGE_GONE = ("MESSAGE_DELETE", b'{"id":"9","channel_id":"2","guild_id":"1"}')
MALFORMED = ("MESSAGE_CREATE", b'{"content":"no id"}')
UNKNOWN = ("SOMETHING_NEW", b"{}")


@pytest.mark.parametrize(
    ("events", "place"),
    [
        ([typing("5")], 0),
        ([typing("5"), typing("6"), typing("7")], 2),
        ([typing("5"), MALFORMED, typing("7")], 2),
        ([typing("5"), MALFORMED], 0),
        ([typing("5"), MESSAGE_GONE, typing("7"), UNKNOWN], 3),
        ([UNKNOWN], None),
        ([], None),
    ],
)
def test_the_last_event_that_was_applied_is_noted(
    open_run: OpenRun, redis_url: str, events: list[tuple[str, bytes]], place: int | None
) -> None:
    run = open_run(redis_url, *bind("bot"))
    run(DrcCache().apply(events, lambda at: Place().set(at)))
    assert run(Place().get()) == place


def test_it_is_noted_in_the_transaction_that_applies(open_run: OpenRun, redis_url: str, raw: Raw) -> None:
    run = open_run(redis_url, *bind("bot"))
    raw("CONFIG", "RESETSTAT")
    run(DrcCache().apply([typing("5"), typing("6")], lambda at: Place().set(at)))
    assert (raw.calls_of("exec"), run(Place().get())) == (1, 1)


def test_a_cluster_notes_it_after_all_is_applied(cluster_run: Run) -> None:
    cluster_run(DrcCache().apply([typing("5"), typing("6")], lambda at: Place().set(at)))
    assert cluster_run(Place().get()) == 1
