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

import msgspec

from benchmarks.measuring import Figure, Result
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
BASE = ("json", "none")
COMPARED = (("json", "zstd-stream"), ("etf", "none"))


class Ready(msgspec.Struct):
    """The first message of the simulator process: its address and token."""

    api: str
    token: str


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
        print(msgspec.json.encode(Ready(discord.api_url, discord.token)).decode(), flush=True)
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
def gateway(redis_url: str, ready: Ready, encoding: str, compression: str) -> Iterator[None]:
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
        yield
    finally:
        child.terminate()
        child.wait(60)


async def all_guilds_cached(redis_url: str, token: str) -> None:
    session = ShardSession(bot_of(token), 1, 0)
    async with aconnect(redis_url, gateway_space.bind()) as db, asyncio.timeout(60):
        while (state := await db.run(session.get())) is None or state.sequence <= GUILDS:  # noqa: ASYNC110
            await asyncio.sleep(0.05)


async def consume(redis_url: str, sent: asyncio.Task[Sent]) -> float:
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

        async def story() -> tuple[float, Sent]:
            await all_guilds_cached(server.url, ready.token)
            start.write("\n")
            start.flush()
            sent = asyncio.create_task(
                asyncio.to_thread(lambda: msgspec.json.decode(out.readline(), type=Sent))
            )
            return await consume(server.url, sent), await sent

        with gateway(server.url, ready, encoding, compression):
            last, sent = asyncio.run(story())
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


def measure() -> Iterator[Result]:
    """Yield the events a second from Discord to worker; each encoding against plain JSON."""
    base = Figure.of(_paces(*BASE, EVENTS, ROUNDS, None))
    for encoding, compression in COMPARED:
        yield Result(
            "gateway",
            f"Discord to worker, {GUILDS:,} guilds, {encoding}, {compression}",
            "ops_per_second",
            Figure.of(_paces(encoding, compression, EVENTS, ROUNDS, None)),
            "the same in JSON without compression",
            base,
            None,
        )


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
