"""Discord's limits: of one connection, and of all processes of a bot."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from keywright import AsyncDatabase, aconnect
from keywright.testing import ManualClock, Proxy
from keywright_discord.gateway.connection import OPEN_SECONDS
from keywright_discord.gateway.limits import (
    IDENTIFY_HOLD,
    RESERVED,
    Allowance,
    IdentifyTurns,
    SendBudget,
)
from keywright_discord.gateway.opcodes import Op
from keywright_discord.gateway.protocol import HELLO_SECONDS
from keywright_discord.gateway.schema import IdentifyTurn, gateway
from keywright_discord.gateway.session_starts import SessionStarts, UnreachableApiError
from keywright_service.discord_rest import GatewayInfo, SessionStartLimit

from ..gateways import eventually_true

pytestmark = pytest.mark.anyio


@given(st.lists(st.floats(0.0, 30.0), max_size=200), st.integers(1, 10))
def test_no_window_ever_holds_more_than_allowed(pauses: list[float], most: int) -> None:
    allowance, now = Allowance(most, 60.0), 0.0
    spent: list[float] = []
    for pause in pauses:
        now += pause
        while (wait := allowance.wait(now)) > 0:
            now += wait
        allowance.spend(now)
        spent.append(now)
    for start in spent:
        assert sum(start <= each < start + 60.0 - 1e-6 for each in spent) <= most


def test_workers_may_send_what_is_left_by_the_reserve() -> None:
    budget = SendBudget()
    for _ in range(120 - RESERVED):
        assert budget.wait(Op.VOICE_STATE_UPDATE, 5.0) == 0.0
        budget.spend(Op.VOICE_STATE_UPDATE, 5.0)
    assert budget.wait(Op.VOICE_STATE_UPDATE, 6.0) == pytest.approx(59.0)
    assert budget.wait(Op.VOICE_STATE_UPDATE, 65.0) == 0.0


def test_presences_have_a_limit_of_their_own() -> None:
    budget = SendBudget()
    for _ in range(5):
        assert budget.wait(Op.PRESENCE_UPDATE, 0.0) == 0.0
        budget.spend(Op.PRESENCE_UPDATE, 0.0)
    assert budget.wait(Op.PRESENCE_UPDATE, 1.0) == pytest.approx(19.0)
    assert budget.wait(Op.VOICE_STATE_UPDATE, 1.0) == 0.0


def opened(url: str) -> aconnect:
    return aconnect(url, gateway.bind())


async def plenty() -> float:
    """Return that session starts are left."""
    return 0.0


async def _taken(db: AsyncDatabase, turns: IdentifyTurns, shard: int, order: list[int]) -> None:
    turn = await turns.turn(shard)
    order.append(shard)
    await turn.taken()
    assert await db.run(IdentifyTurn("bot", shard % 2).holder()) is not None


async def test_shards_of_a_bucket_take_turns_in_order_and_pause_between_them(redis_url: str) -> None:
    async with opened(redis_url) as db:
        turns = IdentifyTurns(db, "bot", 2, plenty, pause=timedelta(milliseconds=300))
        order: list[int] = []
        started = asyncio.get_running_loop().time()
        await asyncio.gather(*(_taken(db, turns, shard, order) for shard in range(4)))
        assert sorted(order[:2]) == [0, 1]
        assert sorted(order[2:]) == [2, 3]
        assert asyncio.get_running_loop().time() - started >= 0.3


async def test_processes_of_one_bot_share_the_turns(redis_url: str) -> None:
    async with opened(redis_url) as one, opened(redis_url) as two:
        first = await IdentifyTurns(one, "bot", 1, plenty).turn(0)
        waiting = asyncio.create_task(IdentifyTurns(two, "bot", 1, plenty).turn(1))
        other_bot = await IdentifyTurns(two, "other", 1, plenty).turn(1)
        assert not waiting.done()
        await first.give_back()
        await (await waiting).give_back()
        await other_bot.give_back()


async def test_a_turn_that_is_given_up_is_free_at_once(
    redis_url: str, make_proxy: Callable[[str], Proxy]
) -> None:
    proxy = make_proxy(redis_url)
    async with opened(redis_url) as db, opened(proxy.url) as slow:
        held = IdentifyTurn("bot", 0).holder()
        proxy.delay(30)
        waiting = asyncio.create_task(IdentifyTurns(slow, "bot", 1, plenty).turn(0))
        await eventually_true(lambda: db.run(held), "Redis has given it the turn")
        waiting.cancel()
        proxy.heal()
        await asyncio.wait([waiting])
        assert await db.run(held) is None


async def test_a_turn_is_released_while_no_session_may_be_started(redis_url: str) -> None:
    waits = [0.01, 0.0]

    async with opened(redis_url) as db:
        held = IdentifyTurn("bot", 0).holder()
        during: list[str | None] = []

        async def spend() -> float:
            during.append(await db.run(held))
            return waits.pop(0)

        turn = await IdentifyTurns(db, "bot", 1, spend).turn(0)
        assert None not in during
        assert during[0] != during[1]
        assert await db.run(held) == during[1]
        await turn.give_back()


def test_a_turn_lasts_as_long_as_connecting_may_take() -> None:
    assert IDENTIFY_HOLD.total_seconds() > OPEN_SECONDS + HELLO_SECONDS


class Discord:
    """Discord's answers about session starts."""

    def __init__(self, *remaining: int, concurrency: int = 1) -> None:
        self.remaining = list(remaining)
        self.concurrency = concurrency
        self.asked = 0
        self.reachable = True

    async def __call__(self) -> GatewayInfo:
        self.asked += 1
        if not self.reachable:
            raise UnreachableApiError("https://discord.example", "no route")
        left = self.remaining.pop(0)
        return GatewayInfo("wss://g", 1, SessionStartLimit(1000, left, 5000, self.concurrency))


def started(discord: Discord, clock: ManualClock, remaining: int, concurrency: int = 1) -> SessionStarts:
    info = GatewayInfo("wss://g", 1, SessionStartLimit(1000, remaining, 5000, concurrency))
    return SessionStarts(discord, info, clock=clock.monotonic)


async def test_no_session_is_started_beyond_the_daily_limit(manual_clock: ManualClock) -> None:
    discord = Discord(1, 0, 3)
    starts = started(discord, manual_clock, 2)
    assert [await starts.spend() for _ in range(3)] == [0, 5, 0]
    assert discord.asked == 3


async def test_each_bucket_may_be_starting_one_that_discord_has_not_counted(
    manual_clock: ManualClock,
) -> None:
    discord = Discord(4, 4, 3, concurrency=4)
    starts = started(discord, manual_clock, 4, concurrency=4)
    assert [await starts.spend() for _ in range(3)] == [0, 0, 5]


async def test_the_remaining_starts_are_asked_for_again_after_a_minute(manual_clock: ManualClock) -> None:
    discord = Discord(700)
    starts = started(discord, manual_clock, 1000)
    await starts.spend()
    assert discord.asked == 0
    manual_clock.advance(seconds=61)
    await starts.spend()
    await starts.spend()
    assert discord.asked == 1


async def test_an_unreachable_api_does_not_stop_the_remaining_starts(manual_clock: ManualClock) -> None:
    discord = Discord()
    discord.reachable = False
    starts = started(discord, manual_clock, 1)
    assert [await starts.spend() for _ in range(2)] == [0, 5]
    assert discord.asked == 2
