"""A writer of the library: `python -m soak.loads.library URL LOG WRITER [--asyncio] [--wait] [--rate N]`.

Ids are new for each call, so that the judge knows from the log what must be stored. A call that raises
ConnectionLostError is made again, as the error says. Jobs and desks are contended: all writers of a scenario
try the same ones.
"""

from __future__ import annotations

import argparse
import asyncio
import itertools
import signal
import threading
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any, NamedTuple

from keywright import AsyncDatabase, Call, Database, Durability, Settings, aconnect, connect
from keywright.errors import ConnectionLostError, KeywrightError
from soak.loads.acknowledgements import AcknowledgementLog
from soak.loads.keyspace import Hits, Job, JobRuns, Log, Moves, Note, Person, Profile, desk, people, tag, team

PUSHES_A_LIST = 1000
HOLD = timedelta(seconds=30)
TIMEOUT_SECONDS = 3.0
CONCURRENCY = 3
TRIALS = 4
PAUSE_SECONDS = 1.0


class Step(NamedTuple):
    """One call, what the log says about it, and what it must return to count as acknowledged."""

    kind: str
    item: str
    call: Call[Any]
    wanted: Any = None


def steps(writer: str, life: int) -> Iterator[list[Step]]:
    """Yield rounds of calls. Those of a round depend on each other and are made in order."""
    for number in itertools.count(life + 1):
        item = f"{writer}{number}"
        person = f"p{writer}{number}"
        yield [
            Step(
                "push",
                f"{writer}-{number // PUSHES_A_LIST}/{item}",
                Log(f"{writer}-{number // PUSHES_A_LIST}").push(item),
            ),
            Step("add", f"{writer}/{number}", Hits(writer).add()),
        ]
        yield [
            Step("assign", f"{person}/t{number % 7}", team.assign(person, f"t{number % 7}")),
            Step(
                "move",
                f"{person}/u{number % 5}",
                team.replace(person, f"u{number % 5}", also=[Moves(person).add()]),
            ),
        ]
        yield [Step("sit", f"{person}/d{number}", desk.assign(person, f"d{number}"))]
        yield [
            Step("tag", f"{person}/x{number % 11}", tag.assign(person, f"x{number % 11}")),
            Step("profile", person, people.put(Profile(person), Profile(person).put(Person(item, number)))),
        ]
        yield [
            Step("note", f"{writer}{number % 50}/{number}", Note(f"{writer}{number % 50}").set(str(number)))
        ]
        job = str(number)
        yield [
            Step("begin", job, Job(job).begin(writer, HOLD), True),
            Step("finish", job, Job(job).finish(writer, also=[JobRuns(job).add()]), True),
        ]


class Writer:
    """Makes the calls at a rate, in one of the two engines, until it is stopped."""

    def __init__(self, options: argparse.Namespace) -> None:
        self.url = options.url
        self.log = AcknowledgementLog(options.log)
        self.rounds = steps(options.writer, self.log.life)
        self.pause = CONCURRENCY / options.rate
        durability = Durability(replicas=1, within_ms=1000) if options.wait else None
        self.settings = Settings(
            timeout_seconds=TIMEOUT_SECONDS, connect_seconds=TIMEOUT_SECONDS, durability=durability
        )
        self.stopped = threading.Event()

    def record(self, step: Step, outcome: Any) -> bool:
        """Log an outcome. Return whether the round goes on."""
        if isinstance(outcome, KeywrightError):
            self.log.failed(step.kind, step.item, outcome)
            return False
        if step.wanted is not None and outcome != step.wanted:
            self.log.refused(step.kind, step.item)
            return False
        self.log.ok(step.kind, step.item)
        return True

    def make(self, db: Database, step: Step) -> bool:
        """Make a call. Return whether it succeeded."""
        for _ in range(TRIALS):
            self.log.begin(step.kind, step.item)
            try:
                return self.record(step, db.run(step.call))
            except ConnectionLostError as error:
                self.record(step, error)
                self.stopped.wait(PAUSE_SECONDS)
            except KeywrightError as error:
                return self.record(step, error)
        return False

    async def amake(self, db: AsyncDatabase, step: Step) -> bool:
        """The same with asyncio."""
        for _ in range(TRIALS):
            self.log.begin(step.kind, step.item)
            try:
                return self.record(step, await db.run(step.call))
            except ConnectionLostError as error:
                self.record(step, error)
                await asyncio.sleep(PAUSE_SECONDS)
            except KeywrightError as error:
                return self.record(step, error)
        return False

    def run(self) -> None:
        with connect(self.url, settings=self.settings) as db:
            guard = threading.Lock()

            def work() -> None:
                while not self.stopped.wait(self.pause):
                    with guard:
                        some = next(self.rounds)
                    for step in some:
                        if not self.make(db, step):
                            break

            threads = [threading.Thread(target=work) for _ in range(CONCURRENCY)]
            for thread in threads:
                thread.start()
            print("ready", flush=True)
            for thread in threads:
                thread.join()

    async def arun(self) -> None:
        async with aconnect(self.url, settings=self.settings) as db:

            async def work() -> None:
                while not self.stopped.is_set():
                    for step in next(self.rounds):
                        if not await self.amake(db, step):
                            break
                    await asyncio.sleep(self.pause)

            print("ready", flush=True)
            async with asyncio.TaskGroup() as tasks:
                for _ in range(CONCURRENCY):
                    tasks.create_task(work())


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("url")
    parser.add_argument("log", type=Path)
    parser.add_argument("writer")
    parser.add_argument("--asyncio", action="store_true")
    parser.add_argument("--wait", action="store_true", help="each write waits for a replica")
    parser.add_argument("--rate", type=float, default=10.0, help="rounds per second")
    options = parser.parse_args()
    writer = Writer(options)
    signal.signal(signal.SIGTERM, lambda *_: writer.stopped.set())
    if options.asyncio:
        asyncio.run(writer.arun())
    else:
        writer.run()


if __name__ == "__main__":
    main()
