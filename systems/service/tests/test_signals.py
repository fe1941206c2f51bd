"""A service as a process: told to stop once it ends cleanly, told twice at once."""

from __future__ import annotations

import asyncio
import logging
import os
import signal

import pytest

from keywright_service.http import stopped_by_signals

DEFAULTS = {signal.SIGTERM: signal.SIG_DFL, signal.SIGINT: signal.default_int_handler}


@pytest.mark.parametrize("number", DEFAULTS)
def test_the_first_signal_stops_and_whichever_comes_next_ends_the_process(number: signal.Signals) -> None:
    async def story() -> None:
        stopped = asyncio.Event()
        with stopped_by_signals(stopped.set, logging.getLogger("keywright.test")):
            os.kill(os.getpid(), number)
            await asyncio.wait_for(stopped.wait(), 10)
            assert {each: signal.getsignal(each) for each in DEFAULTS} == DEFAULTS

    asyncio.run(story())


def test_after_the_block_signals_do_what_they_did(caplog: pytest.LogCaptureFixture) -> None:
    async def story() -> None:
        with stopped_by_signals(lambda: None, logging.getLogger("keywright.test")):
            assert {each: signal.getsignal(each) for each in DEFAULTS} != DEFAULTS
        assert {each: signal.getsignal(each) for each in DEFAULTS} == DEFAULTS

    asyncio.run(story())
