"""The Meetup bot between a simulated Meetup, a simulated Discord and Redis."""

from __future__ import annotations

import re
import signal
from collections.abc import Sequence
from contextlib import suppress

from keywright.testing import LOOPBACK, Proxy, RedisServer, wait_until
from soak.faults import memory_fault, program_faults, proxy_faults, relay_faults, server_faults
from soak.judge.findings import Findings
from soak.judge.meetup import PREFIX, is_settled, judge_meetup
from soak.judge.raw import everything
from soak.ports import service_port
from soak.relay import Relay
from soak.scenario import Fault, Scenario

__all__ = ["MeetupScenario"]

EXPORTED = re.compile(r"^export (\w+)=(.*)$", re.MULTILINE)
SETTLE_SECONDS = 60.0
# Between a kill in the middle of a sync and the next sync.
SYNC_SECONDS = 6.0


class MeetupScenario(Scenario):
    title = "Meetup bot, simulated Meetup and Discord, one Redis (appendfsync always)"

    def start(self) -> None:
        self.server = self.stack.enter_context(RedisServer(tcp=True, options={"appendfsync": "always"}))
        self.proxy = self.stack.enter_context(Proxy(self.server.tcp_url))
        self.linked, self.world = self.folder / "linked", self.folder / "world.json"
        self.town = self.program(
            *(str(self.linked), str(self.world)),
            name="town",
            module="soak.loads.meetup",
            environment={"REDIS_URL": self.proxy.url},
            steady=False,
        )
        variables = dict(EXPORTED.findall(self.town.log.read_text()))
        api = variables["DISCORD_API_URL"]
        port = int(api.split(":")[2].partition("/")[0])
        self.relay = self.stack.enter_context(Relay(port))
        schedule = self.folder / "meetup.toml"
        schedule.write_text(f"[schedule]\nsync_minutes = {SYNC_SECONDS / 60}\nclean_minutes = 0.2\n", "utf-8")
        pages = f"{LOOPBACK}:{service_port()}"
        self.bot = self.program(
            *("meetup", "serve", "--config", str(schedule)),
            name="meetup bot",
            module="keywright",
            environment={
                **variables,
                "DISCORD_API_URL": api.replace(str(port), str(self.relay.port)),
                "REDIS_URL": self.proxy.url,
                "REDIS_PREFIX": PREFIX,
                "PAGES_URL": f"http://{pages}",
                "PAGES_ADDRESS": pages,
            },
            ready=r"listening on (http://\S+)",
        )

    def faults(self) -> Sequence[Fault]:
        to_discord = [
            Fault(f"{name} (Discord)", inject) for name, inject, _ in relay_faults(self, self.relay)
        ]
        return [
            *program_faults(self, self.bot),
            *server_faults(self, "Redis", self.server),
            *to_discord,
            *proxy_faults(self, self.proxy),
            memory_fault(self, self.server),
        ]

    def judge(self) -> Findings:
        """End what people do, let the bot sync twice, and compare the three."""
        self.town.signal(signal.SIGUSR1)
        # A bot that was killed in a sync holds the task for up to seven minutes, as documented.
        self.server.call("DEL", *(f"{PREFIX}:lock:meetup_task:{task}" for task in ("sync", "cleaning")))
        self.hold(3 * SYNC_SECONDS, 3 * SYNC_SECONDS)
        with suppress(AssertionError):  # the judge describes the difference
            wait_until(
                lambda: is_settled(self.server.port, 1), "the bot has nothing to do", seconds=SETTLE_SECONDS
            )
        if (code := self.bot.stop()) != 0:
            raise RuntimeError(f"the bot ended with exit code {code}:\n{self.bot.tail()}")
        self.town.stop()
        return judge_meetup(self.linked, self.world, everything([self.server.port]))
