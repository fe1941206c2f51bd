"""The routing of events on the simulated gateway, and its answers to requests."""

from __future__ import annotations

from typing import Any

import pytest

from keywright.testing import ManualClock
from keywright_discord.gateway.intents import ALL
from keywright_discord.simulator import PRIVILEGED, DiscordSimulator, Intents, Op
from keywright_discord.simulator.world import SimulatedWorld

from .simulator_client import Client, client, on_discord, shard, simulated

pytestmark = pytest.mark.anyio


@on_discord(guilds=40, members=2)
async def test_each_shard_has_the_guilds_and_events_that_are_its_own(discord: DiscordSimulator) -> None:
    async with shard(discord, 0, 3) as zero, shard(discord, 1, 3) as one, shard(discord, 2, 3) as two:
        for guild in discord.world.guilds:
            assert await discord.say(guild, guild=guild)
        await discord.dispatch("END", {})
        for number, bot in enumerate((zero, one, two)):
            mine = [guild for guild in discord.world.guilds if (int(guild) >> 22) % 3 == number]
            assert mine
            for guild in mine:
                assert (await bot.packet())["d"]["content"] == guild
        assert (await zero.packet())["t"] == "END", "what is in no guild is for shard 0"
        assert await one.silent()
        assert await two.silent()


@on_discord()
async def test_a_direct_message_goes_to_shard_0(discord: DiscordSimulator) -> None:
    async with shard(discord, 0, 2) as zero, shard(discord, 1, 2) as one:
        assert await discord.dispatch("MESSAGE_CREATE", {"id": "1", "content": "psst"}) == 1
        assert (await zero.next("MESSAGE_CREATE"))["content"] == "psst"
        assert await one.silent()


_NEEDED = [
    ("CHANNEL_UPDATE", Intents.GUILDS),
    ("GUILD_ROLE_DELETE", Intents.GUILDS),
    ("GUILD_MEMBER_ADD", Intents.GUILD_MEMBERS),
    ("GUILD_BAN_ADD", Intents.GUILD_MODERATION),
    ("GUILD_EMOJIS_UPDATE", Intents.GUILD_EXPRESSIONS),
    ("INTEGRATION_CREATE", Intents.GUILD_INTEGRATIONS),
    ("WEBHOOKS_UPDATE", Intents.GUILD_WEBHOOKS),
    ("INVITE_DELETE", Intents.GUILD_INVITES),
    ("VOICE_STATE_UPDATE", Intents.GUILD_VOICE_STATES),
    ("PRESENCE_UPDATE", Intents.GUILD_PRESENCES),
    ("MESSAGE_DELETE_BULK", Intents.GUILD_MESSAGES),
    ("MESSAGE_REACTION_REMOVE_EMOJI", Intents.GUILD_MESSAGE_REACTIONS),
    ("TYPING_START", Intents.GUILD_MESSAGE_TYPING),
    ("GUILD_SCHEDULED_EVENT_USER_ADD", Intents.GUILD_SCHEDULED_EVENTS),
    ("AUTO_MODERATION_RULE_UPDATE", Intents.AUTO_MODERATION_CONFIGURATION),
    ("AUTO_MODERATION_ACTION_EXECUTION", Intents.AUTO_MODERATION_EXECUTION),
    ("MESSAGE_POLL_VOTE_ADD", Intents.GUILD_MESSAGE_POLLS),
]


@on_discord(max_concurrency=1)
async def test_an_event_is_sent_only_with_its_intent(discord: DiscordSimulator) -> None:
    guild = discord.world.guilds[0]
    for event, intent in _NEEDED:
        async with (
            shard(discord, intents=intent) as with_it,
            shard(discord, intents=ALL & ~intent) as without,
        ):
            assert await discord.dispatch(event, {"guild_id": guild, "id": "1", "user": {"id": "2"}}) == 1, (
                event
            )
            assert (await with_it.packet())["t"] == event
            assert await without.silent()
            await with_it.socket.close()
            await without.socket.close()
        await discord.until(lambda: not discord.sessions, "both are gone")


@pytest.mark.parametrize(
    ("event", "intent"),
    [
        ("MESSAGE_CREATE", Intents.DIRECT_MESSAGES),
        ("CHANNEL_PINS_UPDATE", Intents.DIRECT_MESSAGES),
        ("MESSAGE_REACTION_ADD", Intents.DIRECT_MESSAGE_REACTIONS),
        ("TYPING_START", Intents.DIRECT_MESSAGE_TYPING),
        ("MESSAGE_POLL_VOTE_REMOVE", Intents.DIRECT_MESSAGE_POLLS),
    ],
)
async def test_direct_messages_have_intents_of_their_own(event: str, intent: Intents) -> None:
    async with (
        simulated() as discord,
        shard(discord, intents=intent) as with_it,
        shard(discord, intents=ALL & ~intent) as without,
    ):
        assert await discord.dispatch(event, {"id": "1"}) == 1
        assert (await with_it.packet())["t"] == event
        assert await without.silent()


@on_discord()
async def test_the_bot_hears_of_its_own_changes_without_the_members_intent(discord: DiscordSimulator) -> None:
    guild, own = discord.world.guilds[0], discord.world.bot["id"]
    async with shard(discord, intents=Intents.GUILDS) as bot:
        await discord.dispatch("GUILD_MEMBER_UPDATE", {"guild_id": guild, "user": {"id": "1"}})
        await discord.dispatch("GUILD_MEMBER_UPDATE", {"guild_id": guild, "user": {"id": own}, "nick": "me"})
        await discord.dispatch("THREAD_MEMBERS_UPDATE", {"guild_id": guild, "removed_member_ids": ["1"]})
        await discord.dispatch("THREAD_MEMBERS_UPDATE", {"guild_id": guild, "removed_member_ids": [own]})
        assert (await bot.packet())["d"]["nick"] == "me"
        assert (await bot.packet())["d"]["removed_member_ids"] == [own]
        assert await bot.silent()


@on_discord()
async def test_without_the_guilds_intent_no_guild_is_created(discord: DiscordSimulator) -> None:
    async with shard(discord, intents=Intents.GUILD_MESSAGES) as bot:
        assert await bot.silent()


@on_discord()
async def test_message_content_is_hidden_without_its_intent(discord: DiscordSimulator) -> None:
    guild, own = discord.world.guilds[0], discord.world.bot
    made = discord.world.message("secret", guild=guild) | {"poll": {"question": {"text": "?"}}}
    async with shard(discord, intents=Intents.GUILD_MESSAGES | Intents.DIRECT_MESSAGES) as bot:
        await discord.dispatch("MESSAGE_CREATE", made)
        hidden = await bot.next("MESSAGE_CREATE")
        assert (hidden["content"], hidden["embeds"], hidden["attachments"]) == ("", [], [])
        assert "poll" not in hidden
        for readable in (
            made | {"mentions": [own]},
            made | {"author": own},
            {name: value for name, value in made.items() if name != "guild_id"},
        ):
            await discord.dispatch("MESSAGE_CREATE", readable)
            assert (await bot.next("MESSAGE_CREATE"))["content"] == "secret"


async def _first_guild(discord: DiscordSimulator, bot: Client, **identify: Any) -> Any:
    await bot.identify(discord.token, **identify)
    return await bot.next("GUILD_CREATE")


@on_discord(guilds=1, members=100)
async def test_members_of_a_guild_depend_on_presences_and_size(discord: DiscordSimulator) -> None:
    whole = discord.world.guild_create(discord.world.guilds[0])
    assert whole is not None
    voice = {each["user_id"] for each in whole["voice_states"]} | {discord.world.bot["id"]}
    online = {each["user"]["id"] for each in whole["presences"]}
    for intents, threshold, seen in (
        (ALL, 250, {each["user"]["id"] for each in whole["members"]}),
        (ALL, 99, voice | online),
        (ALL & ~PRIVILEGED, 250, voice),
    ):
        async with client(discord) as bot:
            created = await _first_guild(discord, bot, intents=intents, large_threshold=threshold)
            assert {each["user"]["id"] for each in created["members"]} == seen
            assert created["large"] is (threshold < 100)
            assert created["member_count"] == 100
            assert bool(created["presences"]) is bool(intents & Intents.GUILD_PRESENCES)


@on_discord(guilds=500, members=2)
async def test_an_event_never_comes_before_the_guild_it_is_about(discord: DiscordSimulator) -> None:
    last = discord.world.guilds[-1]
    async with client(discord) as bot:
        await bot.identify(discord.token)
        await bot.next("READY")
        await discord.say("early", guild=last)
        order = [
            (each["t"], each["d"].get("guild_id", each["d"]["id"]))
            for each in await bot.events("MESSAGE_CREATE")
        ]
        assert order.index(("GUILD_CREATE", last)) < order.index(("MESSAGE_CREATE", last))
        rest = [await bot.packet() for _ in range(501 - len(order))]
        created = [guild for event, guild in order if event == "GUILD_CREATE"] + [
            each["d"]["id"] for each in rest
        ]
        assert sorted(created) == sorted(discord.world.guilds)


@on_discord()
async def test_guilds_can_be_joined_and_left(discord: DiscordSimulator) -> None:
    async with shard(discord) as bot:
        joined = await discord.join_guild(members=3)
        assert (await bot.next("GUILD_CREATE"))["id"] == joined
        await discord.leave_guild(joined)
        assert await bot.next("GUILD_DELETE") == {"id": joined}
        assert joined not in discord.world.guilds


@on_discord(members=2500, guilds=1)
async def test_all_members_come_in_chunks_of_a_thousand(discord: DiscordSimulator) -> None:
    guild = discord.world.guilds[0]
    async with shard(discord) as bot:
        asked = {"guild_id": guild, "query": "", "limit": 0, "presences": True, "nonce": "mine"}
        await bot.send(Op.REQUEST_GUILD_MEMBERS, asked)
        chunks = [await bot.next("GUILD_MEMBERS_CHUNK") for _ in range(3)]
        assert [each["chunk_index"] for each in chunks] == [0, 1, 2]
        assert {(each["chunk_count"], each["nonce"], each["guild_id"]) for each in chunks} == {
            (3, "mine", guild)
        }
        assert [len(each["members"]) for each in chunks] == [1000, 1000, 500]
        people = {member["user"]["id"] for each in chunks for member in each["members"]}
        assert people == set(discord.world.members(guild))
        online = {presence["user"]["id"] for each in chunks for presence in each["presences"]}
        assert online
        assert online < people


async def test_all_members_can_be_asked_for_once_in_30_seconds() -> None:
    clock = ManualClock()

    async with simulated(clock=clock.monotonic) as discord:
        guild = discord.world.guilds[0]
        asked = {"guild_id": int(guild), "query": "", "limit": 0, "nonce": "n"}
        async with shard(discord) as bot:
            await bot.send(Op.REQUEST_GUILD_MEMBERS, asked)
            assert len((await bot.next("GUILD_MEMBERS_CHUNK"))["members"]) == 20
            clock.advance(seconds=10)
            await bot.send(Op.REQUEST_GUILD_MEMBERS, asked)
            meta = {"guild_id": guild, "nonce": "n"}
            assert await bot.next("RATE_LIMITED") == {"opcode": 8, "retry_after": 20.0, "meta": meta}
            clock.advance(seconds=20)
            await bot.send(Op.REQUEST_GUILD_MEMBERS, asked)
            await bot.next("GUILD_MEMBERS_CHUNK")


@on_discord()
async def test_members_are_found_by_id_and_by_name(discord: DiscordSimulator) -> None:
    guild = discord.world.guilds[0]
    person, member = next(iter(discord.world.members(guild).items()))
    async with shard(discord, intents=Intents.GUILDS) as bot:
        asked = {"guild_id": guild, "user_ids": [person, "1"], "nonce": "x" * 33}
        await bot.send(Op.REQUEST_GUILD_MEMBERS, asked)
        chunk = await bot.next("GUILD_MEMBERS_CHUNK")
        assert (chunk["members"], chunk["not_found"]) == ([member], ["1"])
        assert "nonce" not in chunk, "longer than 32 bytes"
        name = member["user"]["username"].upper()
        await bot.send(Op.REQUEST_GUILD_MEMBERS, {"guild_id": guild, "query": name, "limit": 5})
        assert member in (await bot.next("GUILD_MEMBERS_CHUNK"))["members"]


@on_discord()
async def test_members_are_not_sent_without_their_intent(discord: DiscordSimulator) -> None:
    guild = discord.world.guilds[0]
    async with shard(discord, intents=Intents.GUILDS) as bot:
        await bot.send(Op.REQUEST_GUILD_MEMBERS, {"guild_id": guild, "query": "", "limit": 0})
        await bot.send(
            Op.REQUEST_GUILD_MEMBERS, {"guild_id": guild, "query": "a", "limit": 1, "presences": True}
        )
        await bot.send(Op.REQUEST_GUILD_MEMBERS, {"guild_id": "1", "query": "a", "limit": 1})
        assert await bot.silent()


@on_discord()
async def test_the_bot_enters_moves_in_and_leaves_voice(discord: DiscordSimulator) -> None:
    guild = discord.world.guilds[0]
    channel = discord.world.voice_channels(guild)[0]
    async with shard(discord) as bot:
        entering = {"guild_id": guild, "channel_id": channel, "self_mute": True, "self_deaf": False}
        await bot.send(Op.VOICE_STATE_UPDATE, entering)
        state = await bot.next("VOICE_STATE_UPDATE")
        assert (state["channel_id"], state["self_mute"]) == (channel, True)
        assert (state["user_id"], state["session_id"]) == (discord.world.bot["id"], bot.session_id)
        server = await bot.next("VOICE_SERVER_UPDATE")
        assert (server["guild_id"], set(server)) == (guild, {"guild_id", "token", "endpoint"})
        await bot.send(Op.VOICE_STATE_UPDATE, {"guild_id": guild, "channel_id": "1"})
        assert await bot.silent(), "the channel is unknown"
        await bot.send(Op.VOICE_STATE_UPDATE, {"guild_id": guild, "channel_id": None})
        assert (await bot.next("VOICE_STATE_UPDATE"))["channel_id"] is None
        await bot.send(Op.VOICE_STATE_UPDATE, {"guild_id": guild, "channel_id": None})
        assert await bot.silent(), "it is nowhere already"


@on_discord()
async def test_sounds_and_channel_details_can_be_asked_for(discord: DiscordSimulator) -> None:
    first, second = discord.world.guilds
    async with shard(discord) as bot:
        await bot.send(Op.REQUEST_SOUNDBOARD_SOUNDS, {"guild_ids": [first, second, "1"]})
        sounds = [await bot.next("SOUNDBOARD_SOUNDS") for _ in range(2)]
        assert sounds == [{"guild_id": guild, "soundboard_sounds": []} for guild in (first, second)]
        await bot.send(Op.REQUEST_CHANNEL_INFO, {"guild_id": first, "fields": ["status"]})
        channels = [{"id": channel, "status": None} for channel in discord.world.voice_channels(first)]
        assert await bot.next("CHANNEL_INFO") == {"guild_id": first, "channels": channels}


@on_discord()
async def test_packets_of_clients_are_kept_by_shard(discord: DiscordSimulator) -> None:
    async with shard(discord, 0, 2) as zero, shard(discord, 1, 2) as one:
        await one.send(Op.REQUEST_SOUNDBOARD_SOUNDS, {"guild_ids": []})
        await zero.send(Op.HEARTBEAT, 1)
        await discord.until(lambda: len(discord.received()) == 4, "all four packets")
        assert [each.data for each in discord.received(Op.REQUEST_SOUNDBOARD_SOUNDS, shard=1)] == [
            {"guild_ids": []}
        ]
        assert discord.received(Op.REQUEST_SOUNDBOARD_SOUNDS, shard=0) == []
        assert len(discord.received(Op.IDENTIFY)) == 2


@on_discord(guilds=3, members=5)
async def test_generated_traffic_arrives_whole_and_in_order(discord: DiscordSimulator) -> None:
    async with shard(discord) as bot:
        begun = bot.sequence
        assert begun is not None
        traffic = discord.start_traffic(rate=20_000, count=2000)
        numbers = [(await bot.packet())["s"] for _ in range(2000)]
        assert numbers == list(range(begun + 1, begun + 2001))
        assert await traffic == 2000


def test_the_same_seed_makes_the_same_world_and_reads_do_not_change_it() -> None:
    one, other = (SimulatedWorld(7, guilds=2, members=5) for _ in range(2))
    assert [one.guild_create(guild) for guild in one.guilds] == [
        one.guild_create(guild) for guild in one.guilds
    ]
    assert one.bot == other.bot
    assert list(one.events(300)) == list(other.events(300))
