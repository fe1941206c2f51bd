"""A publisher and workers over RabbitMQ, and over Redis streams."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress

from keywright.testing import LOOPBACK, Proxy, RedisServer, wait_until
from keywright_messaging.testing.rabbitmq import RabbitServer
from soak.faults import memory_fault, program_faults, proxy_faults, relay_faults, server_faults
from soak.judge.findings import Findings
from soak.judge.logs import OK, attempts
from soak.judge.messages import handled, judge_messages, queued_in_rabbitmq, queued_in_streams
from soak.loads.publisher import EVENT, SETTINGS
from soak.relay import Relay
from soak.scenario import Fault, Scenario

__all__ = ["RabbitScenario", "StreamsScenario"]

DRAIN_SECONDS = 90.0


class MessagingScenario(Scenario):
    """A publisher, two workers, and the judge of their logs."""

    def start_loads(self, url: str) -> None:
        self.published, self.worked = self.folder / "published", self.folder / "worked"
        self.publisher = self.program(
            url, str(self.published), name="publisher", module="soak.loads.publisher"
        )
        self.workers = [
            self.program(url, str(self.worked), name=f"worker {number}", module="soak.loads.worker")
            for number in (1, 2)
        ]

    def load_faults(self) -> list[Fault]:
        return [*program_faults(self, self.workers[0]), *program_faults(self, self.publisher)]

    def judged(self, queued: Callable[[], set[str]]) -> Findings:
        """Stop publishing, let the workers empty the queue, stop them, and judge."""
        self.publisher.stop()
        sent = {each.item for each in attempts([self.published]) if each.outcome == OK}
        with suppress(AssertionError):  # the judge looks for the rest in the queue
            wait_until(
                lambda: not sent - handled(self.worked).keys(), "all are handled", seconds=DRAIN_SECONDS
            )
        for worker in self.workers:
            worker.stop()
        return judge_messages(self.published, self.worked, queued())


class RabbitScenario(MessagingScenario):
    title = "publisher and workers over RabbitMQ"

    def start(self) -> None:
        self.server = self.stack.enter_context(RabbitServer())
        self.relay = self.stack.enter_context(Relay(self.server.port))
        self.start_loads(f"amqp://guest:guest@{LOOPBACK}:{self.relay.port}/%2F")

    def faults(self) -> Sequence[Fault]:
        return [
            *server_faults(self, "RabbitMQ", self.server),
            *relay_faults(self, self.relay),
            Fault("connections closed by the broker", self.server.close_connections),
            *self.load_faults(),
        ]

    def judge(self) -> Findings:
        queue = f"{SETTINGS.group}:{EVENT}"
        names = self.server.evaluate(
            '[binary_to_list(element(4, amqqueue:get_name(Q))) || Q <- rabbit_amqqueue:list(<<"/">>)]'
        )
        queues = [name for name in names.replace('"', "").strip("[]").split(",") if name.startswith(queue)]
        return self.judged(lambda: queued_in_rabbitmq(self.server.url, *queues))


class StreamsScenario(MessagingScenario):
    title = "publisher and workers over Redis streams (appendfsync always)"

    def start(self) -> None:
        self.server = self.stack.enter_context(RedisServer(tcp=True, options={"appendfsync": "always"}))
        self.proxy = self.stack.enter_context(Proxy(self.server.tcp_url))
        self.start_loads(self.proxy.url)

    def faults(self) -> Sequence[Fault]:
        return [
            *server_faults(self, "Redis", self.server),
            *proxy_faults(self, self.proxy),
            memory_fault(self, self.server),
            *self.load_faults(),
        ]

    def judge(self) -> Findings:
        return self.judged(lambda: queued_in_streams(self.server.port, EVENT, SETTINGS.group))
