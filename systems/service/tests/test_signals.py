"""The first signal stops a service cleanly, the second one ends it at once."""

from __future__ import annotations

import asyncio
import os
import signal

import pytest

from keywright_service.signals import stop_on_signals

pytestmark = pytest.mark.anyio

DEFAULTS = {signal.SIGTERM: signal.SIG_DFL, signal.SIGINT: signal.default_int_handler}


def handlers() -> dict[signal.Signals, object]:
    return {each: signal.getsignal(each) for each in DEFAULTS}


@pytest.mark.parametrize("number", DEFAULTS)
async def test_the_first_signal_stops_and_whichever_comes_next_ends_the_process(
    number: signal.Signals, caplog: pytest.LogCaptureFixture
) -> None:
    stopped = asyncio.Event()
    caplog.set_level("INFO", "keywright.service")
    with stop_on_signals(stopped.set):
        os.kill(os.getpid(), number)
        await asyncio.wait_for(stopped.wait(), 10)
        assert handlers() == DEFAULTS
    assert f"stopping: {number.name}" in caplog.text


async def test_after_the_block_signals_do_what_they_did() -> None:
    with stop_on_signals(lambda: None):
        assert handlers() != DEFAULTS
    assert handlers() == DEFAULTS
