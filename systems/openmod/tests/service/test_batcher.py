"""The request batcher: every caller gets a result, whether the request succeeds or fails."""

from __future__ import annotations

import asyncio

import pytest

from keywright_openmod.service.batcher import LookupBatcher

pytestmark = pytest.mark.anyio


async def test_an_unexpected_error_reaches_every_caller_and_later_requests_work() -> None:
    failures = 2

    async def ask(names: list[str]) -> dict[str, str]:
        nonlocal failures
        failures -= 1
        if failures >= 0:
            raise OverflowError("unexpected")
        return {name: name.upper() for name in names}

    questions = LookupBatcher(ask, batch_size=2)
    async with asyncio.timeout(5):
        asked = [questions.get(name) for name in ("a", "b", "c")]
        answers = await asyncio.gather(*asked, return_exceptions=True)
        assert [type(answer) for answer in answers] == [OverflowError] * 3
        assert await questions.get("d") == "D"


@pytest.mark.parametrize("number", [1, 2, 3, 5])
async def test_lookups_of_one_loop_iteration_share_the_fewest_possible_requests(number: int) -> None:
    requests: list[list[str]] = []

    async def ask(names: list[str]) -> dict[str, str]:
        requests.append(names)
        return {name: name.upper() for name in names if name != "n1"}

    questions = LookupBatcher(ask, batch_size=2)
    names = [f"n{place}" for place in range(number)]
    answers = await asyncio.gather(*(questions.get(name) for name in names))
    assert answers == [None if name == "n1" else name.upper() for name in names]
    assert len(requests) == -(-number // 2)
