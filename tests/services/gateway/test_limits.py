"""Discord's limits: of one connection, and of all processes of a bot."""

from __future__ import annotations

import asyncio
from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from keywright.engine import AsyncDatabase, aconnect
from keywright.services.gateway.actions import Op
from keywright.services.gateway.api import GatewayInfo, SessionStartLimit, SessionStarts, UnreachableApiError
from keywright.services.gateway.limits import RESERVED, Allowance, IdentifyTurns, SendBudget
from keywright.services.gateway.schema import IdentifyTurn, gateway
from keywright.testing import ManualClock


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


async def _taken(db: AsyncDatabase, turns: IdentifyTurns, shard: int, order: list[int]) -> None:
    turn = await turns.turn(shard)
    order.append(shard)
    await turn.taken()
    assert await db.run(IdentifyTurn("bot", shard % 2).holder()) is not None


def test_shards_of_a_bucket_take_turns_in_order_and_pause_between_them(redis_url: str) -> None:
    async def story() -> None:
        async with opened(redis_url) as db:
            turns = IdentifyTurns(db, "bot", 2, pause=timedelta(milliseconds=300))
            order: list[int] = []
            started = asyncio.get_running_loop().time()
            await asyncio.gather(*(_taken(db, turns, shard, order) for shard in range(4)))
            assert sorted(order[:2]) == [0, 1]
            assert sorted(order[2:]) == [2, 3]
            assert asyncio.get_running_loop().time() - started >= 0.3

    asyncio.run(story())


def test_processes_of_one_bot_share_the_turns(redis_url: str) -> None:
    async def story() -> None:
        async with opened(redis_url) as one, opened(redis_url) as two:
            first = await IdentifyTurns(one, "bot", 1).turn(0)
            waiting = asyncio.create_task(IdentifyTurns(two, "bot", 1).turn(1))
            other_bot = await IdentifyTurns(two, "other", 1).turn(1)
            assert not waiting.done()
            await first.give_back()
            await (await waiting).give_back()
            await other_bot.give_back()

    asyncio.run(story())


class Discord:
    """Answers how many sessions may be started."""

    def __init__(self, *remaining: int) -> None:
        self.remaining = list(remaining)
        self.asked = 0
        self.reachable = True

    async def __call__(self) -> GatewayInfo:
        self.asked += 1
        if not self.reachable:
            raise UnreachableApiError("https://discord.example", "no route")
        left = self.remaining.pop(0)
        return GatewayInfo("wss://g", 1, SessionStartLimit(1000, left, 5000, 1))


def started(discord: Discord, clock: ManualClock, remaining: int) -> SessionStarts:
    info = GatewayInfo("wss://g", 1, SessionStartLimit(1000, remaining, 5000, 1))

    async def sleep(seconds: float) -> None:
        clock.advance(seconds=seconds)

    return SessionStarts(discord, info, clock=clock.monotonic, sleep=sleep)


def test_no_session_is_started_beyond_the_daily_limit(manual_clock: ManualClock) -> None:
    discord = Discord(0, 3)
    starts = started(discord, manual_clock, 1)
    asyncio.run(starts.spend())
    assert (discord.asked, manual_clock.monotonic()) == (0, 0)
    asyncio.run(starts.spend())
    assert discord.asked == 2
    assert manual_clock.monotonic() == 5


def test_how_many_are_left_is_asked_again_after_a_minute(manual_clock: ManualClock) -> None:
    discord = Discord(7)
    starts = started(discord, manual_clock, 10)
    manual_clock.advance(seconds=61)
    asyncio.run(starts.spend())
    assert discord.asked == 1


def test_an_api_that_is_away_does_not_stop_those_that_are_left(manual_clock: ManualClock) -> None:
    discord = Discord()
    discord.reachable = False
    starts = started(discord, manual_clock, 10)
    manual_clock.advance(seconds=61)
    asyncio.run(starts.spend())
    assert discord.asked == 1
