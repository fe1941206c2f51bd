"""The registry service with Redis and PostgreSQL."""

from __future__ import annotations

from collections.abc import Sequence

from keywright.testing import Proxy, RedisServer
from keywright_registry.testing.postgres import PostgresServer
from soak.faults import memory_fault, program_faults, proxy_faults, server_faults
from soak.judge.findings import Findings
from soak.judge.raw import everything
from soak.judge.registry import judge_registry
from soak.ports import service_port
from soak.scenario import Fault, Scenario

__all__ = ["RegistryScenario"]


class RegistryScenario(Scenario):
    title = "registry service, Redis (appendfsync always) and PostgreSQL"

    def start(self) -> None:
        self.redis = self.stack.enter_context(RedisServer(tcp=True, options={"appendfsync": "always"}))
        self.proxy = self.stack.enter_context(Proxy(self.redis.tcp_url))
        self.postgres = self.stack.enter_context(PostgresServer())
        self.database = self.postgres.url_of(self.postgres.make_database())
        port = service_port()
        self.service = self.program(
            *("registry", "serve", "--port", str(port), "--flush-every", "2"),
            name="registry",
            module="keywright",
            environment={"REDIS_URL": self.proxy.url, "KEYWRIGHT_REGISTRY_DATABASE": self.database},
            ready=r"listening on (http://\S+)",
        )
        self.notified = self.folder / "notified"
        self.notifier = self.program(
            f"http://127.0.0.1:{port}", str(self.notified), name="notifier", module="soak.loads.registry"
        )

    def faults(self) -> Sequence[Fault]:
        return [
            *server_faults(self, "PostgreSQL", self.postgres),
            *program_faults(self, self.service),
            *server_faults(self, "Redis", self.redis),
            *proxy_faults(self, self.proxy),
            memory_fault(self, self.redis),
        ]

    def judge(self) -> Findings:
        for program in (self.notifier, self.service):
            if (code := program.stop()) != 0:
                raise RuntimeError(f"{program.name} ended with exit code {code}:\n{program.tail()}")
        return judge_registry(self.notified, everything([self.redis.port]), self.database)
