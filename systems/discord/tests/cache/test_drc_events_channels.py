"""Each event about channels and threads: the keys that it leaves in Redis."""

from __future__ import annotations

import pytest

from .feed import (
    ANN,
    BOT,
    CHANNEL,
    GUILD,
    OTHER_GUILD,
    THREAD,
    Feed,
    channel,
    member,
    ready,
    thread,
    user,
    whole_member,
)


@pytest.mark.parametrize("event", ["CHANNEL_CREATE", "CHANNEL_UPDATE"])
def test_a_channel_is_written_as_it_came(feed: Feed, event: str) -> None:
    feed("CHANNEL_CREATE", channel(guild_id=GUILD, topic="old"))
    feed(event, channel(guild_id=GUILD, name="new"))
    assert feed.at(f"channels:{GUILD}") == {CHANNEL: channel(guild_id=GUILD, name="new")}


@pytest.mark.parametrize("event", ["CHANNEL_CREATE", "CHANNEL_UPDATE", "CHANNEL_DELETE"])
def test_a_channel_without_a_guild_has_no_key(feed: Feed, event: str) -> None:
    """Direct messages are not cached (docs/resolutions.md#a81)."""
    feed.changes_nothing(event, {"id": CHANNEL, "type": 1, "recipients": [user(ANN)]})


def test_channel_delete_takes_its_stage_and_its_threads_along(feed: Feed) -> None:
    """And nothing of other channels (docs/resolutions.md#a67)."""
    feed("READY", ready())
    feed("CHANNEL_CREATE", channel(guild_id=GUILD))
    feed("CHANNEL_CREATE", channel("2", guild_id=GUILD))
    feed("THREAD_CREATE", thread(member={"flags": 1}))
    feed("THREAD_CREATE", thread("3", parent_id="2"))
    feed("STAGE_INSTANCE_CREATE", {"id": "9", "guild_id": GUILD, "channel_id": CHANNEL})
    feed("CHANNEL_DELETE", channel(guild_id=GUILD))
    assert feed.at(f"channels:{GUILD}") == {"2": channel("2", guild_id=GUILD)}
    for name in (f"stage-instances:{CHANNEL}", f"threads:{THREAD}", f"thread-members:{THREAD}"):
        assert feed.at(name) is None
    assert feed.at("threads:3") == thread("3", parent_id="2")
    assert feed.everything()[1] == {f"threads:{GUILD}": {"3": 2}}


def test_channel_pins_update_sets_the_time_on_channel_or_thread(feed: Feed) -> None:
    """The event does not say which of them it is about."""
    feed("CHANNEL_CREATE", channel(guild_id=GUILD))
    feed("THREAD_CREATE", thread())
    pinned = {"guild_id": GUILD, "last_pin_timestamp": "2026-01-01"}
    feed("CHANNEL_PINS_UPDATE", {**pinned, "channel_id": CHANNEL})
    feed("CHANNEL_PINS_UPDATE", {**pinned, "channel_id": THREAD})
    placed = channel(guild_id=GUILD, last_pin_timestamp="2026-01-01")
    assert feed.at(f"channels:{GUILD}") == {CHANNEL: placed}
    assert feed.at(f"threads:{THREAD}") == thread(last_pin_timestamp="2026-01-01")
    feed("CHANNEL_PINS_UPDATE", {"guild_id": GUILD, "channel_id": THREAD, "last_pin_timestamp": None})
    assert feed.at(f"threads:{THREAD}") == thread(last_pin_timestamp=None)
    feed.changes_nothing("CHANNEL_PINS_UPDATE", {**pinned, "channel_id": "99"})
    feed.changes_nothing("CHANNEL_PINS_UPDATE", {"channel_id": CHANNEL, "last_pin_timestamp": None})


def test_voice_channel_events_set_fields_of_the_channel(feed: Feed) -> None:
    """They are the only ones that carry these fields."""
    feed("CHANNEL_CREATE", channel(guild_id=GUILD))
    feed("VOICE_CHANNEL_STATUS_UPDATE", {"id": CHANNEL, "guild_id": GUILD, "status": "tea"})
    feed("VOICE_CHANNEL_START_TIME_UPDATE", {"id": CHANNEL, "guild_id": GUILD, "voice_start_time": 5})
    given = channel(guild_id=GUILD, status="tea", voice_start_time=5)
    assert feed.at(f"channels:{GUILD}") == {CHANNEL: given}
    told_again = {"id": CHANNEL, "status": None, "voice_start_time": 6, "novelty": 1}
    feed("CHANNEL_INFO", {"guild_id": GUILD, "channels": [told_again, {"id": "99", "status": "x"}]})
    given = channel(guild_id=GUILD, status=None, voice_start_time=6)
    assert feed.at(f"channels:{GUILD}") == {CHANNEL: given}


@pytest.mark.parametrize("event", ["THREAD_CREATE", "THREAD_UPDATE"])
def test_a_thread_is_stored_with_the_bots_membership_apart(feed: Feed, event: str) -> None:
    """`member` is stored by user id, and threads are not channels (docs/resolutions.md#a38, #a40, #a43)."""
    feed("READY", ready())
    feed(event, thread(member={"flags": 1, "join_timestamp": "t"}))
    assert feed.at(f"threads:{THREAD}") == thread()
    own = {"flags": 1, "join_timestamp": "t", "id": THREAD, "user_id": BOT}
    assert feed.at(f"thread-members:{THREAD}") == {BOT: own}
    assert feed.at(f"channels:{GUILD}") is None


def test_thread_update_merges_and_keeps_archived_threads(feed: Feed) -> None:
    """See docs/resolutions.md#a46."""
    feed("THREAD_CREATE", thread(newly_created=True))
    feed("THREAD_UPDATE", thread(thread_metadata={"archived": True}))
    assert feed.at(f"threads:{THREAD}") == thread(newly_created=True, thread_metadata={"archived": True})


def test_thread_delete_removes_thread_and_members(feed: Feed) -> None:
    """The event carries only four fields (docs/resolutions.md#a45)."""
    feed("READY", ready())
    feed("THREAD_CREATE", thread(member={"flags": 1}))
    feed("THREAD_DELETE", {"id": THREAD, "guild_id": GUILD, "parent_id": CHANNEL, "type": 11})
    assert feed.at(f"threads:{THREAD}") is None
    assert feed.at(f"thread-members:{THREAD}") is None
    assert feed.everything()[1] == {}


def test_thread_list_sync_replaces_the_threads_of_some_channels(feed: Feed) -> None:
    """Those of other channels stay; the members are the bot's own (docs/resolutions.md#a44)."""
    feed("READY", ready())
    feed("THREAD_CREATE", thread("3", member={"flags": 1}))
    feed("THREAD_CREATE", thread("4", parent_id="2"))
    own = {"id": THREAD, "user_id": BOT, "flags": 2}
    sync = {"guild_id": GUILD, "channel_ids": [CHANNEL], "threads": [thread()], "members": [own]}
    feed("THREAD_LIST_SYNC", sync)
    assert feed.at("threads:3") is None
    assert feed.at("thread-members:3") is None
    assert feed.at("threads:4") == thread("4", parent_id="2")
    assert feed.at(f"threads:{THREAD}") == thread()
    assert feed.at(f"thread-members:{THREAD}") == {BOT: own}


def test_thread_list_sync_without_channels_is_about_the_whole_guild(feed: Feed) -> None:
    feed("THREAD_CREATE", thread("3"))
    feed("THREAD_CREATE", thread("4", parent_id="2"))
    feed("THREAD_CREATE", thread("5", guild_id=OTHER_GUILD))
    feed("THREAD_LIST_SYNC", {"guild_id": GUILD, "threads": [thread()], "members": []})
    assert {name for name in feed.names() if name.startswith("threads:")} == {
        f"threads:{THREAD}",
        "threads:5",
    }


def test_thread_member_update_stores_the_bots_membership(feed: Feed) -> None:
    own = {"id": THREAD, "user_id": BOT, "guild_id": GUILD, "flags": 3}
    feed("THREAD_MEMBER_UPDATE", own)
    assert feed.at(f"thread-members:{THREAD}") == {BOT: own}


def test_thread_members_update_adds_and_removes(feed: Feed) -> None:
    """The guild member and presence of a new one are stored apart (docs/resolutions.md#a41, #a42)."""
    feed("THREAD_CREATE", thread(member_count=1))
    plain = {"id": THREAD, "user_id": ANN, "flags": 0}
    shown = {"user": {"id": ANN}, "status": "online"}
    added = {**plain, "member": whole_member(ANN, nick="A"), "presence": shown}
    feed(
        "THREAD_MEMBERS_UPDATE",
        {"id": THREAD, "guild_id": GUILD, "member_count": 2, "added_members": [added]},
    )
    assert feed.at(f"thread-members:{THREAD}") == {ANN: plain}
    assert feed.at(f"members:{GUILD}:{ANN}") == member(nick="A")
    assert feed.at(f"users:{ANN}") == user(ANN)
    assert feed.at(f"presence:{GUILD}:{ANN}") == {"user": ANN, "status": "online", "guild_id": GUILD}
    assert feed.at(f"threads:{THREAD}") == thread(member_count=2)
    feed(
        "THREAD_MEMBERS_UPDATE",
        {"id": THREAD, "guild_id": GUILD, "member_count": 1, "removed_member_ids": [ANN]},
    )
    assert feed.at(f"thread-members:{THREAD}") is None
    assert feed.at(f"threads:{THREAD}") == thread(member_count=1)
    assert feed.at(f"members:{GUILD}:{ANN}") == member(nick="A")
