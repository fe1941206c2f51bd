"""Tokens are refreshed on schedule, by one bot at a time, and survive outages."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from datetime import datetime, timedelta

import pytest

from keywright import Retry, Secret, Settings, aconnect
from keywright.testing import Proxy, Raw
from keywright_meetup import account_links, tokens
from keywright_meetup.schema import OrganizerLease, RefreshTime, Tokens, UserTokens, UserTokensLease
from keywright_meetup.service.oauth import Granted, OAuthClient
from keywright_meetup.service.token_refresh import TokenRefresher
from keywright_service.errors import PlatformRefusedError, PlatformTroubleError

from ..meetup_bots import Surroundings, surroundings

pytestmark = pytest.mark.anyio


async def test_the_organizers_tokens_are_refreshed_when_due_and_the_next_time_is_kept(
    around: Surroundings,
) -> None:
    async with around.opened() as opened:
        due = around.clock() + tokens.REFRESH_EVERY
        assert await opened.refresher.refresh_when_due() == due
        assert around.meetup.oauth.refreshes == 0
        around.clock.advance(tokens.REFRESH_EVERY)
        assert await opened.refresher.refresh_when_due() == around.clock() + tokens.REFRESH_EVERY
        assert around.meetup.oauth.refreshes == 1
        assert await opened.db.run(RefreshTime().get()) == around.clock() + tokens.REFRESH_EVERY


async def test_several_bots_refresh_once(around: Surroundings) -> None:
    """A refresh token works once, so a second use would lose them all."""
    around.meetup.faults.slow("/oauth2/access", 0.2)
    async with around.opened() as opened:
        around.clock.advance(tokens.REFRESH_EVERY)
        due = await asyncio.gather(*(opened.refresher.refresh_when_due() for _ in range(5)))
        soon = [each for each in due if each - around.clock() == timedelta(minutes=1)]
        assert (around.meetup.oauth.refreshes, len(soon)) == (1, 4)
        await opened.sync_meetup()


async def test_without_a_new_refresh_token_the_old_one_stays(around: Surroundings) -> None:
    around.meetup.oauth.rotate = False
    async with around.opened() as opened:
        before = await opened.db.run(tokens.organizer())
        assert await opened.refresher.refresh_now()
        after = await opened.db.run(tokens.organizer())
        assert before.refresh_token == after.refresh_token
        assert before.access_token != after.access_token


@pytest.mark.parametrize(
    ("status", "error"), [(503, PlatformTroubleError), (400, PlatformRefusedError)], ids=["outage", "refusal"]
)
async def test_a_refresh_that_fails_is_due_again_in_an_hour(
    around: Surroundings, status: int, error: type[Exception]
) -> None:
    async with around.opened() as opened:
        around.clock.advance(tokens.REFRESH_EVERY)
        with around.meetup.faults.outage(status), pytest.raises(error):
            await opened.refresher.refresh_when_due()
        assert await opened.refresher.refresh_when_due() == around.clock() + tokens.RETRY_AFTER
        around.clock.advance(tokens.RETRY_AFTER)
        assert await opened.refresher.refresh_when_due() > around.clock() + tokens.RETRY_AFTER


async def test_tokens_that_are_not_text_are_trouble(around: Surroundings) -> None:
    async with around.opened() as opened:
        around.meetup.faults.fail("/oauth2/access", 200, body=b'{"access_token": "\xff"}')
        with pytest.raises(PlatformTroubleError, match="has no tokens"):
            await opened.refresher.refresh_now()
        around.meetup.faults.fail("/oauth2/access", 400, body=b'{"error": "\xff"}')
        with pytest.raises(PlatformRefusedError, match="status 400"):
            await opened.refresher.refresh_now()


async def test_no_error_shows_a_token(around: Surroundings) -> None:
    async with around.opened() as opened:
        kept = (await opened.db.run(tokens.organizer())).refresh_token
        assert kept is not None
        body = '{"access_token": 5, "refresh_token": "leaked"}'
        around.meetup.faults.fail("/oauth2/access", 200, body=body)
        with pytest.raises(PlatformTroubleError) as trouble:
            await opened.refresher.refresh_now()
        chain = f"{trouble.value!r}{trouble.value.__cause__!r}"
        assert "leaked" not in chain
        assert kept.reveal() not in chain


def hour_of(user: int, start: datetime) -> timedelta:
    """Return how long it is until the hour of a user's tokens."""
    for hours in range(96):
        at = start + timedelta(hours=hours)
        if (at.toordinal() % 4) * 24 + at.hour == user % 96:
            return timedelta(hours=hours)
    raise AssertionError


async def test_tokens_of_users_are_refreshed_in_their_hour_every_four_days(around: Surroundings) -> None:
    someone, without = around.person("Gino"), around.person("Tess")
    old = Tokens(*map(Secret, around.meetup.oauth.grant(someone.meetup)))
    async with around.opened() as opened:
        await opened.db.run(account_links.store_tokens(someone.meetup, old))
        around.clock.advance(hour_of(someone.meetup, around.clock()))
        assert await opened.refresher.refresh_users() == 1
        fresh = await opened.db.run(UserTokens(someone.meetup).get())
        assert fresh is not None
        assert fresh.refresh_token != old.refresh_token
        assert await opened.db.run(UserTokensLease(someone.meetup).holder()) is None
        refreshed = 0
        for _ in range(96):
            around.clock.advance(hours=1)
            refreshed += await opened.refresher.refresh_users()
        assert refreshed == 1
        assert await opened.db.run(UserTokens(without.meetup).get()) is None


async def test_a_user_who_was_unlinked_meanwhile_gets_no_tokens_back(around: Surroundings) -> None:
    someone = around.person("Gino")
    old = Tokens(*map(Secret, around.meetup.oauth.grant(someone.meetup)))
    around.meetup.faults.slow("/oauth2/access", 0.3)
    async with around.opened() as opened:
        await opened.db.run(account_links.store_tokens(someone.meetup, old))
        around.clock.advance(hour_of(someone.meetup, around.clock()))
        refreshing = asyncio.create_task(opened.refresher.refresh_users())
        while await opened.db.run(UserTokensLease(someone.meetup).holder()) is None:  # noqa: ASYNC110  # Redis
            await asyncio.sleep(0.001)
        await opened.db.run(account_links.unlink(someone.meetup))
        assert await refreshing == 0
        assert await opened.db.run(UserTokens(someone.meetup).get()) is None


async def test_malformed_tokens_of_one_user_do_not_stop_the_others(around: Surroundings, raw: Raw) -> None:
    malformed, sound = 96, 192  # the same hour
    async with around.opened() as opened:
        for user in (malformed, sound):
            old = Tokens(*map(Secret, around.meetup.oauth.grant(user)))
            await opened.db.run(account_links.link(user, user, old))
        raw("HDEL", f"meetup_user:{malformed}:oauth2_tokens", "refresh_token")
        around.clock.advance(hour_of(sound, around.clock()))
        assert await opened.refresher.refresh_users() == 1


class Cutting(OAuthClient):
    """Redis goes out of reach as soon as Meetup has answered."""

    cut: Callable[[], None]

    async def refresh(self, token: Secret[str]) -> Granted:
        granted = await super().refresh(token)
        self.cut()
        return granted


def gone(proxy: Proxy) -> None:
    proxy.refuse()
    proxy.cut()


@pytest.mark.parametrize("fault", [gone, Proxy.cut_before_reply], ids=["out of reach", "a lost reply"])
@pytest.mark.parametrize("whose", ["organizer", "user"])
async def test_new_tokens_are_kept_until_redis_is_back(
    redis_url: str, make_proxy: Callable[[str], Proxy], whose: str, fault: Callable[[Proxy], None]
) -> None:
    """The old refresh token is invalid by then, and the new one nowhere else."""
    proxy = make_proxy(redis_url)

    async def heal(seconds: float) -> None:
        proxy.heal()

    with surroundings(proxy.url) as around:
        async with aconnect(proxy.url, settings=Settings(retry=Retry(attempts=1))) as db:
            user = 96
            access, refresh = map(Secret, around.meetup.oauth.grant(user))
            await db.run(tokens.store_organizer(access, refresh, around.clock()))
            await db.run(account_links.link(user, user, Tokens(access, refresh)))
            around.clock.advance(hour_of(user, around.clock()))
            async with Cutting(around.provider(), "http://127.0.0.1") as oauth:
                oauth.cut = lambda: fault(proxy)
                refresher = TokenRefresher(db, oauth, around.clock, sleep=heal)
                if whose == "organizer":
                    assert await refresher.refresh_now()
                    kept = (await db.run(tokens.organizer())).refresh_token
                else:
                    assert await refresher.refresh_users() == 1
                    found = await db.run(UserTokens(user).get())
                    assert found is not None
                    kept = found.refresh_token
            assert kept is not None
            assert around.meetup.oauth.refreshable(kept.reveal())
            assert kept != refresh


async def test_a_sync_waits_for_the_tokens_that_another_is_refreshing(around: Surroundings) -> None:
    event = around.announce()
    around.meetup.faults.slow("/oauth2/access", 0.2)
    async with around.opened() as opened:
        around.meetup.oauth.expire_access()
        refreshing = asyncio.create_task(opened.refresher.refresh_now())
        async with asyncio.timeout(10):
            while await opened.db.run(OrganizerLease().holder()) is None:  # noqa: ASYNC110  # Redis
                await asyncio.sleep(0.001)
        assert (await opened.sync_meetup()).added == {event.id}
        assert await refreshing
    assert around.meetup.oauth.refreshes == 1
