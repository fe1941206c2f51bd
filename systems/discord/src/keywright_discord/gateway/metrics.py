"""The metrics of a gateway, under the names of the reference gateway where it has them, and its health.

Counts are kept in dictionaries, and become Prometheus metrics only when they are scraped. Counters keep the
reference's names, without `_total`, so that its dashboards work; that is why they have no type.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence

import msgspec
from prometheus_client import Histogram
from prometheus_client.core import GaugeMetricFamily, UntypedMetricFamily
from prometheus_client.metrics_core import Metric
from prometheus_client.registry import Collector

from keywright_service.health import Health
from keywright_service.metrics import Metrics

__all__ = ["GatewayHealth", "Monitor", "ShardHealth"]

PING_BUCKETS_MS = (10, 25, 50, 75, 100, 150, 200, 300, 500, 1000, 2500, 5000)


class ShardHealth(msgspec.Struct, frozen=True):
    """The state of a shard. In the phase `standby` another process runs it."""

    id: int
    phase: str
    backlog: int
    latency_ms: float | None = None
    refills: int = 0
    """How often a new session was begun to fill the cache again."""
    refill_reason: str = ""
    """Why, the last time."""
    trouble: str = ""
    """Why the cache is not reliable; empty if it is."""

    @property
    def well(self) -> bool:
        return self.phase in ("ready", "standby") and not self.trouble


class GatewayHealth(Health, frozen=True):
    """Healthy if every shard that this process runs is ready, and Redis and the broker answer."""

    shards: list[ShardHealth]
    failing: list[str] = msgspec.field(default_factory=list)
    """The servers that do not answer: redis, broker."""

    def public(self) -> Health:
        return self  # the metrics have the same figures


class Monitor(Metrics, Collector):
    """The metrics of one process. `shards` returns the state of each shard."""

    def __init__(self) -> None:
        super().__init__()
        self.shards: Callable[[], list[ShardHealth]] = list
        self.total_shards = 0
        self._counts: dict[str, Counter[tuple[str, ...]]] = {name: Counter() for name in _COUNTERS}
        self.registry.register(self)
        self._ping = Histogram(
            "gateway_ping",
            "Milliseconds until a heartbeat is acknowledged.",
            ["id"],
            buckets=PING_BUCKETS_MS,
            registry=self.registry,
        )

    def received(self, shard: int, op: int, event: str | None) -> None:
        self._counts["gateway_packets_received"][event or "", str(op), str(shard)] += 1

    def sent(self, shard: int, op: int) -> None:
        self._counts["gateway_packets_sent"]["", str(int(op)), str(shard)] += 1

    def published(self, shard: int, event: str, number: int) -> None:
        self._counts["gateway_events_published"][event, str(shard)] += number

    def unpublished(self, shard: int, event: str) -> None:
        self._counts["gateway_events_unpublished"][event, str(shard)] += 1

    def refused(self, shard: int) -> None:
        self._counts["gateway_cache_refused"][(str(shard),)] += 1

    def dead_letter(self, event: str) -> None:
        self._counts["gateway_dead_letters"][(event,)] += 1

    def rate_limited(self, shard: int, op: int) -> None:
        self._counts["gateway_rate_limited"][str(int(op)), str(shard)] += 1

    def closed(self, shard: int, code: int | None) -> None:
        self._counts["gateway_connections_closed"][str(shard), str(code or "")] += 1

    def ping(self, shard: int, seconds: float) -> None:
        self._ping.labels(str(shard)).observe(seconds * 1000)

    def health(self, failing: Sequence[str] = ()) -> GatewayHealth:
        shards = self.shards()
        well = bool(shards) and all(each.well for each in shards)
        return GatewayHealth(well and not failing, shards, list(failing))

    def collect(self) -> Iterable[Metric]:
        for name, (text, labels) in _COUNTERS.items():
            family = UntypedMetricFamily(name, text, labels=labels)
            for values, count in self._counts[name].items():
                family.add_metric(values, count)
            yield family
        yield from self._gauges()

    def describe(self) -> Iterable[Metric]:
        return []

    def _gauges(self) -> Iterable[Metric]:
        alive = GaugeMetricFamily("gateway_shards_alive", "1 while a shard is ready.", labels=["id"])
        backlog = GaugeMetricFamily(
            "gateway_backlog", "Events received that are not with the broker yet.", labels=["id"]
        )
        refills = GaugeMetricFamily(
            "gateway_cache_refills", "New sessions that fill a lost cache again.", labels=["id"]
        )
        for shard in self.shards():
            refills.add_metric([str(shard.id)], shard.refills)
            alive.add_metric([str(shard.id)], float(shard.phase == "ready"))
            backlog.add_metric([str(shard.id)], shard.backlog)
        yield alive
        yield backlog
        yield refills
        yield GaugeMetricFamily("gateway_total_shards", "Shards of the bot.", value=self.total_shards)


_COUNTERS = {
    "gateway_packets_received": ("Payloads from Discord.", ["t", "op", "shard"]),
    "gateway_packets_sent": ("Payloads to Discord.", ["t", "op", "shard"]),
    "gateway_events_published": ("Events that the broker has.", ["t", "shard"]),
    "gateway_events_unpublished": ("Events that the broker does not take.", ["t", "shard"]),
    "gateway_cache_refused": ("Events that the cache could not apply.", ["shard"]),
    "gateway_dead_letters": ("Packets of workers that were not sent.", ["event"]),
    "gateway_rate_limited": ("Requests of workers that Discord refused for now.", ["op", "shard"]),
    "gateway_connections_closed": ("Ends of connections, by close code.", ["shard", "code"]),
}
