"""The gateway from the wheels: simulator, RabbitMQ, two copies, two workers, and everything killed once."""

from __future__ import annotations

import json
import re
import shutil
import signal
from collections import Counter
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Any

import redis

from end_to_end.discord_world import PREFIX, Discord, simulated_discord, spectacles_differences
from end_to_end.installation import Installation, answer, wait_ready
from keywright.testing import RedisServer, free_port, wait_until
from keywright_discord.gateway.opcodes import Op
from keywright_discord.simulator import SimulatorSettings
from keywright_discord.simulator.world import SimulatedWorld
from keywright_messaging.testing.rabbitmq import RabbitServer
from service_processes import ServiceProcess, launched

WORKER = Path(__file__).with_name("discord_worker.py")
SUBGROUPS = ("log", "requests")
EVENTS = ("GUILD_CREATE", "MESSAGE_CREATE")
SHARDS = 2
LIVELY = SimulatorSettings(
    guilds=4,
    members=6,
    shards=SHARDS,
    max_concurrency=SHARDS,
    identify_window_seconds=0.01,
    member_requests_window_seconds=1.0,
)
SETTINGS = """\
token = "{token}"
events = ["GUILD_CREATE", "MESSAGE_CREATE"]
intents = ["GUILDS", "GUILD_MEMBERS", "GUILD_MESSAGES", "DIRECT_MESSAGES", "MESSAGE_CONTENT"]

[api]
scheme = "http"
host = "{api}"

[redis]
url = "{redis}"

[broker]
url = "{broker}"
subgroups = ["log", "requests"]

[cache]
prefix = "bot"

[log]
format = "json"
"""
SECONDS = 60


class Bot:
    """Two copies of the gateway and two workers, as processes of the installation."""

    def __init__(self, installed: Installation, folder: Path, running: ExitStack, broker: str) -> None:
        self._installed = installed
        self._folder = folder
        self._running = running
        self.ports = [free_port(), free_port()]
        self.gateways = [self.start_gateway(copy) for copy in range(2)]
        python = (str(installed.environment.folder / "bin" / "python"),)
        self.workers = [
            running.enter_context(
                launched(
                    *(str(WORKER), subgroup, broker, str(folder / f"{subgroup}.notes")),
                    variables={},
                    log=folder / f"{subgroup}.log",
                    program=python,
                )
            )
            for subgroup in SUBGROUPS
        ]

    def start_gateway(self, copy: int) -> ServiceProcess:
        port = self.ports[copy]
        address = f"prometheus.address=127.0.0.1:{port}"
        arguments = ("--config", str(self._folder / "gateway.toml"), "--set", address)
        log = self._folder / f"{port}.log"
        return self._running.enter_context(self._installed.service("gateway", "run", *arguments, log=log))

    def url(self, copy: int, page: str) -> str:
        return f"http://127.0.0.1:{self.ports[copy]}/{page}"

    def phases(self, copy: int) -> list[str]:
        """Return the phase of each shard, as /health says; empty unless all is well."""
        status, body = answer(self.url(copy, "health"))
        return [each["phase"] for each in body["shards"]] if status == 200 else []

    def is_shared(self) -> bool:
        """Return whether each shard is run by one copy while the other stands by, and all is well."""
        pairs = [sorted(pair) for pair in zip(self.phases(0), self.phases(1), strict=False)]
        return pairs == [["ready", "standby"]] * SHARDS

    def wait_failing(self, part: str, *, ready: int) -> None:
        """Wait until both copies name the part that does not answer, and /ready has this status."""
        for copy in range(2):
            wait_until(
                lambda: _failing(answer(self.url(copy, "health"))) == [part],  # noqa: B023
                f"/health names {part}",
                seconds=SECONDS,
            )
            wait_until(
                lambda: answer(self.url(copy, "ready"))[0] == ready,  # noqa: B023
                f"/ready answers {ready}",
                seconds=SECONDS,
            )

    def received(self, subgroup: str, event: str) -> Counter[str]:
        """Return the ids that a worker has noted, with how often."""
        lines = (self._folder / f"{subgroup}.notes").read_text().splitlines()
        return Counter(line.split()[1] for line in lines if line.startswith(f"{event} "))


def _failing(answered: tuple[int, Any]) -> list[str] | None:
    status, body = answered
    return body["failing"] if status == 503 else None


def _restart_empty(server: RedisServer) -> None:
    """Kill Redis and start it without its data."""
    folder = server.socket.parent
    server.kill()
    for log in folder.glob("appendonly*"):
        if log.is_dir():  # since Redis 7
            shutil.rmtree(log)
        else:
            log.unlink()
    server.start()


def _queues(server: RabbitServer, amqp_url: str) -> dict[str, tuple[int, int]]:
    """Return the number of messages and of consumers of every queue of a virtual host."""
    vhost = amqp_url.rpartition("/")[2]
    listed = server.evaluate(f'rabbit_amqqueue:info_all(<<"{vhost}">>, [name, messages, consumers])')
    found = re.findall(r'queue,<<"([^"]*)">>}},\{messages,(\d+)\},\{consumers,(\d+)\}', listed)
    return {name: (int(messages), int(consumers)) for name, messages, consumers in found}


def _stored_all(discord: Discord, raw: redis.Redis) -> bool:
    """Return whether the cache's and the gateway's progress is that of the session of every shard."""
    simulator = discord.simulator
    name = f"{simulator.world.bot['id']}:{SHARDS}"
    sessions = [(each.shard.id, each.id, each.sequence) for each in simulator.sessions if each.outlet]
    if sorted(shard for shard, _, _ in sessions) != list(range(SHARDS)):
        return False
    for shard, session, sequence in sessions:
        stored = raw.hgetall(f"gateway:{{{name}:{shard}}}:session")
        mark = json.loads(raw.get(f"{PREFIX}-private:session:{SHARDS}:{shard}") or "{}")
        if (stored.get("id"), stored.get("sequence")) != (session, str(sequence)):
            return False
        if mark.get("session") != session:
            return False
    return True


def test_the_cache_is_right_and_no_event_is_lost_after_every_part_was_killed(
    installed: Installation, tmp_path: Path, amqp_url: str, keywright_rabbitmq: RabbitServer
) -> None:
    with RedisServer(tcp=True) as server, simulated_discord(LIVELY) as discord, ExitStack() as running:
        simulator = discord.simulator
        address = simulator.api_url.split("/")[2]
        (tmp_path / "gateway.toml").write_text(
            SETTINGS.format(token=simulator.token, api=address, redis=server.tcp_url, broker=amqp_url)
        )
        bot = Bot(installed, tmp_path, running, amqp_url)
        raw = running.enter_context(redis.Redis.from_url(server.tcp_url, decode_responses=True))

        def wait_settled(after: str) -> None:
            """Wait until both copies are well, no message waits, and the cache equals Discord."""
            wait_until(bot.is_shared, f"each shard has one gateway after {after}", seconds=SECONDS)
            wait_until(
                lambda: discord.look(lambda: _stored_all(discord, raw)),
                f"every event is stored after {after}",
                seconds=SECONDS,
            )
            wait_until(
                lambda: not any(waiting for waiting, _ in _queues(keywright_rabbitmq, amqp_url).values()),
                f"no message waits after {after}",
                seconds=SECONDS,
            )
            with suppress(AssertionError):
                wait_until(lambda: not discord.differences(raw), "the cache is right", seconds=SECONDS)
            assert discord.differences(raw) == [], f"after {after}"

        for copy in range(2):
            wait_ready(bot.url(copy, "ready"))
        wait_settled("the start")
        calm = discord.play(200)
        wait_settled("traffic")

        server.kill()
        discord.play(100)
        bot.wait_failing("redis", ready=503)
        server.start()
        wait_settled("an outage of Redis")

        keywright_rabbitmq.kill()
        discord.play(100)
        bot.wait_failing("broker", ready=200)
        keywright_rabbitmq.start()
        wait_settled("an outage of RabbitMQ")

        killed = 0 if "ready" in bot.phases(0) else 1
        bot.gateways[killed].signal(signal.SIGKILL)
        discord.play(100)
        wait_until(
            lambda: bot.phases(1 - killed) == ["ready"] * SHARDS, "the other takes over", seconds=SECONDS
        )
        bot.gateways[killed] = bot.start_gateway(killed)
        wait_settled("a gateway was killed")

        identified = discord.look(lambda: len(simulator.received(Op.IDENTIFY)))
        assert identified == SHARDS, "every session was resumed"
        _restart_empty(server)
        discord.forget_messages()
        discord.play(100, messages=False)
        wait_settled("Redis was emptied")
        assert discord.look(lambda: len(simulator.received(Op.IDENTIFY))) >= identified + SHARDS
        discord.play(100)
        wait_settled("traffic into the filled cache")

        for subgroup in SUBGROUPS:
            messages = bot.received(subgroup, "MESSAGE_CREATE")
            assert set(messages) == set(discord.created)
            assert {messages[each] for each in calm} == {1}, "two copies do not process an event twice"
            assert set(bot.received(subgroup, "GUILD_CREATE")) == set(simulator.world.guilds)
        queues = _queues(keywright_rabbitmq, amqp_url)
        read = {f"gateway:{subgroup}:{event}" for subgroup in SUBGROUPS for event in EVENTS}
        assert read <= queues.keys()
        assert [name for name, (_, consumers) in queues.items() if not consumers] == [], "each has a reader"
        assert [process.stop() for process in (*bot.gateways, *bot.workers)] == [0] * 4
        assert not discord.differences(raw)
        installed.run("audit", "drc", "--prefix", "bot", "--url", server.tcp_url)


def test_a_spectacles_cache_is_filled_again_after_redis_and_discord_were_killed(
    installed: Installation, tmp_path: Path
) -> None:
    port, api_port, health_port = free_port(), free_port(), free_port()
    world = SimulatedWorld(7, guilds=3, members=5)
    with RedisServer(tcp=True) as server, ExitStack() as running:
        raw = running.enter_context(redis.Redis.from_url(server.tcp_url, decode_responses=True))

        def start_discord() -> ServiceProcess:
            place = ("--port", str(port), "--api-port", str(api_port), "--token", "example", "--rate", "0")
            shape = ("--seed", "7", "--guilds", "3", "--members", "5")
            log = tmp_path / "discord.log"
            return running.enter_context(installed.service("gateway", "simulate", *place, *shape, log=log))

        def wait_filled(*, by_other_than: str) -> str:
            """Wait until another session has filled the cache. Return its id."""

            def filler() -> str | None:
                mark = json.loads(raw.get("bot:spectacles-private:session:1:0") or "{}")
                return None if mark.get("session") == by_other_than else mark.get("session")

            session = wait_until(filler, "a new session fills the cache", seconds=SECONDS)
            wait_until(lambda: not spectacles_differences(raw, world), "the cache is filled", seconds=SECONDS)
            wait_ready(f"http://127.0.0.1:{health_port}/health")
            return session

        variables = {
            "DISCORD_TOKEN": "example",
            "DISCORD_API_PROTOCOL": "http",
            "DISCORD_API_HOST": f"127.0.0.1:{api_port}",
            "DISCORD_INTENTS": "GUILDS,GUILD_MEMBERS,GUILD_PRESENCES",
            "REDIS_URL": server.tcp_url,
            "CACHE_LAYOUT": "spectacles",
            "CACHE_PREFIX": "bot",
            "PROMETHEUS_ADDRESS": f"127.0.0.1:{health_port}",
        }
        discord = start_discord()
        wait_ready(f"http://127.0.0.1:{api_port}/api/v10/gateway")
        log = tmp_path / "gateway.log"
        gateway = running.enter_context(installed.service("gateway", "run", variables=variables, log=log))
        session = wait_filled(by_other_than="")

        _restart_empty(server)
        session = wait_filled(by_other_than=session)

        discord.signal(signal.SIGKILL)
        discord = start_discord()
        wait_filled(by_other_than=session)

        assert [process.stop() for process in (gateway, discord)] == [0, 0]
        installed.run("audit", "spectacles", "--prefix", "bot", "--url", server.tcp_url)
