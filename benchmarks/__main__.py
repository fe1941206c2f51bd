"""`python -m benchmarks [NAME…] [--json FILE]`: run all benchmarks, or the named ones."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from benchmarks import (
    audit,
    batches,
    bulk,
    cluster,
    concurrency,
    discord,
    gateway,
    infer,
    latency,
    meetup,
    messaging,
    records,
    registry,
)
from benchmarks.measuring import Result
from benchmarks.placement import Placement, placed
from benchmarks.report import json_line, summarise
from keywright.testing import RedisServer

ON_ONE_SERVER: dict[str, Callable[[RedisServer], Iterator[Result]]] = {
    "batches": batches.measure,
    "concurrency": concurrency.measure,
    "latency": latency.measure,
    "bulk": bulk.measure,
    "records": records.measure,
    "discord": discord.measure,
    "meetup": meetup.measure,
    "registry": registry.measure,
    "audit": audit.measure,
}
PLACING_THEMSELVES = ("latency", "registry")
ON_THEIR_OWN = {
    "cluster": cluster.measure,
    "messaging": messaging.measure,
    "gateway": gateway.measure,
    "infer": infer.measure,
}
NAMES = (*ON_ONE_SERVER, *ON_THEIR_OWN)


def main() -> None:
    options = _options()
    names = options.names or NAMES
    results = []
    lines = []
    # Nothing is written to disk: the benchmark compares clients.
    with RedisServer(options={"appendonly": "no"}) as server:
        for result in _measured(names, server, options.placement):
            results.append(result)
            lines.append(json_line(result))
            print(lines[-1], flush=True)
        version = server.text("INFO", "server").split("redis_version:")[1].split()[0]
    if options.json:
        options.json.write_text("".join(f"{line}\n" for line in lines))
    summarise(results, f"Redis {version}")


def _measured(names: Sequence[str], server: RedisServer, placement: Placement) -> Iterator[Result]:
    for name in names:
        if name in ON_THEIR_OWN:
            yield from ON_THEIR_OWN[name]()
        elif name in PLACING_THEMSELVES:
            yield from ON_ONE_SERVER[name](server)
        else:
            with placed(placement, server):
                yield from (_labelled(result, placement) for result in ON_ONE_SERVER[name](server))


def _labelled(result: Result, placement: Placement) -> Result:
    if placement is Placement.FREE:
        return result
    return result._replace(subject=f"{result.subject}, {placement.value}")


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description="Keywright next to its peers.")
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"one of {', '.join(NAMES)}; all if none")
    parser.add_argument("--json", type=Path, metavar="FILE", help="also save the lines to a file")
    parser.add_argument(
        "--placement",
        choices=[placement.name.lower() for placement in Placement],
        default="free",
        help="pin client and server to the same core or apart; latency and registry try all",
    )
    options = parser.parse_args()
    options.placement = Placement[options.placement.upper()]
    for name in options.names:
        if name not in NAMES:
            parser.error(f"there is no benchmark {name!r}: choose from {', '.join(NAMES)}")
    return options


if __name__ == "__main__":
    main()
