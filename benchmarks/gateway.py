"""Discord to worker: `python -m benchmarks.gateway`. Simulator, gateway and worker are separate processes.

The simulated bot is in 1,000 guilds. Everyday events are generated before the clock starts, sent as fast as
the gateway reads them, written to the cache (DRC) and to Redis streams, and acknowledged by one worker.
The clock runs from the first event sent, when the cache has all guilds, to the last one acknowledged by
the worker. Four processes share two cores: the simulator uses a large part of them.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import msgspec

from benchmarks.measuring import FULL, Effort, Result
from keywright import aconnect
from keywright.testing import RedisServer
from keywright_discord.gateway.gateway import bot_of
from keywright_discord.gateway.intents import Intents
from keywright_discord.gateway.schema import ShardSession
from keywright_discord.gateway.schema import gateway as gateway_space
from keywright_discord.simulator import DiscordSimulator, SimulatorSettings
from keywright_messaging import BrokerSettings, etf, open_broker

GUILDS = 1000
MEMBERS = 10
EVENTS = 20_000
WANTED = ("MESSAGE_CREATE", "MESSAGE_UPDATE", "PRESENCE_UPDATE", "TYPING_START", "MESSAGE_REACTION_ADD")
ROUNDS = 3
PATIENCE = 60.0
BASE = ("json", "none")
COMPARED = (("json", "zstd-stream"), ("etf", "none"))


class NoProgressError(Exception):
    """The gateway or the simulator ended, or nothing arrived for a long time."""


class Ready(msgspec.Struct):
    """The first message of the simulator process: its address and token, and how many guilds it will send."""

    api: str
    token: str
    guilds: int


class Sent(msgspec.Struct):
    """Its last message, after all events: how many of them workers get, and when it started and ended."""

    wanted: int
    began: float
    ended: float


async def simulate(events: int, rate: float | None) -> None:
    """Run the simulator process: send traffic as fast as it is read, once the gateway has all guilds."""
    settings = SimulatorSettings(
        guilds=GUILDS, members=MEMBERS, outbox=events + 5000, replay_events=events + 5000
    )
    async with DiscordSimulator(settings) as discord:
        made = list(discord.world.events(events))
        sent = sum(discord.world.guild_create(guild) is not None for guild in discord.world.guilds)
        print(msgspec.json.encode(Ready(discord.api_url, discord.token, sent)).decode(), flush=True)
        await asyncio.to_thread(sys.stdin.readline)
        began = time.time()
        await discord.play(made, rate=rate)
        await discord.connections[0].drained()
        ended = time.time()
        [session] = discord.sessions
        payloads = session.buffer.after(0)
        assert payloads is not None
        decode = etf.decode if payloads[0].startswith(b"\x83") else msgspec.json.decode
        wanted = sum(decode(each)["t"] in WANTED for each in payloads)
        print(msgspec.json.encode(Sent(wanted, began, ended)).decode(), flush=True)
        await asyncio.to_thread(sys.stdin.read)


@contextmanager
def simulator(events: int, rate: float | None = None) -> Iterator[subprocess.Popen[str]]:
    arguments = [sys.executable, "-m", "benchmarks.gateway", "--simulate", "--events", str(events)]
    arguments += ["--rate", str(rate)] if rate else []
    with subprocess.Popen(arguments, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as child:
        try:
            yield child
        finally:
            child.kill()


@contextmanager
def gateway(
    redis_url: str, ready: Ready, encoding: str, compression: str
) -> Iterator[subprocess.Popen[bytes]]:
    scheme, _, rest = ready.api.partition("://")
    environment = os.environ | {
        "DISCORD_TOKEN": ready.token,
        "DISCORD_API_PROTOCOL": scheme,
        "DISCORD_API_HOST": rest.split("/")[0],
        "DISCORD_INTENTS": ",".join(Intents.__members__),
        "DISCORD_EVENTS": ",".join(WANTED),
        "DISCORD_ENCODING": encoding,
        "DISCORD_COMPRESSION": compression,
        "REDIS_URL": redis_url,
    }
    arguments = [sys.executable, "-m", "keywright", "gateway", "run", "--loglevel", "warn"]
    child = subprocess.Popen(arguments, env=environment)
    try:
        yield child
    finally:
        child.terminate()
        child.wait(60)


class Watch:
    """Raises NoProgressError instead of waiting for a process that has ended, or for nothing."""

    def __init__(self, waits_for: str, **processes: subprocess.Popen[Any]) -> None:
        self._waits_for = waits_for
        self._processes = processes
        self._done = 0
        self._moved = time.monotonic()

    def look(self, done: int) -> None:
        """Note how far it is."""
        if done > self._done:
            self._done, self._moved = done, time.monotonic()
        for name, process in self._processes.items():
            if process.poll() is not None:
                raise NoProgressError(
                    f"{self._waits_for}: {done:,} when the {name} ended with exit code {process.returncode}. "
                    f"Its messages are above."
                )
        if time.monotonic() - self._moved > PATIENCE:
            raise NoProgressError(f"{self._waits_for}: {done:,}, and none for {PATIENCE:.0f} s")


async def all_guilds_cached(redis_url: str, ready: Ready, watch: Watch) -> None:
    """Wait until the gateway has stored the sequence of the last GUILD_CREATE, which follow READY."""
    session = ShardSession(bot_of(ready.token), 1, 0)
    async with aconnect(redis_url, gateway_space.bind()) as db:
        while True:
            state = await db.run(session.get())
            sequence = 0 if state is None else state.sequence
            if sequence > ready.guilds:
                return
            watch.look(sequence)
            await asyncio.sleep(0.05)


async def consume(redis_url: str, sent: asyncio.Task[Sent], watch: Watch) -> float:
    """Consume and acknowledge until all events have arrived. Return the time of the last one."""
    got, last = 0, 0.0
    async with (
        await open_broker(redis_url, BrokerSettings(client="worker")) as broker,
        broker.consume(*WANTED, prefetch=2000) as consumer,
    ):
        while not sent.done() or got < sent.result().wanted:
            try:
                async with asyncio.timeout(1):
                    batch = await consumer.batch(500)
            except TimeoutError:
                watch.look(got)
                continue
            await consumer.acknowledge_all(batch)
            got, last = got + len(batch), time.time()
    return last


def one_run(events: int, rate: float | None, encoding: str, compression: str) -> float:
    """Return the events a second, counting all traffic that the gateway caches. Print the details."""
    with RedisServer(options={"appendonly": "no"}) as server, simulator(events, rate) as child:
        assert child.stdout is not None
        assert child.stdin is not None
        out, start = child.stdout, child.stdin
        ready = msgspec.json.decode(out.readline(), type=Ready)

        async def story(gateway: subprocess.Popen[bytes]) -> tuple[float, Sent]:
            processes: dict[str, subprocess.Popen[Any]] = {"gateway": gateway, "simulator": child}
            await all_guilds_cached(server.url, ready, Watch("guilds in the cache", **processes))
            start.write("\n")
            start.flush()
            sent = asyncio.create_task(
                asyncio.to_thread(lambda: msgspec.json.decode(out.readline(), type=Sent))
            )
            watch = Watch("events with the worker", **processes)
            return await consume(server.url, sent, watch), await sent

        with gateway(server.url, ready, encoding, compression) as running:
            last, sent = asyncio.run(story(running))
        pace = events / (last - sent.began)
        print(
            f"  {encoding} {compression}: {pace:,.0f} events/s ({sent.wanted:,} published and consumed); "
            f"sent in {sent.ended - sent.began:.2f} s, the last one with the worker "
            f"{max(0.0, last - sent.ended):.2f} s later",
            file=sys.stderr,
            flush=True,
        )
        return pace


def main() -> None:
    options = _options()
    if options.simulate:
        asyncio.run(simulate(options.events, options.rate))
        return
    for encoding, compression in (*COMPARED, BASE):
        rounds = _paces(encoding, compression, options.events, options.rounds, options.rate)
        print(
            f"{encoding}, {compression}: {statistics.median(rounds):,.0f} events/s "
            f"({min(rounds):,.0f} to {max(rounds):,.0f})",
            flush=True,
        )


def measure(effort: Effort = FULL) -> Iterator[Result]:
    """Yield the events a second from Discord to worker; each encoding against plain JSON."""
    rounds: dict[tuple[str, str], list[float]] = {form: [] for form in (BASE, *COMPARED)}
    for _ in range(effort.rounds(ROUNDS)):
        for form, paces in rounds.items():
            paces.append(one_run(EVENTS, None, *form))
    for encoding, compression in COMPARED:
        subject = f"Discord to worker, {GUILDS:,} guilds, {encoding}, {compression}"
        peer = "the same in JSON without compression"
        ours = rounds[encoding, compression]
        yield Result.of("gateway", subject, "ops_per_second", ours, peer, rounds[BASE])


def _paces(encoding: str, compression: str, events: int, rounds: int, rate: float | None) -> list[float]:
    return [one_run(events, rate, encoding, compression) for _ in range(rounds)]


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--events", type=int, default=EVENTS)
    parser.add_argument("--rounds", type=int, default=ROUNDS)
    parser.add_argument("--rate", type=float, help="send so many a second; else as fast as they are read")
    parser.add_argument("--simulate", action="store_true", help=argparse.SUPPRESS)
    return parser.parse_args()


if __name__ == "__main__":
    main()
