"""The worker processes, as the process sees them that scans: requests, replies, and how they end.

A worker ends when its pipe is closed, so none is left behind when this process is killed. One that ends
before that fails every request, and the tool with it: there is no report of a part.
"""

from __future__ import annotations

import asyncio
import signal
import sys
from asyncio.subprocess import PIPE, Process
from collections.abc import Sequence
from contextlib import suppress
from itertools import count
from types import TracebackType
from typing import Self

import msgspec

from keywright.errors import KeywrightError, UsageError, WorkerError
from keywright.keyspace import Keyspace
from keywright.tools.jobs.carried_errors import raised_again
from keywright.tools.jobs.messages import HEADER, Message, Start, State, packed
from keywright.tools.jobs.plan import JobPlan
from keywright.tools.pace import side_by_side

__all__ = ["Workers"]

AT_ONCE = 3
"""The requests that a worker has at a time: it reads for one while it computes another."""
PATIENCE_SECONDS = 5.0


class Workers:
    """The processes of one run. Use it in `async with`: it starts them, and ends them in any case."""

    def __init__(self, plan: JobPlan, job: str, spaces: Sequence[Keyspace], options: bytes) -> None:
        """Prepare the run of a job of `worker.JOBS` over some keyspaces of the model."""
        plan.check()
        self.jobs = plan.jobs
        self._start = Start(
            job,
            sys.path,
            plan.model,
            plan.places(spaces),
            plan.source,
            plan.prefix,
            plan.database,
            options,
        )
        self._workers: list[_Worker] = []
        self._room = asyncio.Semaphore(AT_ONCE * plan.jobs)

    async def __aenter__(self) -> Self:
        try:
            for _ in range(self.jobs):
                self._workers.append(await _Worker.started())
            await self.ask_all(msgspec.msgpack.encode(self._start))
        except BaseException:
            await self._end(kill=True)
            raise
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._end(kill=kind is not None)

    async def ask(self, request: bytes) -> bytes:
        """Give a request to the worker with the least to do, once it has room. Return the reply.

        Raise the error of the worker, or WorkerError if it ended.
        """
        async with self._room:
            return await min(self._workers, key=_Worker.load).ask(request)

    async def ask_all(self, request: bytes) -> list[bytes]:
        """Give a request to every worker. Return the replies."""
        return await side_by_side(worker.ask(request) for worker in self._workers)

    async def _end(self, *, kill: bool) -> None:
        await asyncio.gather(*(worker.end(kill=kill) for worker in self._workers))


class _Worker:
    """One process."""

    def __init__(self, process: Process) -> None:
        self._process = process
        self._numbers = count()
        self._waiting: dict[int, asyncio.Future[bytes]] = {}
        self._ended: WorkerError | None = None
        self._replies = asyncio.create_task(self._read())

    @classmethod
    async def started(cls) -> Self:
        if not sys.executable:
            raise UsageError(
                "this Python does not know its own program, so it starts no workers. Use one job."
            )
        # Not in this process group: Ctrl-C is handled here, and a worker ends with its pipe. -P: no file in
        # the current folder stands in for a module.
        command = (sys.executable, "-P", "-m", "keywright.tools.worker")
        return cls(await asyncio.create_subprocess_exec(*command, stdin=PIPE, stdout=PIPE, process_group=0))

    def load(self) -> int:
        return len(self._waiting)

    async def ask(self, request: bytes) -> bytes:
        if self._ended is not None:
            raise self._ended
        number = next(self._numbers)
        reply: asyncio.Future[bytes] = asyncio.get_running_loop().create_future()
        self._waiting[number] = reply
        try:
            stdin = self._process.stdin
            assert stdin is not None
            stdin.write(packed(Message(number, State.DONE, request)))
            with suppress(ConnectionError):  # it has ended, which its replies show
                await stdin.drain()
            return await reply
        finally:
            self._waiting.pop(number, None)

    async def end(self, *, kill: bool) -> None:
        """Close its pipe, and wait until it has ended."""
        stdin = self._process.stdin
        assert stdin is not None
        stdin.close()
        if kill and self._process.returncode is None:
            self._process.kill()
        try:
            await asyncio.wait_for(self._process.wait(), PATIENCE_SECONDS)
        except TimeoutError:
            self._process.kill()
            await self._process.wait()
        await asyncio.gather(self._replies, return_exceptions=True)

    async def _read(self) -> None:
        """Hand replies to those who wait for them, until the process ends."""
        stdout = self._process.stdout
        assert stdout is not None
        try:
            while True:
                size, number, state = HEADER.unpack(await stdout.readexactly(HEADER.size))
                self._handed(Message(number, State(state), await stdout.readexactly(size)))
        except asyncio.IncompleteReadError:
            code = await self._process.wait()
            self._ended = WorkerError(_how_ended(code))
        for waiting in self._waiting.values():
            if not waiting.done():
                waiting.set_exception(self._ended)

    def _handed(self, message: Message) -> None:
        waiting = self._waiting.get(message.number)
        if waiting is None or waiting.done():
            return
        if message.state is State.DONE:
            waiting.set_result(message.content)
        else:
            waiting.set_exception(_error_in(message))


def _error_in(message: Message) -> KeywrightError:
    if message.state is State.ERROR:
        return raised_again(message.content)
    return WorkerError(f"failed ({message.content.decode('utf-8', 'replace')})")


def _how_ended(code: int) -> str:
    if code >= 0:
        return f"ended with code {code}"
    try:
        return f"was ended by {signal.Signals(-code).name}"
    except ValueError:
        return f"was ended by signal {-code}"
