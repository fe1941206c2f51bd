"""The program of a worker process: opens what the first request names, then answers until its pipe ends."""

from __future__ import annotations

import asyncio
import os
import sys
import traceback
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from importlib import import_module
from typing import BinaryIO, Protocol

import msgspec

from keywright.errors import KeywrightError
from keywright.keyspace import Keyspace
from keywright.tools.jobs.carried_errors import carried
from keywright.tools.jobs.messages import HEADER, Message, Start, State, packed
from keywright.tools.plugins import load_model
from keywright.tools.sources import CHECKED_DUMP, DUMP, bindings_of, opened_source

__all__ = ["JOBS", "Job", "main"]

JOBS = {
    "audit": ("keywright.tools.audit.page_job", "audit_job"),
    "infer": ("keywright.tools.infer.survey_job", "survey_job"),
    "migrate": ("keywright.tools.migrate.sweep_job", "sweep_job"),
}
"""The jobs by name: the module and the function that makes one of a database, keyspaces and options."""


class Job(Protocol):
    """The part of a tool that runs in a worker."""

    async def answer(self, request: bytes) -> bytes: ...


def main() -> None:
    """Run until the pipe ends. What a model prints goes to standard error, not between the messages."""
    replies = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    with suppress(BrokenPipeError, asyncio.IncompleteReadError):  # the first process is gone
        asyncio.run(_serve(replies))
    # Not at leisure: nothing is left to save, and the first process waits.
    sys.stderr.flush()
    os._exit(0)


async def _serve(replies: BinaryIO) -> None:
    requests = asyncio.StreamReader()
    loop = asyncio.get_running_loop()
    await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(requests), sys.stdin.buffer)
    number, content = await _received(requests)
    async with AsyncExitStack() as opened:
        try:
            job = await opened.enter_async_context(_opened(content))
        except Exception as error:  # noqa: BLE001  # it is raised in the first process
            _send(replies, _failed(number, error))
            return
        _send(replies, Message(number, State.DONE, b""))
        try:
            async with asyncio.TaskGroup() as tasks:
                while True:
                    number, content = await _received(requests)
                    tasks.create_task(_answered(job, number, content, replies))
        except* (BrokenPipeError, asyncio.IncompleteReadError):
            pass  # the end of the pipe ends what is at work


async def _received(requests: asyncio.StreamReader) -> tuple[int, bytes]:
    """Return the number and the content of the next request. Raise IncompleteReadError at the end."""
    size, number, _ = HEADER.unpack(await requests.readexactly(HEADER.size))
    return number, await requests.readexactly(size)


@asynccontextmanager
async def _opened(content: bytes) -> AsyncIterator[Job]:
    """Open what the first request names."""
    start = msgspec.msgpack.decode(content, type=Start)
    sys.path[:] = start.path
    spaces = _spaces(start)
    bindings = bindings_of(spaces, start.prefix)
    source = start.source.replace(CHECKED_DUMP, DUMP, 1)  # it is checked once
    async with opened_source(source, *bindings, database=start.database) as db:
        module, attribute = JOBS[start.job]
        yield getattr(import_module(module), attribute)(db, spaces, start.options)


def _spaces(start: Start) -> list[Keyspace]:
    if not start.places:
        return []
    known = load_model(start.model).spaces
    return [known[place] for place in start.places]


async def _answered(job: Job, number: int, content: bytes, replies: BinaryIO) -> None:
    try:
        reply = Message(number, State.DONE, await job.answer(content))
    except Exception as error:  # noqa: BLE001  # it is raised in the first process
        reply = _failed(number, error)
    _send(replies, reply)


def _failed(number: int, error: Exception) -> Message:
    if isinstance(error, KeywrightError):
        return Message(number, State.ERROR, carried(error))
    traceback.print_exception(error)
    return Message(number, State.DEFECT, f"{type(error).__name__}: {error}".encode("utf-8", "replace"))


def _send(replies: BinaryIO, message: Message) -> None:
    replies.write(packed(message))
    replies.flush()


if __name__ == "__main__":
    main()
