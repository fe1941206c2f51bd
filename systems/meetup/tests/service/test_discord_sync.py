"""The sync to Discord: channels, roles, permissions and members, against a simulated Discord."""

from __future__ import annotations

from datetime import datetime

import pytest

from keywright.testing import Raw
from keywright.tools import audit_database
from keywright_meetup import account_links, channels
from keywright_meetup.errors import RefusedChangeError
from keywright_meetup.model import meetup
from keywright_meetup.queries import upcoming_series
from keywright_meetup.schema import DiscordRoles, OrphanedRoles
from keywright_meetup.service.discord_sync import VIEW_CHANNEL, DiscordSync, GuildLayout
from keywright_meetup.service.janitor import clean
from keywright_service.errors import PlatformRefusedError, PlatformTroubleError

from ..meetup_bots import Surroundings, surroundings

pytestmark = pytest.mark.anyio

ADD_REACTIONS, SEND_MESSAGES, ATTACH_FILES = 1 << 6, 1 << 11, 1 << 15


async def test_a_new_series_gets_a_hidden_channel_two_roles_and_its_people(around: Surroundings) -> None:
    host, guest, unlinked = around.person("Hanna"), around.person("Gino"), around.person("U", linked=False)
    event = around.announce("Dragon Hunt [new]", hosts=(host.meetup,))
    event.rsvps = {guest.meetup: "YES", unlinked.meetup: "YES"}
    async with around.opened() as opened:
        synced, done = await opened.sync()
        assert (synced.added, done.made, done.failures) == ({event.id}, 3, {})
    guild = around.discord.guild
    (channel,) = guild.text_channels
    assert channel["name"] == "dragon-hunt"
    assert channel["topic"] == f"Next session: {event.link}"
    assert {role["name"] for role in guild.made_roles} == {"[Player] Dragon Hunt", "[Host] Dragon Hunt"}
    assert guild.roles_of(guest.discord) == {"[Player] Dragon Hunt"}
    assert guild.roles_of(host.discord) == {"[Host] Dragon Hunt"}
    assert guild.roles_of(unlinked.discord) == set()
    allowed = {each["id"]: each["allow"] for each in channel["permission_overwrites"]}
    denied = {each["id"]: each["deny"] for each in channel["permission_overwrites"]}
    seen = {str(guild.bot), *(role["id"] for role in guild.made_roles)}
    assert {each for each, bits in allowed.items() if int(bits) & VIEW_CHANNEL} == seen
    assert {each for each, bits in denied.items() if int(bits) & VIEW_CHANNEL} == {str(guild.id)}


async def test_a_channel_is_hidden_from_the_moment_it_is_made(around: Surroundings) -> None:
    around.announce()
    around.discord.faults.fail("/roles", 500, method="POST")
    async with around.opened() as opened:
        _, done = await opened.sync()
        assert len(done.failures) == 1
    (channel,) = around.discord.guild.text_channels
    denied = [each["id"] for each in channel["permission_overwrites"] if int(each["deny"]) & VIEW_CHANNEL]
    assert denied == [str(around.discord.guild.id)]


async def test_a_sync_that_changes_nothing_sends_reads_only(around: Surroundings, raw: Raw) -> None:
    host, guest = around.person("Hanna"), around.person("Gino")
    around.announce("One", hosts=(host.meetup,)).rsvps = {guest.meetup: "YES"}
    around.announce("Two", "[new campaign]", hosts=(host.meetup,)).rsvps = {guest.meetup: "YES"}
    async with around.opened() as opened:
        await opened.sync()
        around.discord.answered.clear()
        raw("CONFIG", "RESETSTAT")
        synced, done = await opened.sync()
        assert (synced.unchanged, done.made, done.changed, done.added) == (2, 0, 0, 0)
    assert around.discord.answered
    assert [each for each in around.discord.answered if not each.reads] == []
    writes = ("set", "hset", "sadd", "srem", "del", "evalsha", "eval", "fcall", "hdel", "unlink", "expire")
    assert {name: raw.calls_of(name) for name in writes} == dict.fromkeys(writes, 0)


async def test_a_later_session_of_a_campaign_moves_the_channel_and_changes_its_topic(
    around: Surroundings,
) -> None:
    guild = around.discord.guild
    categories = {kind: guild.add_category(kind) for kind in ("adventure", "campaign")}
    publishers = guild.make_role({"name": "Publishers"})
    around.layout = GuildLayout(categories, publishers)  # type: ignore[arg-type]  # the two are the literals
    first = around.announce(days=1)
    async with around.opened() as opened:
        await opened.sync()
        (channel,) = guild.text_channels
        assert channel["parent_id"] == str(categories["adventure"])
        assert str(publishers) not in {each["id"] for each in channel["permission_overwrites"]}
        second = around.announce("Dragon Hunt 2", f"[campaign {first.id}]", days=8)
        around.clock.advance(days=2)
        await opened.sync()
        (channel,) = guild.text_channels
        assert channel["parent_id"] == str(categories["campaign"])
        assert channel["topic"] == f"Next session: {second.link}"
        assert str(publishers) in {each["id"] for each in channel["permission_overwrites"]}


async def test_permissions_and_names_that_people_gave_stay(around: Surroundings) -> None:
    around.announce()
    guild = around.discord.guild
    async with around.opened() as opened:
        await opened.sync()
        (channel,) = guild.text_channels
        bouncer = {"id": str(guild.bot + 1), "type": 1, "allow": "2048", "deny": "0"}
        channel["permission_overwrites"].append(bouncer)
        channel["permission_overwrites"].pop(0)  # somebody opened it to everyone: that is put right
        channel["name"] = guild.made_roles[0]["name"] = "renamed"
        await opened.sync()
        assert bouncer in channel["permission_overwrites"]
        assert str(guild.id) in {each["id"] for each in channel["permission_overwrites"]}
        assert (channel["name"], guild.made_roles[0]["name"]) == ("renamed", "renamed")


async def test_removed_users_and_hosts_are_respected(around: Surroundings) -> None:
    host, guest, both = around.person("Hanna"), around.person("Gino"), around.person("Bo")
    event = around.announce(hosts=(host.meetup, both.meetup))
    async with around.opened() as opened:
        await opened.sync()
        (channel,) = around.discord.guild.text_channels
        identity = int(channel["id"])
        for each in (host, guest, both):
            around.discord.guild.rejoin(each.discord)  # without roles
        event.rsvps = {each.meetup: "YES" for each in (host, guest, both)}
        await opened.db.run(channels.remove_host(identity, both.discord))
        await opened.db.run(channels.remove_user(identity, guest.discord))
        await opened.sync()
    roles_of = around.discord.guild.roles_of
    assert roles_of(host.discord) == {"[Host] Dragon Hunt", "[Player] Dragon Hunt"}
    assert roles_of(both.discord) == {"[Player] Dragon Hunt"}
    assert roles_of(guest.discord) == set()


async def test_guests_who_cancelled_or_left_the_guild_get_no_role(
    around: Surroundings,
) -> None:
    gone, fickle, guest = around.person("Left"), around.person("Fickle"), around.person("Gino")
    event = around.announce()
    event.rsvps = {each.meetup: "YES" for each in (gone, fickle, guest)}
    del around.discord.guild.members[gone.discord]
    async with around.opened() as opened:
        await opened.sync_meetup()
        event.rsvps[fickle.meetup] = "NO"
        _, done = await opened.sync()
        assert (done.failures, done.added) == ({}, 1)
    assert around.discord.guild.roles_of(fickle.discord) == set()
    assert around.discord.guild.roles_of(guest.discord) == {"[Player] Dragon Hunt"}


async def test_a_guest_who_links_later_gets_in_with_the_next_sync(around: Surroundings) -> None:
    late = around.person("Late", linked=False)
    around.announce().rsvps = {late.meetup: "YES"}
    async with around.opened() as opened:
        await opened.sync()
        await opened.db.run(account_links.link(late.meetup, late.discord))
        _, done = await opened.sync()
        assert done.added == 1


async def test_a_channel_that_is_gone_is_replaced_and_its_roles_go_too(around: Surroundings) -> None:
    around.announce()
    guild = around.discord.guild
    async with around.opened() as opened:
        await opened.sync()
        (channel,) = guild.text_channels
        old_roles = {int(role["id"]) for role in guild.made_roles}
        await opened.db.run(channels.remove_user(int(channel["id"]), 7))
        del guild.channels[int(channel["id"])]
        await opened.sync()
        assert await opened.db.run(OrphanedRoles().members()) == old_roles
        await clean(opened.db, opened.discord, around.clock())
        (state,) = await opened.db.run(upcoming_series(around.clock()))
        assert {state.channel} == set(guild.channels)
        assert {state.guest_role, state.host_role} == {int(role["id"]) for role in guild.made_roles}
        assert await opened.db.run(DiscordRoles().members()) == {state.guest_role}


async def test_a_role_that_is_gone_is_replaced(around: Surroundings) -> None:
    guest = around.person("Gino")
    around.announce().rsvps = {guest.meetup: "YES"}
    guild = around.discord.guild
    async with around.opened() as opened:
        await opened.sync()
        lost = next(iter(guild.members[guest.discord]))
        guild.delete_role(lost)
        _, done = await opened.sync()
        assert (done.made, done.failures) == (1, {})
        assert guild.roles_of(guest.discord) == {"[Player] Dragon Hunt"}
        assert await opened.db.run(OrphanedRoles().members()) == set()


@pytest.mark.parametrize(
    ("status", "body"),
    [(404, "<html>no such page</html>"), (404, '{"message": "404: Not Found", "code": 0}'), (503, "")],
    ids=["a proxy", "a wrong address", "an outage"],
)
async def test_a_channel_that_only_looks_gone_is_kept(around: Surroundings, status: int, body: str) -> None:
    around.announce()
    guild = around.discord.guild
    async with around.opened() as opened:
        await opened.sync()
        (channel,) = guild.text_channels
        hidden = guild.channels.pop(int(channel["id"]))  # the listing lacks it
        around.discord.faults.fail(f"/channels/{channel['id']}", status, body=body, times=5)
        _, done = await opened.sync()
        (failure,) = done.failures.values()
        assert isinstance(failure, PlatformTroubleError | PlatformRefusedError)
        guild.channels[int(channel["id"])] = hidden
        around.discord.faults.clear()
        _, done = await opened.sync()
        assert (done.made, done.failures, len(guild.text_channels)) == (0, {}, 1)


async def test_a_series_that_fails_does_not_stop_the_others(around: Surroundings) -> None:
    around.announce("[a title without a name]")
    around.announce("Sound")
    async with around.opened() as opened:
        _, done = await opened.sync()
        (failure,) = done.failures.values()
        assert isinstance(failure, RefusedChangeError)
        assert "2 to 80 letters" in str(failure)
    assert [each["name"] for each in around.discord.guild.text_channels] == ["sound"]


async def test_a_channel_that_an_event_names_is_used(around: Surroundings) -> None:
    existing = around.discord.guild.add_channel("tavern")
    around.announce(description=f"[new campaign] [channel {existing}]")
    async with around.opened() as opened:
        _, done = await opened.sync()
        assert done.made == 2
    (channel,) = around.discord.guild.text_channels
    assert (int(channel["id"]), channel["name"]) == (existing, "tavern")


@pytest.mark.parametrize("body", [b'{"id": "not a number"}', b'{"id": "\xff"}'], ids=["text", "not UTF-8"])
async def test_nonsense_from_discord_is_trouble_and_ends_nothing(around: Surroundings, body: bytes) -> None:
    around.announce()
    async with around.opened() as opened:
        await opened.sync_meetup()
        around.discord.faults.fail("/channels", 201, method="POST", body=body)
        done = await opened.sync_discord()
        (failure,) = done.failures.values()
        assert isinstance(failure, PlatformTroubleError)


async def test_all_of_it_works_on_a_cluster(cluster_url: str) -> None:
    with surroundings(cluster_url) as around:
        host, guest = around.person("Hanna"), around.person("Gino")
        event = around.announce(hosts=(host.meetup,))
        event.rsvps = {guest.meetup: "YES"}
        async with around.opened() as opened:
            await opened.sync()
            assert around.discord.guild.roles_of(guest.discord) == {"[Player] Dragon Hunt"}
            around.discord.answered.clear()
            await opened.sync()
            assert all(each.reads for each in around.discord.answered)
            around.discord.guild.channels.clear()
            await opened.sync()
            await clean(opened.db, opened.discord, around.clock())
            assert (len(around.discord.guild.text_channels), len(around.discord.guild.made_roles)) == (1, 2)
            assert (await audit_database(opened.db, meetup)).counts == {}


async def test_an_event_that_begins_while_the_sync_runs_ends_nothing(around: Surroundings) -> None:
    event = around.announce("One", days=0.1)

    def passing() -> datetime:
        return around.clock.advance(hours=2)

    async with around.opened() as opened:
        await opened.sync_meetup()
        done = await DiscordSync(opened.db, opened.discord, around.layout, passing).run()
        assert (done.made, done.failures) == (3, {})
    assert around.clock() > event.time


def bits(overwrite: dict[str, str]) -> tuple[int, int]:
    return int(overwrite["allow"]), int(overwrite["deny"])


async def test_permissions_that_people_gave_to_the_roles_of_a_channel_stay(around: Surroundings) -> None:
    around.announce()
    guild = around.discord.guild
    async with around.opened() as opened:
        await opened.sync()
        (channel,) = guild.text_channels
        overwrites = {each["id"]: each for each in channel["permission_overwrites"]}
        everyone, role = overwrites[str(guild.id)], overwrites[guild.made_roles[0]["id"]]
        everyone |= {"allow": str(ADD_REACTIONS | VIEW_CHANNEL), "deny": str(SEND_MESSAGES)}
        role |= {"allow": str(ATTACH_FILES), "deny": str(SEND_MESSAGES | VIEW_CHANNEL)}
        await opened.sync()
        overwrites = {each["id"]: each for each in channel["permission_overwrites"]}
        everyone, role = overwrites[str(guild.id)], overwrites[guild.made_roles[0]["id"]]
        assert bits(everyone) == (ADD_REACTIONS, SEND_MESSAGES | VIEW_CHANNEL)
        assert bits(role) == (ATTACH_FILES | VIEW_CHANNEL, SEND_MESSAGES)
        around.discord.answered.clear()
        await opened.sync()
        assert all(each.reads for each in around.discord.answered)


async def test_a_past_event_with_malformed_details_does_not_stop_the_sync(
    around: Surroundings, raw: Raw
) -> None:
    past = around.announce("Past", days=1)
    async with around.opened() as opened:
        await opened.sync()
        around.clock.advance(days=2)
        raw("HDEL", f"meetup_event:{past.id}", "time")
        around.announce("Coming")
        synced, done = await opened.sync()
        assert (len(synced.added), done.made, done.failures) == (1, 3, {})
