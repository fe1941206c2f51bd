"""Celery: one database for each worker process, opened by its first task.

celery --app examples.frameworks.celery_app worker --concurrency 2
"""

from __future__ import annotations

import asyncio
import os
from functools import cache
from typing import Any

from celery import Celery
from celery.signals import worker_process_shutdown
from examples.frameworks.guestbook import Badge, GuestBadge, Visits

from keywright import Database, aconnect, connect

url = os.environ["REDIS_URL"]
app = Celery("guestbook", broker=url, backend=url)


@cache
def database() -> Database:
    """Return the database of this process; threads of a worker share it."""
    return connect(url, client_name="celery")


@worker_process_shutdown.connect
def close(**_: Any) -> None:
    if database.cache_info().currsize:
        database().close()


@app.task
def count_visit(guest: str) -> dict[str, int]:
    return {"visits": database().run(Visits(guest).add(1)), "worker": os.getpid()}


@app.task
def award(guest: str, title: str) -> int:
    """Award a badge with asyncio. An event loop of its own needs a database of its own."""

    async def awarded() -> int:
        async with aconnect(url, client_name="celery-async") as db:
            visits = await db.run(Visits(guest).get())
            await db.run(Badge(guest).set(GuestBadge(title, visits)))
            return visits

    return asyncio.run(awarded())
