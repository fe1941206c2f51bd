"""Discord's REST API through its limits and troubles, against a simulated one."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator

import pytest

from keywright import Secret
from keywright.testing import ManualClock
from keywright_meetup.service.discord_api import DiscordApi
from keywright_meetup.service.rate_limits import RateLimits, Route
from keywright_service.errors import PlatformRefusedError, PlatformTroubleError
from keywright_service.testing.discord_rest_simulator import DiscordRestSimulator

from ..meetup_bots import no_sleep


@pytest.fixture
def discord() -> Iterator[DiscordRestSimulator]:
    with DiscordRestSimulator() as simulator:
        yield simulator


def run(discord: DiscordRestSimulator, work: Callable[[DiscordApi], Awaitable[None]], **how: object) -> None:
    async def session() -> None:
        token = Secret(discord.token)
        async with DiscordApi(token, discord.guild.id, url=discord.api_url, **how) as api:  # type: ignore[arg-type]  # as each test says
            await work(api)

    asyncio.run(session())


def test_what_is_not_there_is_none_or_false(discord: DiscordRestSimulator) -> None:
    async def work(api: DiscordApi) -> None:
        role = discord.guild.make_role({"name": "r"})
        assert await api.channel(1) is None
        assert await api.role(1) is None
        assert await api.member(1) is None
        assert await api.name_of(1) is None
        assert await api.modify_channel(1, topic="t") is None
        assert not await api.delete_channel(1)
        assert not await api.delete_role(1)
        assert not await api.add_role(1, role)
        assert not await api.post(1, "hello", "n")

    run(discord, work)


def test_ids_beyond_two_to_the_53_are_exact(discord: DiscordRestSimulator) -> None:
    async def work(api: DiscordApi) -> None:
        made = await api.create_channel(name="here")
        assert int(made.id) in discord.guild.channels
        assert int(made.id) > 2**53
        assert await api.delete_channel(int(made.id))
        assert await api.me() == discord.guild.bot

    run(discord, work)


def test_a_404_that_is_not_discords_own_is_an_error(discord: DiscordRestSimulator) -> None:
    channel = discord.guild.add_channel()
    discord.faults.fail("/channels", 404)

    async def work(api: DiscordApi) -> None:
        with pytest.raises(PlatformRefusedError, match="status 404"):
            await api.delete_channel(channel)

    run(discord, work)
    assert channel in discord.guild.channels


def test_an_unknown_guild_is_an_error_and_nothing_that_is_gone(discord: DiscordRestSimulator) -> None:
    async def work(api: DiscordApi) -> None:
        api.guild = 99
        with pytest.raises(PlatformRefusedError, match=r"Unknown Guild.*guild's id"):
            await api.role(1)

    run(discord, work)


@pytest.mark.parametrize(("status", "remedy"), [(401, "bot's token"), (403, "Manage Roles")])
def test_a_refusal_says_what_to_do_and_hides_the_token(
    discord: DiscordRestSimulator, status: int, remedy: str
) -> None:
    discord.faults.fail("/roles", status)

    async def work(api: DiscordApi) -> None:
        with pytest.raises(PlatformRefusedError, match=remedy) as refused:
            await api.roles()
        assert discord.token not in f"{refused.value!r}{vars(api)!r}"

    run(discord, work)


def test_a_bucket_is_waited_for_before_it_refuses(discord: DiscordRestSimulator) -> None:
    """The headers of each answer tell what is left, so nothing is ever refused."""
    discord.limits.limit("GET", "/guilds/{}/roles", 2, 0.2)

    async def work(api: DiscordApi) -> None:
        await asyncio.gather(*(api.roles() for _ in range(6)))

    run(discord, work)
    assert discord.limits.refused == 0
    assert len(discord.answered) == 6


def test_requests_about_any_user_share_a_bucket(discord: DiscordRestSimulator) -> None:
    """Only channels and guilds have buckets of their own."""
    discord.limits.limit("GET", "/users/{}", 2, 0.2)
    users = [discord.guild.join(f"P{number}") for number in range(5)]

    async def work(api: DiscordApi) -> None:
        assert len(await asyncio.gather(*map(api.name_of, users))) == 5

    run(discord, work)
    assert discord.limits.refused == 0


def test_buckets_of_other_channels_do_not_wait(discord: DiscordRestSimulator) -> None:
    discord.limits.limit("PATCH", "/channels/{}", 1, 30.0)
    channels = [discord.guild.add_channel(str(number)) for number in range(3)]

    async def work(api: DiscordApi) -> None:
        async with asyncio.timeout(10):
            for channel in channels:
                await api.modify_channel(channel, topic="t")

    run(discord, work)
    assert discord.limits.refused == 0


def test_a_refusal_for_a_bucket_that_another_process_used_up_is_waited_out(
    discord: DiscordRestSimulator,
) -> None:
    discord.limits.limit("POST", "/guilds/{}/channels", 1, 0.3)

    async def other(api: DiscordApi) -> None:
        await api.create_channel(name="theirs")

    run(discord, other)

    async def work(api: DiscordApi) -> None:
        await api.create_channel(name="ours")

    run(discord, work)
    assert discord.limits.refused == 1
    assert [each["name"] for each in discord.guild.text_channels] == ["theirs", "ours"]


def test_the_global_limit_holds_everything(discord: DiscordRestSimulator) -> None:
    discord.limits.limit_all(0.3)

    async def work(api: DiscordApi) -> None:
        await api.roles()
        await asyncio.gather(api.channels(), api.me(), api.roles())

    run(discord, work)
    assert discord.limits.refused == 1
    assert [each.status for each in discord.answered] == [429, 200, 200, 200, 200]


def test_a_proxy_that_refuses_with_a_header_alone_is_obeyed(discord: DiscordRestSimulator) -> None:
    discord.faults.fail("/roles", 429, headers={"Retry-After": "0.05"})

    async def work(api: DiscordApi) -> None:
        assert await api.roles()

    run(discord, work)


@pytest.mark.parametrize("scope", ["false", "true"], ids=["bucket", "global"])
def test_a_limit_that_lasts_long_is_trouble_at_once_and_obeyed(
    discord: DiscordRestSimulator, scope: str
) -> None:
    discord.faults.fail("/roles", 429, body=f'{{"retry_after": 3600.0, "global": {scope}}}')

    async def work(api: DiscordApi) -> None:
        for ask in (api.roles, api.roles, api.channels if scope == "true" else api.roles):
            with pytest.raises(PlatformTroubleError, match="rate limit for 3600 s"):
                await ask()

    run(discord, work)
    assert len(discord.answered) == 1  # asking on would lead to a ban


def test_trouble_is_repeated_a_few_times_and_then_told(discord: DiscordRestSimulator) -> None:
    discord.faults.fail("/roles", 500, times=2)

    async def work(api: DiscordApi) -> None:
        assert await api.roles()
        with discord.faults.outage(502), pytest.raises(PlatformTroubleError, match="status 502"):
            await api.roles()

    run(discord, work, attempts=3, sleep=no_sleep)
    assert len(discord.answered) == 3 + 3


def test_an_answer_that_does_not_come_is_given_up(discord: DiscordRestSimulator) -> None:
    discord.faults.fail("/roles", None)

    async def work(api: DiscordApi) -> None:
        assert await api.roles()

    run(discord, work, timeout=0.3)


def test_what_makes_something_is_not_repeated_when_its_answer_is_lost(discord: DiscordRestSimulator) -> None:
    discord.faults.fail("/channels", None, done=True)
    discord.faults.fail("/roles", 500, done=True)

    async def work(api: DiscordApi) -> None:
        with pytest.raises(PlatformTroubleError):
            await api.create_channel(name="once")
        with pytest.raises(PlatformTroubleError):
            await api.create_role(name="once")

    run(discord, work, timeout=0.3)
    assert len(discord.guild.text_channels) == len(discord.guild.made_roles) == 1


def test_a_message_is_posted_once_however_often_it_is_tried(discord: DiscordRestSimulator) -> None:
    channel = discord.guild.add_channel()
    discord.faults.fail("/messages", 500, done=True)

    async def work(api: DiscordApi) -> None:
        assert await api.post(channel, "hello", "nonce")

    run(discord, work)
    assert discord.guild.messages == [(channel, "hello")]


def test_an_unreachable_discord_is_trouble(discord: DiscordRestSimulator) -> None:
    async def session() -> None:
        api = DiscordApi(Secret("t"), 1, url="http://127.0.0.1:9/api/v10", attempts=2, sleep=no_sleep)
        async with api:
            with pytest.raises(PlatformTroubleError, match="ConnectError"):
                await api.create_channel(name="x")

    asyncio.run(session())


def test_a_window_that_passed_is_not_waited_for() -> None:
    clock, slept = ManualClock(), []

    async def sleep(seconds: float) -> None:
        slept.append(round(seconds, 3))
        clock.advance(seconds=seconds)

    limits = RateLimits(clock=clock.monotonic, sleep=sleep)
    route = Route("GET", "/guilds/{}/roles", "1")
    told = {"X-RateLimit-Bucket": "b", "X-RateLimit-Remaining": "0", "X-RateLimit-Reset-After": "2.5"}

    async def work() -> None:
        for advance in (0, 0, 10):
            clock.advance(seconds=advance)
            async with limits.turn(route):
                limits.note(route, told)

    asyncio.run(work())
    assert slept == [2.5]


def test_routes_that_share_a_bucket_share_what_is_left() -> None:
    clock, slept = ManualClock(), []

    async def sleep(seconds: float) -> None:
        slept.append(round(seconds, 3))
        clock.advance(seconds=seconds)

    limits = RateLimits(clock=clock.monotonic, sleep=sleep)
    one, other = Route("GET", "/channels/{}", "1"), Route("PATCH", "/channels/{}", "1")

    async def work() -> None:
        for route, left in ((one, "1"), (other, "0"), (one, "0")):
            told = {"X-RateLimit-Bucket": "b", "X-RateLimit-Remaining": left, "X-RateLimit-Reset-After": "4"}
            async with limits.turn(route):
                limits.note(route, told)

    asyncio.run(work())
    assert slept == [4.0]


def test_a_bucket_that_stays_empty_for_long_is_trouble_at_once(discord: DiscordRestSimulator) -> None:
    """Such as that of topics, of which a channel may be given two in ten minutes."""
    discord.limits.limit("PATCH", "/channels/{}", 1, 600.0)
    channel = discord.guild.add_channel()

    async def work(api: DiscordApi) -> None:
        await api.modify_channel(channel, topic="one")
        async with asyncio.timeout(10):
            with pytest.raises(PlatformTroubleError, match="rate limit for 600 s"):
                await api.modify_channel(channel, topic="two")
            assert await api.roles()

    run(discord, work)
