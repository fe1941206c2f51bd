"""The supervisor of all processes: starts them, prints their state, and stops every one.

Nothing is restarted. A process that ends early is reported with the end of its log, the others continue, and
the exit code is 1: a demo must not hide failures.
"""

from __future__ import annotations

import asyncio
import signal
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path

from keywright import AsyncDatabase, aconnect
from keywright.errors import MissingDependencyError, UsageError
from keywright.testing import ServerProcess, quoted
from keywright.tools.http import STOP_SIGNALS, on_signals
from keywright_demo.console import StatusConsole, status_line
from keywright_demo.folder import swept_folder
from keywright_demo.metrics import MetricsReader, key_count
from keywright_demo.options import UpOptions
from keywright_demo.processes import ChildProcess, ProcessFailedError, ProcessGroup, Workspace, free_port
from keywright_demo.services import SERVICES, DemoService, explorer_service

__all__ = ["Supervisor"]

REDIS = "Redis server"
DEFAULT_PORT = 8600
STATUS_SECONDS = 1.0
WATCH_SECONDS = 0.25
_TOUR = "break a sample, audit it, repair it, undo the repair"
_SIGNALS = (*STOP_SIGNALS, signal.SIGHUP)


class Supervisor:
    """One run of the demo. SIGINT, SIGTERM and SIGHUP stop it in order, a second signal at once."""

    def __init__(self, options: UpOptions, console: StatusConsole | None = None) -> None:
        self.options = options
        self.console = console or StatusConsole()
        self._groups: list[ProcessGroup] = []
        self._redis: ServerProcess | None = None
        self._stopping = asyncio.Event()
        self._work: asyncio.Task[None] | None = None
        self._failed: set[str] = set()

    async def run(self) -> int:
        """Run until it is stopped, or its time is over. Return 0, or 1 if a process failed."""
        services = self._services()
        stoppable = on_signals(self._interrupt, self._interrupt, signals=_SIGNALS)
        with stoppable, swept_folder() as folder:
            self._work = asyncio.create_task(self._run_in(folder, services))
            try:
                await self._work
            except asyncio.CancelledError:
                if not self._stopping.is_set():
                    raise
        self.console.print(f"Stopped; {self._leftovers}.")
        return 1 if self._failed else 0

    async def _run_in(self, folder: Path, services: dict[str, DemoService]) -> None:
        async with self._servers(folder) as workspace, aconnect(workspace.redis) as db:
            await self._require_empty(db)
            async with MetricsReader(db, workspace.broker) as metrics:
                await self._supervise(services, workspace, metrics)

    def _services(self) -> dict[str, DemoService]:
        """Return the chosen services whose modules are installed."""
        chosen = {model: SERVICES[model] for model in self.options.models}
        if self.options.explorer:
            chosen["explorer"] = explorer_service(
                self._explorer_port(), self.options.models, tour=self._is_throw_away
            )
        for name, service in list(chosen.items()):
            if missing := service.missing:
                del chosen[name]
                problem = MissingDependencyError("it", ", ".join(missing), service.distribution)
                self.console.print(f"{name} is left out: {problem}", "yellow")
        if not chosen.keys() - {"explorer"}:
            raise UsageError("none of the models can run. Install them with: pip install keywright-demo")
        return chosen

    def _explorer_port(self) -> int:
        if self.options.port is not None:
            return free_port(self.options.port)
        with suppress(UsageError):
            return free_port(DEFAULT_PORT)
        return free_port()

    @asynccontextmanager
    async def _servers(self, folder: Path) -> AsyncIterator[Workspace]:
        """Start an embedded Redis unless a real one is given, and yield the workspace of all processes."""
        logs = self.options.logs or folder
        try:
            logs.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise UsageError(f"--logs cannot be written to {logs}: {error}. Name another folder.") from error
        if self.options.url is None:
            self._redis = ServerProcess(folder)
            # The explorer shows keyspace notifications as live changes.
            settings = {"port": "0", "save": '""', "dir": quoted(folder), "notify-keyspace-events": "KEA"}
            self._redis.configure(settings)
            self._redis.start()
        redis = self.options.url or f"unix://{folder / 'redis.sock'}"
        try:
            yield Workspace(folder, logs.resolve(), redis, self.options.broker or redis)
        finally:
            if self._redis is not None:
                self._redis.stop()

    async def _require_empty(self, db: AsyncDatabase) -> None:
        """Raise UsageError if a real server has keys, unless that was confirmed."""
        if self.options.url is None or self.options.confirmed:
            return
        if keys := await key_count(db):
            held = "1 key" if keys == 1 else f"{keys:,} keys"
            raise UsageError(
                f"{db.address.shown} has {held}, and samples would be written beside them: under prefixes "
                f"that begin with 'sample-', those of the registry under 'registry'. "
                f"Give an empty database, as in redis://localhost/9, or --yes."
            )

    async def _supervise(
        self, services: dict[str, DemoService], workspace: Workspace, metrics: MetricsReader
    ) -> None:
        self._groups = [ProcessGroup(name, workspace) for name in services]
        if "explorer" not in services and self._redis is not None:
            self.console.print(f"Redis is at {workspace.redis}")
        starts = [asyncio.create_task(self._start(each, services[each.name])) for each in self._groups]
        others = (self._watch(), self._show_status(metrics), self._say_where_to_begin(starts))
        tasks = [*starts, *(asyncio.create_task(each) for each in others)]
        for task in tasks:
            task.add_done_callback(self._stop_after_a_crash)
        try:
            with self.console.live(), suppress(TimeoutError):
                async with asyncio.timeout(self.options.seconds):
                    await self._stopping.wait()
            self._report_ended()
        finally:
            for task in tasks:
                task.cancel()
            results = await asyncio.gather(*tasks, return_exceptions=True)
            await asyncio.gather(*(group.stop() for group in self._groups))
        for error in results:
            if isinstance(error, Exception):
                raise error

    async def _start(self, group: ProcessGroup, service: DemoService) -> None:
        try:
            await service.start(group)
        except ProcessFailedError as error:
            self._report(error)
            return
        if address := group.addresses.get("explorer"):
            self.console.print(f"Keywright is up: {address}", "bold green")
            self.console.print(f"Ctrl-C stops everything; {self._leftovers}.")

    async def _say_where_to_begin(self, starts: list[asyncio.Task[None]]) -> None:
        """Print every address, and which to open first, once everything has started or failed."""
        await asyncio.wait(starts)
        served = [each for group in self._groups for each in group.served]
        width = max((len(address) for address, _ in served), default=0)
        for address, what in served:
            self.console.print(f"  {address:{width}}  {what}")
        for group in self._groups:
            if explorer := group.addresses.get("explorer"):
                first = f"{explorer}/tour" if self._is_throw_away else explorer
                what = _TOUR if self._is_throw_away else "every model with its keys, read-only"
                self.console.print(f"Begin here: {first}  {what}", "bold")

    def _stop_after_a_crash(self, task: asyncio.Task[None]) -> None:
        if not task.cancelled() and task.exception() is not None:
            self._stopping.set()

    async def _watch(self) -> None:
        while True:
            self._report_ended()
            await asyncio.sleep(WATCH_SECONDS)

    async def _show_status(self, metrics: MetricsReader) -> None:
        while True:
            processes = self._processes
            metrics.worker_is_up = any(each.name == "worker" and each.is_up for each in processes)
            for group in self._groups:
                metrics.gateway = group.addresses.get("metrics", metrics.gateway)
            figures = await metrics.read()
            starting = [
                each.name for each in processes if not each.is_ready and each.name not in self._failed
            ]
            redis_is_up = self._redis is not None and self._redis.pid is not None
            up = sum(each.is_up for each in processes) + redis_is_up
            line = status_line(figures, up, starting, sorted(self._failed))
            self.console.status(line, (bool(starting), len(self._failed)))
            await asyncio.sleep(STATUS_SECONDS)

    @property
    def _processes(self) -> list[ChildProcess]:
        return [process for group in self._groups for process in group.processes]

    def _report_ended(self) -> None:
        for process in self._processes:
            if process.is_ready and process.exit_code is not None and process.name not in self._failed:
                self._report(process.failure(f"ended with exit code {process.exit_code}"))
        if self._redis is not None and self._redis.pid is None and REDIS not in self._failed:
            lines = self._redis.log.read_text("utf-8", "replace").splitlines()[-5:]
            self._report(ProcessFailedError(REDIS, "ended", "\n".join(f"    {line}" for line in lines)))
            self._stopping.set()  # nothing works without it

    def _report(self, error: ProcessFailedError) -> None:
        self._failed.add(error.process)
        self.console.print(str(error), "red")

    @property
    def _is_throw_away(self) -> bool:
        """Whether the data ends with this run: then the explorer may write to it."""
        return self.options.url is None

    @property
    def _leftovers(self) -> str:
        if self.options.url is None and self.options.broker is None:
            return "nothing is left behind"
        return "the samples on real servers stay there"

    def _interrupt(self, number: signal.Signals) -> None:
        if self._stopping.is_set():
            for group in self._groups:
                group.kill()
            return
        self._stopping.set()  # before the output, which fails if the terminal was closed
        if not self._groups and self._work is not None:
            self._work.cancel()  # it still waits for a real server
        self.console.print("Stopping; a second signal stops at once.")
