"""Publishes numbered messages: `python -m soak.loads.publisher BROKER LOG [--rate N]`."""

from __future__ import annotations

import argparse
import asyncio
from datetime import timedelta
from pathlib import Path

from keywright.errors import KeywrightError
from keywright_messaging import BrokerSettings, open_broker
from keywright_service.signals import stop_on_signals
from soak.loads.acknowledgements import AcknowledgementLog

__all__ = ["EVENT", "SETTINGS"]

EVENT = "NUMBER"
SETTINGS = BrokerSettings(
    group="soak",
    retry_after=timedelta(seconds=0.2),
    claim_after=timedelta(seconds=10),
    connect_timeout=timedelta(seconds=10),
    retention=timedelta(seconds=30),  # so that trimming goes on during faults
)


async def publish(url: str, log: AcknowledgementLog, rate: float) -> None:
    stopped = asyncio.Event()
    number = log.life
    with stop_on_signals(stopped.set):
        async with await open_broker(url, SETTINGS) as broker:
            await broker.declare(EVENT)
            print("ready", flush=True)
            while not stopped.is_set():
                number += 1
                log.begin("publish", number)
                try:
                    await broker.publish(EVENT, {"number": number})
                except KeywrightError as error:
                    # Published or not: a reply may have been lost.
                    log.doubt("publish", number, type(error).__name__)
                else:
                    log.ok("publish", number)
                await asyncio.sleep(1 / rate)


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("url")
    parser.add_argument("log", type=Path)
    parser.add_argument("--rate", type=float, default=20.0)
    options = parser.parse_args()
    asyncio.run(publish(options.url, AcknowledgementLog(options.log), options.rate))
