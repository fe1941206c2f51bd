"""Runs all parts together: starts them, reports how they are, and ends every one of them.

Nothing is started again. A part that ends is reported with the end of its log, the others go on, and
the exit code is 1 in the end: a sample that hides its failures would teach nothing.
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
from keywright_demo.console import Teller, status_line
from keywright_demo.folder import swept_folder
from keywright_demo.metrics import Readings, key_count
from keywright_demo.options import UpOptions
from keywright_demo.part import PartFailedError, PartProcess
from keywright_demo.processes import Crew, Site, free_port
from keywright_demo.services import SCENES, Scene, explorer

__all__ = ["Supervisor"]

REDIS = "Redis server"
USUAL_PORT = 8600
ROUND_SECONDS = 1.0
WATCH_SECONDS = 0.25
_SIGNALS = (*STOP_SIGNALS, signal.SIGHUP)


class Supervisor:
    """One run. `run` it once; SIGINT and SIGTERM end it in order, a second one at once."""

    def __init__(self, options: UpOptions, teller: Teller | None = None) -> None:
        self.options = options
        self.teller = teller or Teller()
        self._crews: list[Crew] = []
        self._redis: ServerProcess | None = None
        self._stopping = asyncio.Event()
        self._work: asyncio.Task[None] | None = None
        self._failed: set[str] = set()

    async def run(self) -> int:
        """Run until it is stopped, or its time is over; return 0, or 1 if a part failed."""
        scenes = self._scenes()
        stoppable = on_signals(self._interrupt, self._interrupt, signals=_SIGNALS)
        with stoppable, swept_folder() as folder:
            self._work = asyncio.create_task(self._run_in(folder, scenes))
            try:
                await self._work
            except asyncio.CancelledError:
                if not self._stopping.is_set():
                    raise
        self.teller.say(f"Stopped; {self._remains}.")
        return 1 if self._failed else 0

    async def _run_in(self, folder: Path, scenes: dict[str, Scene]) -> None:
        async with self._served(folder) as site, aconnect(site.redis) as db:
            await self._check_room(db)
            async with Readings(db, site.broker) as readings:
                await self._perform(scenes, site, readings)

    def _scenes(self) -> dict[str, Scene]:
        """Return the scenes that can be run of those that were asked for."""
        chosen = {model: SCENES[model] for model in self.options.models}
        if self.options.explorer:
            chosen["explorer"] = explorer(self._port(), self.options.models)
        for name, scene in list(chosen.items()):
            if missing := scene.missing:
                del chosen[name]
                problem = MissingDependencyError("it", ", ".join(missing), scene.distribution)
                self.teller.say(f"{name} is left out: {problem}", "yellow")
        if not chosen.keys() - {"explorer"}:
            raise UsageError(
                "nothing of what was asked for can run. Install it with: pip install keywright-demo"
            )
        return chosen

    def _port(self) -> int:
        if self.options.port is not None:
            return free_port(self.options.port)
        with suppress(UsageError):
            return free_port(USUAL_PORT)
        return free_port()

    @asynccontextmanager
    async def _served(self, folder: Path) -> AsyncIterator[Site]:
        """Redis, embedded unless there is a real one; and where everything else is."""
        logs = self.options.logs or folder
        try:
            logs.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise UsageError(f"no logs can be written to {logs}: {error}. Name another --logs.") from error
        if self.options.url is None:
            self._redis = ServerProcess(folder)
            # Notifications, which the explorer shows as live changes.
            settings = {"port": "0", "save": '""', "dir": quoted(folder), "notify-keyspace-events": "KEA"}
            self._redis.configure(settings)
            self._redis.start()
        redis = self.options.url or f"unix://{folder / 'redis.sock'}"
        try:
            yield Site(folder, logs.resolve(), redis, self.options.broker or redis)
        finally:
            if self._redis is not None:
                self._redis.stop()

    async def _check_room(self, db: AsyncDatabase) -> None:
        """UsageError for a real server that holds something, unless that was confirmed."""
        if self.options.url is None or self.options.confirmed:
            return
        if keys := await key_count(db):
            held = "1 key" if keys == 1 else f"{keys:,} keys"
            raise UsageError(
                f"{db.address.shown} holds {held}, and samples would be written beside that: under "
                f"prefixes that begin with 'sample-', the registry's under 'registry'. "
                f"Give an empty database, as in redis://localhost/9, or --yes."
            )

    async def _perform(self, scenes: dict[str, Scene], site: Site, readings: Readings) -> None:
        self._crews = [Crew(name, site) for name in scenes]
        if "explorer" not in scenes and self._redis is not None:
            self.teller.say(f"Redis is at {site.redis}")
        work = [self._start(crew, scenes[crew.name]) for crew in self._crews]
        tasks = [asyncio.create_task(each) for each in (*work, self._watch(), self._tell(readings))]
        for task in tasks:
            task.add_done_callback(self._stop_after_a_crash)
        try:
            with self.teller.live():
                await self._until_stopped()
            self._notice_ends()
        finally:
            for task in tasks:
                task.cancel()
            ended = await asyncio.gather(*tasks, return_exceptions=True)
            await asyncio.gather(*(crew.stop() for crew in self._crews))
        for error in ended:
            if isinstance(error, Exception):
                raise error

    async def _until_stopped(self) -> None:
        with suppress(TimeoutError):
            async with asyncio.timeout(self.options.seconds):
                await self._stopping.wait()

    async def _start(self, crew: Crew, scene: Scene) -> None:
        try:
            await scene.start(crew)
        except PartFailedError as error:
            self._report(error)
            return
        if address := crew.addresses.get("explorer"):
            self.teller.say(f"Keywright is up: {address}", "bold green")
            self.teller.say(f"Ctrl-C stops everything; {self._remains}.")

    def _stop_after_a_crash(self, task: asyncio.Task[None]) -> None:
        if not task.cancelled() and task.exception() is not None:
            self._stopping.set()

    async def _watch(self) -> None:
        while True:
            self._notice_ends()
            await asyncio.sleep(WATCH_SECONDS)

    async def _tell(self, readings: Readings) -> None:
        """Round by round: who is there, what they do."""
        while True:
            parts = [part for crew in self._crews for part in crew.parts]
            readings.worker_is_up = any(part.name == "worker" and part.is_up for part in parts)
            for crew in self._crews:
                readings.metrics = crew.addresses.get("metrics", readings.metrics)
            figures = await readings.take()
            starting = [part.name for part in parts if not part.is_ready and part.name not in self._failed]
            line = status_line(figures, self._up(parts), starting, sorted(self._failed))
            self.teller.status(line, (bool(starting), len(self._failed)))
            await asyncio.sleep(ROUND_SECONDS)

    def _up(self, parts: list[PartProcess]) -> int:
        return sum(part.is_up for part in parts) + (self._redis is not None and self._redis.pid is not None)

    def _notice_ends(self) -> None:
        for part in [part for crew in self._crews for part in crew.parts]:
            if part.is_ready and part.exit_code is not None and part.name not in self._failed:
                self._report(part.failure(f"ended with exit code {part.exit_code}"))
        if self._redis is not None and self._redis.pid is None and REDIS not in self._failed:
            self._report(PartFailedError(REDIS, "ended", _tail(self._redis.log)))
            self._stopping.set()  # nothing works without it

    def _report(self, error: PartFailedError) -> None:
        self._failed.add(error.part)
        self.teller.say(str(error), "red")

    @property
    def _remains(self) -> str:
        if self.options.url is None and self.options.broker is None:
            return "nothing is left behind"
        return "what was written to real servers stays there"

    def _interrupt(self, number: signal.Signals) -> None:
        if self._stopping.is_set():
            for crew in self._crews:
                crew.kill()
            return
        self._stopping.set()  # before it is printed: the terminal may be what went away
        if not self._crews and self._work is not None:
            self._work.cancel()  # it still waits for a real server
        self.teller.say("Stopping; once more stops at once.")


def _tail(log: Path) -> str:
    return "\n".join(f"    {line}" for line in log.read_text("utf-8", "replace").splitlines()[-5:])
