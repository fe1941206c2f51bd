"""Open Mod between a simulated Reddit and Redis."""

from __future__ import annotations

import re
import signal
import time
from collections.abc import Sequence
from contextlib import suppress

from keywright.testing import Proxy, RedisServer, wait_until
from soak.faults import memory_fault, program_faults, proxy_faults, relay_faults, server_faults
from soak.judge.findings import Findings
from soak.judge.openmod import PREFIX, judge_openmod, pending_events
from soak.judge.raw import everything
from soak.programs import Program
from soak.relay import Relay
from soak.scenario import Fault, Scenario

__all__ = ["OpenModScenario"]

EXPORTED = re.compile(r"^export (\w+)=(.*)$", re.MULTILINE)
QUIET_SECONDS = 8.0
DRAIN_SECONDS = 120.0


class OpenModScenario(Scenario):
    title = "Open Mod, simulated Reddit, one Redis (appendfsync always)"

    def start(self) -> None:
        self.server = self.stack.enter_context(RedisServer(tcp=True, options={"appendfsync": "always"}))
        self.proxy = self.stack.enter_context(Proxy(self.server.tcp_url))
        self.world = self.folder / "world.json"
        self.reddit = self.program(str(self.world), name="reddit", module="soak.loads.reddit", steady=False)
        variables = dict(EXPORTED.findall(self.reddit.log.read_text()))
        address = variables["REDDIT_URL"]
        self.relay = self.stack.enter_context(Relay(int(address.rpartition(":")[2])))
        relayed = f"http://127.0.0.1:{self.relay.port}"
        self.service: Program = self.program(
            *("openmod", "serve"),
            name="open mod",
            module="keywright",
            environment={
                **variables,
                "REDDIT_URL": relayed,
                "REDDIT_OAUTH_URL": relayed,
                "REDIS_URL": self.proxy.url,
                "OPENMOD_PREFIX": PREFIX,
                "OPENMOD_POLL": "1s",
                "OPENMOD_ENFORCE": "10s",
                "OPENMOD_HOLD": "15s",
            },
            ready=r"watching r/",
        )

    def faults(self) -> Sequence[Fault]:
        to_reddit = [Fault(f"{name} (Reddit)", inject) for name, inject, _ in relay_faults(self, self.relay)]
        return [
            *program_faults(self, self.service),
            *server_faults(self, "Redis", self.server),
            *to_reddit,
            *proxy_faults(self, self.proxy),
            memory_fault(self, self.server),
        ]

    def judge(self) -> Findings:
        """End the actions on Reddit, wait until the service has nothing left to do, and compare the two."""
        self.reddit.signal(signal.SIGUSR1)
        quiet_since = time.monotonic()

        def drained() -> bool:
            nonlocal quiet_since
            if pending_events(self.server.port):
                quiet_since = time.monotonic()
            return time.monotonic() - quiet_since > QUIET_SECONDS

        with suppress(AssertionError):  # the judge counts the remaining events
            wait_until(drained, "every event is handled", seconds=DRAIN_SECONDS)
        if (code := self.service.stop()) != 0:
            raise RuntimeError(f"open mod ended with exit code {code}:\n{self.service.tail()}")
        self.reddit.stop()
        return judge_openmod(self.world, everything([self.server.port]))
