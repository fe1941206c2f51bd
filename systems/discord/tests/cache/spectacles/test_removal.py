"""Removal of guilds, channels, threads and members with everything that belongs to them."""

from __future__ import annotations

from .payloads import (
    ANN,
    BOB,
    BOT,
    GENERAL,
    GUILD,
    MESSAGE,
    OTHER_GUILD,
    PRIVATE,
    THREAD,
    VOICE,
    World,
    channel,
    full_guild,
    guild,
    member,
    message,
    presence,
    stored_guild,
    thread,
    user,
)

LEAVE = ("GUILD_DELETE", {"id": GUILD})


def test_a_guild_that_goes_leaves_only_users(world: World) -> None:
    sent = [("MESSAGE_CREATE", message(place=place)) for place in (GENERAL, THREAD, "28")]
    world.apply(("GUILD_CREATE", full_guild()), *sent, ("PRESENCE_UPDATE", presence(BOB)))
    world.apply(LEAVE)
    assert world.all().keys() == {"USERS"}


def test_a_guild_that_goes_leaves_other_guilds_alone(world: World) -> None:
    other = guild(
        OTHER_GUILD,
        channels=[channel("29", OTHER_GUILD)],
        emojis=[{"id": "49"}],
        roles=[{"id": "39"}],
        members=[member(ANN, "ann")],
        presences=[presence(BOT, OTHER_GUILD)],
    )
    sent = message(place="29", guild_id=OTHER_GUILD)
    world.apply(("GUILD_CREATE", other), ("MESSAGE_CREATE", sent))
    before = world.all()
    world.apply(("GUILD_CREATE", full_guild()), LEAVE)
    after = world.all()
    assert after.pop("USERS").keys() > before.pop("USERS").keys()
    assert after == before


def test_a_presence_stays_while_another_guild_shows_it(world: World) -> None:
    for each in (GUILD, OTHER_GUILD):
        world.apply(("GUILD_CREATE", guild(each, presences=[presence(ANN, each)])))
    world.apply(LEAVE)
    assert world.content(f"PRESENCES:{ANN}") == {ANN: presence(ANN, OTHER_GUILD)}
    world.apply(("GUILD_DELETE", {"id": OTHER_GUILD}))
    assert world.all() == {}


def test_a_presence_stays_with_a_member_of_another_guild(world: World) -> None:
    for each in (GUILD, OTHER_GUILD):
        world.apply(("PRESENCE_UPDATE", presence(ANN, each)))
    for each in (GUILD, OTHER_GUILD):
        assert f"PRESENCES:{ANN}" in world.all()
        world.apply(("GUILD_MEMBER_REMOVE", {"guild_id": each, "user": user(ANN, "ann")}))
    assert world.all().keys() == {"USERS"}


def test_a_presence_that_came_with_its_members_removal_goes_too(world: World) -> None:
    gone = ("GUILD_MEMBER_REMOVE", {"guild_id": GUILD, "user": user(ANN, "ann")})
    world.apply(("PRESENCE_UPDATE", presence(ANN)), gone)
    assert world.all().keys() == {"USERS"}


def test_a_user_that_is_offline_is_so_in_every_guild(world: World) -> None:
    for each in (GUILD, OTHER_GUILD):
        world.apply(("PRESENCE_UPDATE", presence(ANN, each)))
    world.apply(("PRESENCE_UPDATE", presence(ANN, status="offline")))
    assert world.public() == {}
    world.apply(("PRESENCE_UPDATE", presence(ANN, OTHER_GUILD, "offline")))
    assert world.all() == {}


def test_a_channel_takes_its_threads_and_messages_along(world: World) -> None:
    beside = thread("1300000000000000027", VOICE)
    sent = [("MESSAGE_CREATE", message(place=place)) for place in (GENERAL, THREAD)]
    stays = ("MESSAGE_CREATE", message(place=VOICE))
    channels = [("CHANNEL_CREATE", channel(GENERAL)), ("CHANNEL_CREATE", channel(VOICE))]
    threads = [("THREAD_CREATE", thread()), ("THREAD_CREATE", beside)]
    world.apply(*channels, *threads, *sent, stays, ("CHANNEL_DELETE", channel(GENERAL)))
    kept = message(place=VOICE)
    assert world.all() == {
        "USERS": {ANN: user(ANN, "ann")},
        "CHANNELS": {VOICE: channel(VOICE, last_message_id=MESSAGE), beside["id"]: beside},
        f"CHANNELS:{GUILD}": {VOICE, beside["id"]},
        f"MESSAGES:{VOICE}:{MESSAGE}": kept,
        f"{PRIVATE}threads:{GUILD}": {beside["id"]: int(VOICE)},
        f"{PRIVATE}messages:{VOICE}": {MESSAGE},
        f"{PRIVATE}message-channels:{GUILD}": {VOICE},
    }


def test_a_channel_takes_its_stage_instance_along(world: World) -> None:
    stage = {"guild_id": GUILD, "id": "81", "channel_id": VOICE}
    world.apply(("GUILD_CREATE", guild(stage_instances=[stage])), ("CHANNEL_DELETE", channel(VOICE)))
    assert world.content("GUILDS") == {GUILD: stored_guild()}


def test_a_thread_takes_its_messages_along(world: World) -> None:
    gone = {"id": THREAD, "guild_id": GUILD, "parent_id": GENERAL, "type": 11}
    world.apply(("THREAD_CREATE", thread()), ("MESSAGE_CREATE", message(place=THREAD)))
    world.apply(("THREAD_DELETE", gone))
    assert world.all().keys() == {"USERS"}


def test_a_thread_that_moved_goes_with_its_new_parent(world: World) -> None:
    world.apply(("THREAD_CREATE", thread()), ("THREAD_UPDATE", thread(parent=VOICE)))
    world.apply(("CHANNEL_DELETE", channel(GENERAL)))
    assert world.content("CHANNELS").keys() == {THREAD}
    world.apply(("CHANNEL_DELETE", channel(VOICE)))
    assert world.all() == {}


def test_ready_drops_the_guilds_that_were_left_while_offline(world: World) -> None:
    world.apply(
        ("GUILD_CREATE", full_guild()),
        ("GUILD_CREATE", guild(OTHER_GUILD, presences=[presence(ANN, OTHER_GUILD)])),
        ("GUILD_CREATE", guild("7")),
    )
    world.apply(("READY", {"user": user(BOT, "bot"), "guilds": [{"id": "7", "unavailable": True}]}))
    assert world.public() == {
        "USERS": {BOT: user(BOT, "bot"), ANN: user(ANN, "ann"), BOB: user(BOB, "bob")},
        "GUILDS": {"7": stored_guild("7")},
    }
    assert world.all().keys() - world.public().keys() == {f"{PRIVATE}guilds"}


def test_ready_leaves_the_guilds_of_other_shards(world: World) -> None:
    mine, others = str(2 << 22), str(3 << 22)
    world.apply(("GUILD_CREATE", guild(mine)), ("GUILD_CREATE", guild(others)))
    world.apply(("READY", {"user": user(BOT, "bot"), "guilds": [], "shard": [0, 2]}))
    assert world.content("GUILDS").keys() == {others}


def test_ready_drops_a_guild_of_which_only_members_are_known(world: World) -> None:
    world.apply(("GUILD_CREATE", {"id": GUILD, "unavailable": True}))
    world.apply(("GUILD_MEMBER_ADD", member(ANN, "ann", guild_id=GUILD)))
    world.apply(("READY", {"user": user(BOT, "bot"), "guilds": []}))
    assert world.all().keys() == {"USERS"}
