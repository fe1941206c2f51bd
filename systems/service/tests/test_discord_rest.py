"""Discord's REST API through its limits and outages, against a simulated one."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator

import pytest

from keywright import Secret
from keywright.testing import ManualClock
from keywright_service.configuration import ConfigurationError
from keywright_service.discord_rest import DiscordGuild, DiscordRest, RateLimits, Route, bot_token
from keywright_service.errors import HttpRefusedError, PlatformRefusedError, PlatformTroubleError
from keywright_service.http_client import ClientOptions
from keywright_service.testing.discord_rest_simulator import DiscordRestSimulator

pytestmark = pytest.mark.anyio

Connect = Callable[..., DiscordGuild]


async def no_sleep(seconds: float) -> None:
    """Instead of a pause between attempts."""
    await asyncio.sleep(0)


@pytest.fixture
def discord() -> Iterator[DiscordRestSimulator]:
    with DiscordRestSimulator() as simulator:
        yield simulator


@pytest.fixture
def connect(discord: DiscordRestSimulator) -> Connect:
    def connected(**options: object) -> DiscordGuild:
        chosen = ClientOptions(**options)  # type: ignore[arg-type]  # as each test says
        return DiscordGuild(Secret(discord.token), discord.guild.id, url=discord.api_url, options=chosen)

    return connected


async def test_what_is_not_there_is_none_or_false(discord: DiscordRestSimulator, connect: Connect) -> None:
    async with connect() as api:
        role = discord.guild.make_role({"name": "r"})
        assert await api.channel(1) is None
        assert await api.role(1) is None
        assert await api.member(1) is None
        assert await api.find_user(1) is None
        assert await api.modify_channel(1, topic="t") is None
        assert not await api.delete_channel(1)
        assert not await api.delete_role(1)
        assert not await api.add_role(1, role)
        assert not await api.remove_role(1, role)
        assert not await api.edit_reply(discord.guild.bot, Secret("expired"), content="too late")
        assert not await api.post(1, "hello", "n")


async def test_commands_are_set_for_the_guild_and_read_back(
    discord: DiscordRestSimulator, connect: Connect
) -> None:
    async with connect() as api:
        application = await api.application()
        assert int(application.id) == discord.guild.bot
        links = [{"name": "link", "description": "Link accounts."}]
        await api.replace_commands(int(application.id), links, guild=api.guild)
        (found,) = await api.commands(int(application.id))
        assert (found["name"], found["description"]) == ("link", "Link accounts.")
        assert found.keys() >= {"id", "version"}
        with pytest.raises(HttpRefusedError, match="status 400"):
            await api.set_interactions_endpoint("https://nobody.example")


async def test_a_reply_is_written_with_the_token_of_its_interaction_which_no_error_shows(
    discord: DiscordRestSimulator, connect: Connect
) -> None:
    discord.guild.tokens.add("interaction-token")
    async with connect() as api:
        assert await api.edit_reply(discord.guild.bot, Secret("interaction-token"), content="done")
        assert discord.guild.replies == {"interaction-token": {"content": "done"}}
        with pytest.raises(HttpRefusedError, match="PATCH /webhooks/1/…/messages") as refused:
            await api.edit_reply(1, Secret("interaction-token"), content="done")
    assert "interaction-token" not in str(refused.value)


async def test_ids_beyond_two_to_the_53_are_exact(discord: DiscordRestSimulator, connect: Connect) -> None:
    async with connect() as api:
        made = await api.create_channel(name="here")
        assert int(made.id) in discord.guild.channels
        assert int(made.id) > 2**53
        assert await api.delete_channel(int(made.id))
        assert await api.me() == discord.guild.bot


async def test_a_bot_learns_where_its_gateway_is(discord: DiscordRestSimulator) -> None:
    async with DiscordRest(Secret(discord.token), url=discord.api_url) as api:
        info = await api.gateway()
    assert info.url.startswith("wss://")
    assert (info.shards, info.session_start_limit.max_concurrency) == (1, 1)


async def test_a_404_that_is_not_discords_own_is_an_error(
    discord: DiscordRestSimulator, connect: Connect
) -> None:
    channel = discord.guild.add_channel()
    discord.faults.fail("/channels", 404)
    async with connect() as api:
        with pytest.raises(PlatformRefusedError, match="status 404"):
            await api.delete_channel(channel)
    assert channel in discord.guild.channels


async def test_an_unknown_guild_is_an_error_and_not_absence(connect: Connect) -> None:
    async with connect() as api:
        api.guild = 99
        with pytest.raises(PlatformRefusedError, match=r"Unknown Guild.*guild's id"):
            await api.role(1)


@pytest.mark.parametrize(("status", "remedy"), [(401, "bot's token"), (403, "Manage Roles")])
async def test_a_refusal_says_what_to_do_and_hides_the_token(
    discord: DiscordRestSimulator, connect: Connect, status: int, remedy: str
) -> None:
    discord.faults.fail("/roles", status)
    async with connect() as api:
        with pytest.raises(HttpRefusedError, match=remedy) as refused:
            await api.roles()
        assert refused.value.status == status
        assert discord.token not in f"{refused.value!r}{vars(api)!r}"


async def test_a_bucket_is_waited_for_before_it_refuses(
    discord: DiscordRestSimulator, connect: Connect
) -> None:
    """The headers of each answer say what is left, so nothing is ever refused."""
    discord.limits.limit("GET", "/guilds/{}/roles", 2, 0.2)
    async with connect() as api:
        await asyncio.gather(*(api.roles() for _ in range(6)))
    assert discord.limits.refused == 0
    assert len(discord.answered) == 6


async def test_requests_about_any_user_share_a_bucket(
    discord: DiscordRestSimulator, connect: Connect
) -> None:
    """Only channels and guilds have buckets of their own."""
    discord.limits.limit("GET", "/users/{}", 2, 0.2)
    users = [discord.guild.join(f"P{number}") for number in range(5)]
    async with connect() as api:
        assert len(await asyncio.gather(*map(api.find_user, users))) == 5
    assert discord.limits.refused == 0


async def test_buckets_of_other_channels_do_not_wait(discord: DiscordRestSimulator, connect: Connect) -> None:
    discord.limits.limit("PATCH", "/channels/{}", 1, 30.0)
    channels = [discord.guild.add_channel(str(number)) for number in range(3)]
    async with connect() as api, asyncio.timeout(10):
        for channel in channels:
            await api.modify_channel(channel, topic="t")
    assert discord.limits.refused == 0


async def test_a_refusal_for_a_bucket_that_another_process_used_up_is_waited_out(
    discord: DiscordRestSimulator, connect: Connect
) -> None:
    discord.limits.limit("POST", "/guilds/{}/channels", 1, 0.3)
    async with connect() as other:
        await other.create_channel(name="theirs")
    async with connect() as api:
        await api.create_channel(name="ours")
    assert discord.limits.refused == 1
    assert [each["name"] for each in discord.guild.text_channels] == ["theirs", "ours"]


async def test_the_global_limit_holds_everything(discord: DiscordRestSimulator, connect: Connect) -> None:
    discord.limits.limit_all(0.3)
    async with connect() as api:
        await api.roles()
        await asyncio.gather(api.channels(), api.me(), api.roles())
    assert discord.limits.refused == 1
    assert [each.status for each in discord.answered] == [429, 200, 200, 200, 200]


async def test_a_proxy_that_refuses_with_a_header_alone_is_obeyed(
    discord: DiscordRestSimulator, connect: Connect
) -> None:
    discord.faults.fail("/roles", 429, headers={"Retry-After": "0.05"})
    async with connect() as api:
        assert await api.roles()


@pytest.mark.parametrize("scope", ["false", "true"], ids=["bucket", "global"])
async def test_a_limit_that_lasts_long_is_trouble_at_once_and_obeyed(
    discord: DiscordRestSimulator, connect: Connect, scope: str
) -> None:
    discord.faults.fail("/roles", 429, body=f'{{"retry_after": 3600.0, "global": {scope}}}')
    async with connect() as api:
        for ask in (api.roles, api.roles, api.channels if scope == "true" else api.roles):
            with pytest.raises(PlatformTroubleError, match="rate limit for 3600 s"):
                await ask()
    assert len(discord.answered) == 1  # asking on would lead to a ban


async def test_trouble_is_repeated_a_few_times_and_then_reported(
    discord: DiscordRestSimulator, connect: Connect
) -> None:
    discord.faults.fail("/roles", 500, times=2)
    async with connect(attempts=3, sleep=no_sleep) as api:
        assert await api.roles()
        with discord.faults.outage(502), pytest.raises(PlatformTroubleError, match="status 502"):
            await api.roles()
    assert len(discord.answered) == 3 + 3


async def test_an_outage_that_says_how_long_it_lasts_is_waited_for_so_long(
    discord: DiscordRestSimulator, connect: Connect
) -> None:
    pauses: list[float] = []

    async def sleep(seconds: float) -> None:
        pauses.append(seconds)

    for header in ("7", "99999", "Wed, 21 Oct 2015 07:28:00 GMT"):
        discord.faults.fail("/roles", 503, headers={"Retry-After": header})
    async with connect(sleep=sleep) as api:
        assert await api.roles()
    assert pauses[:2] == [7.0, 60.0]
    assert 0 < pauses[2] < 2, "a date is not understood: the back-off decides"


async def test_an_answer_that_is_malformed_is_asked_for_again(
    discord: DiscordRestSimulator, connect: Connect
) -> None:
    discord.faults.fail("/roles", 200, body="<html>welcome to the Wi-Fi</html>")
    discord.faults.fail("/channels", 200, body="[{}]", times=2)
    async with connect(attempts=2, sleep=no_sleep) as api:
        assert await api.roles()
        with pytest.raises(PlatformTroubleError, match=r"its answer: .*`id`"):
            await api.channels()


async def test_an_answer_that_does_not_come_is_given_up(
    discord: DiscordRestSimulator, connect: Connect
) -> None:
    discord.faults.fail("/roles", None)
    async with connect(timeout_seconds=0.3) as api:
        assert await api.roles()


async def test_what_makes_something_is_not_repeated_when_its_answer_is_lost(
    discord: DiscordRestSimulator, connect: Connect
) -> None:
    discord.faults.fail("/channels", None, done=True)
    discord.faults.fail("/roles", 500, done=True)
    async with connect(timeout_seconds=0.3) as api:
        with pytest.raises(PlatformTroubleError):
            await api.create_channel(name="once")
        with pytest.raises(PlatformTroubleError):
            await api.create_role(name="once")
    assert len(discord.guild.text_channels) == len(discord.guild.made_roles) == 1


async def test_a_message_is_posted_once_however_often_it_is_tried(
    discord: DiscordRestSimulator, connect: Connect
) -> None:
    channel = discord.guild.add_channel()
    discord.faults.fail("/messages", 500, done=True)
    async with connect() as api:
        assert await api.post(channel, "hello", "nonce")
    assert discord.guild.messages == [(channel, "hello")]


async def test_an_unreachable_discord_is_trouble(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("INFO", "keywright.service")
    options = ClientOptions(attempts=2, sleep=no_sleep)
    async with DiscordGuild(Secret("t"), 1, url="http://127.0.0.1:9/api/v10", options=options) as api:
        with pytest.raises(PlatformTroubleError, match="ConnectError"):
            await api.create_channel(name="x")
    assert caplog.text.count("Discord's API: ConnectError") == 2


class SleepingClock:
    """A clock that sleeping moves."""

    def __init__(self) -> None:
        self.clock = ManualClock()
        self.slept: list[float] = []

    async def sleep(self, seconds: float) -> None:
        self.slept.append(round(seconds, 3))
        self.clock.advance(seconds=seconds)

    def limits(self) -> RateLimits:
        return RateLimits(clock=self.clock.monotonic, sleep=self.sleep)


async def test_a_window_that_passed_is_not_waited_for() -> None:
    time = SleepingClock()
    limits = time.limits()
    route = Route("GET", "/guilds/{}/roles", "1")
    headers = {"X-RateLimit-Bucket": "b", "X-RateLimit-Remaining": "0", "X-RateLimit-Reset-After": "2.5"}
    for advance in (0, 0, 10):
        time.clock.advance(seconds=advance)
        async with limits.turn(route):
            limits.note(route, headers)
    assert time.slept == [2.5]


async def test_routes_that_share_a_bucket_share_what_is_left() -> None:
    time = SleepingClock()
    limits = time.limits()
    one, other = Route("GET", "/channels/{}", "1"), Route("PATCH", "/channels/{}", "1")
    for route, left in ((one, "1"), (other, "0"), (one, "0")):
        headers = {"X-RateLimit-Bucket": "b", "X-RateLimit-Remaining": left, "X-RateLimit-Reset-After": "4"}
        async with limits.turn(route):
            limits.note(route, headers)
    assert time.slept == [4.0]


async def test_a_bucket_that_stays_empty_for_long_is_trouble_at_once(
    discord: DiscordRestSimulator, connect: Connect
) -> None:
    """Such as that of topics, of which a channel may be given two in ten minutes."""
    discord.limits.limit("PATCH", "/channels/{}", 1, 600.0)
    channel = discord.guild.add_channel()
    async with connect() as api, asyncio.timeout(10):
        await api.modify_channel(channel, topic="one")
        with pytest.raises(PlatformTroubleError, match="rate limit for 600 s"):
            await api.modify_channel(channel, topic="two")
        assert await api.roles()


def test_a_token_may_be_written_with_the_word_bot() -> None:
    assert bot_token("token", Secret(" Bot abc.def ")).reveal() == "abc.def"


@pytest.mark.parametrize("token", ["abc.de\nf", "abc.d\tef", "abc.d\x7fef", "abc.déf", "abc. def"])
def test_a_token_that_cannot_be_sent_is_refused_and_not_quoted(token: str) -> None:
    with pytest.raises(ConfigurationError, match=r"^token: has characters that no token has\. ") as caught:
        bot_token("token", Secret(token))
    assert "abc" not in str(caught.value)
