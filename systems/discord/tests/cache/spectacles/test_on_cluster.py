"""The same on a six-node cluster, where the keys of one event live in many slots."""

from __future__ import annotations

from keywright.operations import slot_of
from keywright.testing import Raw
from keywright_discord.spectacles import bind
from keywright_discord.spectacles.store import SpectaclesCache

from .payloads import (
    ANN,
    BOT,
    GENERAL,
    GUILD,
    OTHER_GUILD,
    THREAD,
    Event,
    Opener,
    World,
    channel,
    full_guild,
    guild,
    message,
    presence,
    user,
)

SESSION: list[Event] = [
    ("READY", {"user": user(BOT, "bot"), "guilds": [{"id": GUILD}]}),
    ("GUILD_CREATE", full_guild()),
    ("GUILD_CREATE", guild(OTHER_GUILD, presences=[presence(ANN, OTHER_GUILD)])),
    ("GUILD_UPDATE", {"id": GUILD, "name": "there", "emojis": [{"id": "42"}]}),
    ("MESSAGE_CREATE", message()),
    ("MESSAGE_CREATE", message(place=THREAD)),
    ("MESSAGE_UPDATE", message(content="edited")),
]


def test_a_cluster_holds_what_a_single_server_holds(world: World, cluster_world: World) -> None:
    for each in (world, cluster_world):
        each.apply(*SESSION)
    assert cluster_world.all() == world.all()


def test_a_session_applied_again_changes_nothing(cluster_world: World) -> None:
    cluster_world.apply(*SESSION)
    before = cluster_world.all()
    cluster_world.apply(*SESSION)
    assert cluster_world.all() == before


def test_guild_create_replaces(cluster_world: World) -> None:
    cluster_world.apply(*SESSION, ("GUILD_CREATE", guild(channels=[channel("28")])))
    assert cluster_world.content("CHANNELS") == {"28": channel("28")}
    assert not {"EMOJIS", f"ROLES:{GUILD}", f"VOICE_STATES:{GUILD}"} & cluster_world.all().keys()


def test_a_channel_takes_its_threads_and_messages_along(cluster_world: World) -> None:
    cluster_world.apply(*SESSION, ("CHANNEL_DELETE", channel(GENERAL)))
    left = cluster_world.all()
    assert not [name for name in left if name.startswith("MESSAGES:")]
    assert THREAD not in left["CHANNELS"]


def test_guilds_that_go_leave_only_users(cluster_world: World) -> None:
    cluster_world.apply(*SESSION)
    cluster_world.apply(("GUILD_DELETE", {"id": GUILD}))
    assert f"PRESENCES:{ANN}" in cluster_world.all()
    cluster_world.apply(("READY", {"user": user(BOT, "bot"), "guilds": []}))
    assert cluster_world.all().keys() == {"USERS"}


def test_a_prefix_that_is_a_hash_tag_keeps_everything_in_one_slot(
    opener: Opener, cluster_url: str, raw_cluster: Raw
) -> None:
    world = World(opener(cluster_url, *bind(prefix="{bot}")), raw_cluster, SpectaclesCache())
    world.apply(*SESSION)
    assert {slot_of(name) for name in raw_cluster.names()} == {slot_of(b"{bot}")}
    world.apply(("READY", {"user": user(BOT, "bot"), "guilds": []}))
    assert raw_cluster.names() == {b"{bot}:USERS"}
