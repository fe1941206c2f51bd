"""Handles messages and logs them: `python -m soak.loads.worker BROKER LOG [EVENT FIELD]`.

It is opened again after an outage that was longer than its patience, as a supervisor would do.
"""

from __future__ import annotations

import asyncio
import os
import sys
from datetime import timedelta
from pathlib import Path
from typing import Any

from keywright.errors import KeywrightError
from keywright_messaging import Worker, open_broker
from keywright_service.signals import stop_on_signals
from soak.loads.acknowledgements import AcknowledgementLog
from soak.loads.publisher import EVENT, SETTINGS

PAUSE_SECONDS = 0.5


async def work(url: str, log: AcknowledgementLog, event: str, field: str) -> None:
    worker = Worker(group=SETTINGS.group, grace=timedelta(seconds=5))

    async def handle(payload: Any) -> None:
        log.ok("handle", payload[field])

    worker.on(event)(handle)
    stopped = asyncio.Event()

    def stop() -> None:
        stopped.set()
        worker.stop()

    with stop_on_signals(stop):
        while not stopped.is_set():
            try:
                async with await open_broker(url, SETTINGS) as broker:
                    await broker.declare(event)
                    print("ready", flush=True)
                    await worker.serve(broker)
            except KeywrightError as error:
                print(f"{type(error).__name__}: {error}", flush=True)
                log.doubt("serve", os.getpid(), type(error).__name__)
                await asyncio.sleep(PAUSE_SECONDS)


if __name__ == "__main__":
    url, path, *named = sys.argv[1:]
    event, field = named or (EVENT, "number")
    asyncio.run(work(url, AcknowledgementLog(Path(path)), event, field))
