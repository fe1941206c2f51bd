"""Fields of an object that other events than its own carry stay up to date in both layouts."""

from __future__ import annotations

import pytest

from .both import Fed
from .feed import CHANNEL, GUILD, channel, guild


def test_channel_update_drops_the_voice_status(fed: Fed) -> None:
    """It did: CHANNEL_UPDATE carries a channel without its `status` and `voice_start_time`."""
    place = {"id": CHANNEL, "guild_id": GUILD}
    fed(("CHANNEL_CREATE", channel(guild_id=GUILD, type=2, topic="old")))
    fed(("VOICE_CHANNEL_STATUS_UPDATE", {**place, "status": "chess"}))
    fed(("VOICE_CHANNEL_START_TIME_UPDATE", {**place, "voice_start_time": 7}))
    fed(("CHANNEL_UPDATE", channel(guild_id=GUILD, type=2, name="v")))
    expected = channel(guild_id=GUILD, type=2, name="v", status="chess", voice_start_time=7)
    assert fed.channel(GUILD, CHANNEL) == expected
    fed(("CHANNEL_UPDATE", channel(guild_id=GUILD, type=2, status=None)))
    assert fed.channel(GUILD, CHANNEL)["status"] is None


def test_a_new_session_forgets_the_voice_status(fed: Fed) -> None:
    """It may have changed meanwhile, and Discord does not send it with the guild."""
    fed(("CHANNEL_CREATE", channel(guild_id=GUILD, type=2, status="chess")))
    fed(("GUILD_CREATE", guild(channels=[channel(type=2)], threads=[])))
    assert "status" not in fed.channel(GUILD, CHANNEL)


def sound(identity: str, **more: object) -> dict[str, object]:
    return {"sound_id": identity, "guild_id": GUILD, "name": "ding", **more}


def test_soundboard_inline_goes_stale(fed: Fed) -> None:
    """It did: no event about a sound changed the list of its guild."""
    fed(("GUILD_CREATE", guild(soundboard_sounds=[sound("7"), sound("8")])))
    fed(("GUILD_SOUNDBOARD_SOUND_DELETE", {"guild_id": GUILD, "sound_id": "7"}))
    assert fed.guild(GUILD)["soundboard_sounds"] == [sound("8")]
    fed(("GUILD_SOUNDBOARD_SOUND_CREATE", sound("9")))
    fed(("GUILD_SOUNDBOARD_SOUND_UPDATE", sound("8", name="dong")))
    assert fed.guild(GUILD)["soundboard_sounds"] == [sound("8", name="dong"), sound("9")]


@pytest.mark.parametrize("event", ["GUILD_SOUNDBOARD_SOUNDS_UPDATE", "SOUNDBOARD_SOUNDS"])
def test_a_list_of_sounds_replaces_the_stored_one(fed: Fed, event: str) -> None:
    fed(("GUILD_CREATE", guild()))
    fed((event, {"guild_id": GUILD, "soundboard_sounds": [sound("7")]}))
    assert fed.guild(GUILD)["soundboard_sounds"] == [sound("7")]
    fed((event, {"guild_id": GUILD, "soundboard_sounds": []}))
    assert fed.guild(GUILD)["soundboard_sounds"] == []


def test_a_sound_of_a_guild_without_a_list_is_not_kept(fed: Fed) -> None:
    """One sound would look like all of them."""
    fed(("GUILD_CREATE", guild()), ("GUILD_SOUNDBOARD_SOUND_CREATE", sound("7")))
    assert "soundboard_sounds" not in fed.guild(GUILD)
