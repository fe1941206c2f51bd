"""A worker for kill tests: writes each message's number to a file and acknowledges it later.

Some numbers are always written but unacknowledged, so that every kill leaves duplicates to count.

`python doomed_worker.py URL GROUP EVENT PREFETCH FILE`
"""

from __future__ import annotations

import asyncio
import os
import sys

from keywright_messaging import BrokerSettings, open_broker


async def work(url: str, group: str, event: str, prefetch: int, path: str) -> None:
    written = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
    settings = BrokerSettings(group=group, client="doomed")
    async with (
        await open_broker(url, settings) as broker,
        broker.consume(event, prefetch=prefetch) as consumer,
    ):
        before = await consumer.batch(1)
        while True:
            for delivery in before:  # one by one, so that a kill strikes within a batch
                os.write(written, b"%d\n" % delivery.data["number"])
            batch = await consumer.batch(prefetch // 2)
            await consumer.acknowledge_all(before)
            before = batch


if __name__ == "__main__":
    asyncio.run(work(sys.argv[1], sys.argv[2], sys.argv[3], int(sys.argv[4]), sys.argv[5]))
