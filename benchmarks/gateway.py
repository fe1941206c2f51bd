"""Discord to worker: `python -m benchmarks.gateway`. The simulator, the gateway and the worker are processes.

The simulated bot is in 1,000 guilds. Everyday events are made before the clock starts, sent as fast as the
gateway reads them, written to the cache (DRC) and to Redis streams, consumed and acknowledged by one worker.
The figure is events a second from the first event that the worker has to the last. Two cores serve four
processes: the simulator takes a good part of them.
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

import msgspec

from keywright.keyspace import etf
from keywright.messaging import BrokerSettings, open_broker
from keywright.services.gateway.intents import INTENTS
from keywright.testing import RedisServer
from keywright.testing.discord_simulator import DiscordSimulator, SimulatorSettings

GUILDS = 1000
MEMBERS = 10
EVENTS = 20_000
WANTED = ("MESSAGE_CREATE", "MESSAGE_UPDATE", "PRESENCE_UPDATE", "TYPING_START", "MESSAGE_REACTION_ADD")
PROGRAM = "from keywright.ui.cli.gateway import gateway; gateway()"


class Ready(msgspec.Struct):
    """What the process of the simulator tells first."""

    api: str
    token: str


class Sent(msgspec.Struct):
    """What it tells when all is sent: how many events workers will get, and how long sending took."""

    wanted: int
    seconds: float
    guild_seconds: float
    at: float


async def simulate(events: int, rate: float | None) -> None:
    """The process of the simulator: traffic as fast as it is read, once the gateway has all guilds."""
    settings = SimulatorSettings(
        guilds=GUILDS, members=MEMBERS, outbox=events + 5000, replay_events=events + 5000
    )
    async with DiscordSimulator(settings) as discord:
        made = list(discord.world.events(events))
        print(msgspec.json.encode(Ready(discord.api_url, discord.token)).decode(), flush=True)
        await discord.until(lambda: discord.sessions, "the gateway identifies", seconds=60)
        started = time.perf_counter()
        await discord.until(lambda: not discord.sessions[0].unannounced, "all guilds are sent", seconds=60)
        await discord.connections[0].drained()
        guild_seconds = time.perf_counter() - started
        before = time.perf_counter()
        await discord.play(made, rate=rate)
        await discord.connections[0].drained()
        seconds, at = time.perf_counter() - before, time.time()
        [session] = discord.sessions
        payloads = session.buffer.after(0)
        assert payloads is not None
        decode = etf.decode if payloads[0].startswith(b"\x83") else msgspec.json.decode
        wanted = sum(decode(each)["t"] in WANTED for each in payloads)
        print(msgspec.json.encode(Sent(wanted, seconds, guild_seconds, at)).decode(), flush=True)
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
def gateway(redis_url: str, ready: Ready, encoding: str, compression: str) -> Iterator[None]:
    scheme, _, rest = ready.api.partition("://")
    environment = os.environ | {
        "DISCORD_TOKEN": ready.token,
        "DISCORD_API_PROTOCOL": scheme,
        "DISCORD_API_HOST": rest.split("/")[0],
        "DISCORD_INTENTS": ",".join(INTENTS),
        "DISCORD_EVENTS": ",".join(WANTED),
        "DISCORD_ENCODING": encoding,
        "DISCORD_COMPRESSION": compression,
        "REDIS_URL": redis_url,
    }
    child = subprocess.Popen([sys.executable, "-c", PROGRAM, "run", "--loglevel", "warn"], env=environment)
    try:
        yield
    finally:
        child.terminate()
        child.wait(60)


async def consume(redis_url: str, sent: asyncio.Task[Sent]) -> tuple[float, float]:
    """Take and acknowledge until all that was sent is here; when the first came, and when the last."""
    got, first, last = 0, 0.0, 0.0
    async with (
        await open_broker(redis_url, BrokerSettings(client="worker")) as broker,
        broker.consume(*WANTED, prefetch=2000) as consumer,
    ):
        while not sent.done() or got < sent.result().wanted:
            try:
                async with asyncio.timeout(1):
                    batch = await consumer.batch(500)
            except TimeoutError:
                continue
            last = time.time()
            first = first or last
            got += len(batch)
            await consumer.acknowledge_all(batch)
    return first, last


def one_run(events: int, rate: float | None, encoding: str, compression: str) -> float:
    """Events a second, all of the traffic counted, which the gateway caches; prints what was seen."""
    with RedisServer(options={"appendonly": "no"}) as server, simulator(events, rate) as child:
        assert child.stdout is not None
        out = child.stdout
        ready = msgspec.json.decode(out.readline(), type=Ready)

        async def story() -> tuple[tuple[float, float], Sent]:
            sent = asyncio.create_task(
                asyncio.to_thread(lambda: msgspec.json.decode(out.readline(), type=Sent))
            )
            return await consume(server.url, sent), await sent

        with gateway(server.url, ready, encoding, compression):
            (first, last), sent = asyncio.run(story())
        pace = events / (last - first)
        print(
            f"  {encoding} {compression}: {pace:,.0f} events/s end to end ({sent.wanted:,} "
            f"published and consumed); sent in {sent.seconds:.2f} s; {GUILDS:,} guilds in "
            f"{sent.guild_seconds:.2f} s; the worker had the last {max(0.0, last - sent.at):.2f} s after it was sent",
            flush=True,
        )
        return pace


def main() -> None:
    options = _options()
    if options.simulate:
        asyncio.run(simulate(options.events, options.rate))
        return
    for encoding, compression in (("json", "zstd-stream"), ("json", "none"), ("etf", "none")):
        rounds = [one_run(options.events, options.rate, encoding, compression) for _ in range(options.rounds)]
        print(
            f"{encoding}, {compression}: {statistics.median(rounds):,.0f} events/s "
            f"({min(rounds):,.0f} to {max(rounds):,.0f})",
            flush=True,
        )


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--events", type=int, default=EVENTS)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--rate", type=float, help="send so many a second; else as fast as they are read")
    parser.add_argument("--simulate", action="store_true", help=argparse.SUPPRESS)
    return parser.parse_args()


if __name__ == "__main__":
    main()
