"""The gateway twice, to RabbitMQ and to Redis streams, with a worker each, from one simulated Discord."""

from __future__ import annotations

import re
import signal
from collections.abc import Sequence
from contextlib import suppress

from keywright.testing import RedisServer, wait_until
from keywright_discord.gateway.intents import Intents
from keywright_messaging.testing.rabbitmq import RabbitServer
from soak.faults import program_faults, server_faults
from soak.judge.discord import judge_discord
from soak.judge.findings import Findings
from soak.judge.logs import OK, attempts
from soak.judge.messages import handled, queued_in_rabbitmq, queued_in_streams
from soak.judge.raw import everything
from soak.loads.publisher import SETTINGS
from soak.programs import Program
from soak.relay import Relay
from soak.scenario import Fault, Scenario

__all__ = ["DiscordScenario"]

EVENT = "MESSAGE_CREATE"
EXPORTED = re.compile(r"^export (\w+)=(.*)$", re.MULTILINE)
CALM_SECONDS = 20.0
DRAIN_SECONDS = 90.0
PREFIXES = ("rabbitmq", "streams")


class DiscordScenario(Scenario):
    title = "gateway with drc cache, simulated Discord, workers over RabbitMQ and Redis streams"

    def start(self) -> None:
        self.redis = self.stack.enter_context(RedisServer(tcp=True, options={"appendfsync": "always"}))
        self.rabbit = self.stack.enter_context(RabbitServer())
        self.said, self.world = self.folder / "said", self.folder / "world.json"
        self.discord = self.program(
            str(self.said), str(self.world), name="discord", module="soak.loads.discord", steady=False
        )
        variables = dict(EXPORTED.findall(self.discord.log.read_text()))
        self.relay = self.stack.enter_context(Relay(int(variables["DISCORD_API_HOST"].rpartition(":")[2])))
        brokers = dict(zip(PREFIXES, (self.rabbit.url, self.redis.tcp_url), strict=True))
        self.worked = {prefix: self.folder / f"{prefix}.worked" for prefix in PREFIXES}
        self.workers = [
            self.program(
                *(url, str(self.worked[prefix]), EVENT, "id"),
                name=f"{prefix} worker",
                module="soak.loads.worker",
            )
            for prefix, url in brokers.items()
        ]
        self.gateways = [self._gateway(prefix, url, variables) for prefix, url in brokers.items()]

    def _gateway(self, prefix: str, broker: str, variables: dict[str, str]) -> Program:
        return self.program(
            *("gateway", "run"),
            name=f"{prefix} gateway",
            module="keywright",
            environment={
                **variables,
                "DISCORD_API_PROTOCOL": "http",
                "DISCORD_INTENTS": ",".join(Intents.__members__),
                "DISCORD_EVENTS": EVENT,
                "REDIS_URL": self.redis.tcp_url,
                "BROKER_URL": broker,
                "BROKER_GROUP": SETTINGS.group,
                "CACHE_PREFIX": prefix,
                "SHARD_STORE_PREFIX": f"{prefix}-sessions",
            },
            ready=r"shard 0: (ready|resumed)",
        )

    def faults(self) -> Sequence[Fault]:
        by_rabbit, by_streams = self.gateways
        return [
            *program_faults(self, by_streams),
            *program_faults(self, by_rabbit),
            *server_faults(self, "Redis", self.redis),
            *server_faults(self, "RabbitMQ", self.rabbit),
            Fault("Discord frozen", self._freeze_discord),
            *program_faults(self, self.workers[0]),
            *program_faults(self, self.workers[1]),
        ]

    def _freeze_discord(self) -> None:
        self.discord.pause()
        self.hold(1.0, 6.0)
        self.discord.resume()

    def judge(self) -> Findings:
        """End the events, let gateways and workers catch up, and compare Discord, cache and workers."""
        self.discord.signal(signal.SIGUSR1)
        self.hold(CALM_SECONDS, CALM_SECONDS)

        def drained() -> bool:
            sent = {each.item for each in attempts([self.said]) if each.outcome == OK}
            return all(not sent - handled(worked).keys() for worked in self.worked.values())

        with suppress(AssertionError):  # the judge looks for the rest in the queues
            wait_until(drained, "every message is handled", seconds=DRAIN_SECONDS)
        for program in (*self.gateways, *self.workers):
            if (code := program.stop()) != 0:
                raise RuntimeError(f"{program.name} ended with exit code {code}:\n{program.tail()}")
        self.discord.stop()
        queue = f"{SETTINGS.group}:{EVENT}"
        queued = queued_in_rabbitmq(self.rabbit.url, queue, field="id")
        queued |= queued_in_streams(self.redis.port, EVENT, SETTINGS.group, field="id")
        return judge_discord(self.said, self.world, everything([self.redis.port]), self.worked, queued)
