"""All benchmarks, by name, and how one run goes through them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import nullcontext
from importlib import import_module
from time import perf_counter
from typing import NamedTuple

from benchmarks.lines import Line, Part, load_now, this_run
from benchmarks.measuring import Effort
from benchmarks.other_clients import missing
from benchmarks.placement import Placement, placed
from keywright.testing import RedisServer

__all__ = ["BENCHMARKS", "Benchmark", "run"]


class Benchmark(NamedTuple):
    """One module. `alone` starts its own servers; `places` tries all placements itself."""

    name: str
    module: str
    about: str
    alone: bool = False
    places: bool = False
    quick: bool = True


BENCHMARKS = {
    each.name: each
    for each in (
        Benchmark("latency", "latency", "one typed GET at a time", places=True),
        Benchmark("batches", "batches", "1,000 calls in a batch: the main read and write of every kind"),
        Benchmark("sizes", "batch_sizes", "batches of 1 to 100,000 calls"),
        Benchmark("concurrency", "concurrency", "1 to 10,000 typed GETs at the same time"),
        Benchmark("bulk", "bulk", "10,000 values by name"),
        Benchmark("records", "records", "1,000 records by name"),
        Benchmark("cluster", "cluster", "batches on clusters of 3 to 9 masters", alone=True),
        Benchmark("discord", "discord", "a Discord cache: a large guild, everyday events, hydration, memory"),
        Benchmark("guilds", "guilds", "a Discord guild of 10 to 100,000 members"),
        Benchmark("registry", "registry", "a container registry's cache", places=True),
        Benchmark("meetup", "meetup", "a bot that synchronises events", quick=False),
        Benchmark("messaging", "messaging", "messages on RabbitMQ and Redis", alone=True, quick=False),
        Benchmark("gateway", "gateway", "Discord to worker, in four processes", alone=True, quick=False),
        Benchmark("audit", "audit", "an audit, and another client beside it"),
        Benchmark("rdb", "rdb", "reading and auditing a dump"),
        Benchmark("jobs", "jobs", "an audit by 1, 2 and 4 processes", alone=True),
        Benchmark("keyspaces", "keyspaces", "audit, infer and survey of growing keyspaces"),
        Benchmark("infer", "infer", "inferred declarations beside the truth", alone=True, quick=False),
    )
}


def run(names: Sequence[str], effort: Effort, placement: Placement) -> Iterator[Line]:
    """Run benchmarks on one private server that writes nothing to disk: they compare clients.

    If one fails the others still run; its error is raised at the end.
    """
    errors: list[Exception] = []
    with RedisServer(tcp=True, options={"appendonly": "no"}) as server:
        version = server.text("INFO", "server").split("redis_version:")[1].split()[0]
        yield this_run(f"Redis {version}", effort)
        for name in names:
            yield from _measured(BENCHMARKS[name], server, effort, placement, errors)
    if errors:
        raise ExceptionGroup("not every benchmark could be run", errors)


def _measured(
    each: Benchmark, server: RedisServer, effort: Effort, placement: Placement, errors: list[Exception]
) -> Iterator[Line]:
    module = import_module(f"benchmarks.{each.module}")
    before, began = load_now(), perf_counter()
    free = each.alone or each.places
    failed = None
    try:
        with nullcontext() if free else placed(placement, server):
            yield from module.measure(effort) if each.alone else module.measure(server, effort)
    except Exception as error:  # noqa: BLE001  # raised after the others
        errors.append(error)
        failed = type(error).__name__
    if not each.alone:
        server.call("FLUSHALL")
    yield Part(
        benchmark=each.name,
        placement="every placement" if each.places else (Placement.FREE if free else placement).value,
        seconds=round(perf_counter() - began, 1),
        load_before=before,
        load_after=load_now(),
        left_out=missing(),
        failed=failed,
    )
