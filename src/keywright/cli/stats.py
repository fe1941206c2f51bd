"""`keywright stats`: how many keys of each template there are, once or as they change."""

from __future__ import annotations

import asyncio
from enum import Enum
from typing import Annotated

import typer
from rich.console import Console
from rich.live import Live
from rich.table import Table
from rich.text import Text

from keywright.cli.audit import MaxRateOption, PrefixOption, parse_share
from keywright.cli.infer import model_on_the_fly
from keywright.cli.output import as_json, echo_json, printable
from keywright.cli.targets import (
    MODEL_HELP,
    EmbeddedOption,
    UnprovedOption,
    UrlOption,
    bindings_of,
    proved_model,
    server_url,
)
from keywright.engine import aconnect
from keywright.errors import UsageError
from keywright.tools.audit.formats.units import estimated_bytes, estimated_share
from keywright.tools.model import Model
from keywright.tools.stats import Snapshot, snapshots, take_snapshot

__all__ = ["stats"]


class StatsFormat(Enum):
    TEXT = "text"
    JSON = "json"


def stats(
    model: Annotated[
        str | None,
        typer.Argument(
            metavar="[MODEL]",
            help=f"{MODEL_HELP} Without one, it is inferred from the server.",
            show_default=False,
        ),
    ] = None,
    url: UrlOption = None,
    embedded: EmbeddedOption = None,
    prefix: PrefixOption = None,
    watch: Annotated[bool, typer.Option("--watch", help="Go on until interrupted, with rates.")] = False,
    once: Annotated[bool, typer.Option("--once", help="One pass, one table: the default.")] = False,
    interval: Annotated[float, typer.Option(min=0.0, help="Seconds between two passes.")] = 2.0,
    sample: Annotated[str, typer.Option(help="The share of keys to measure: 0.02 or 2%.")] = "2%",
    max_rate: MaxRateOption = None,
    form: Annotated[
        StatsFormat, typer.Option("--format", help="How to print: for people, or for programs.")
    ] = StatsFormat.TEXT,
    unproved: UnprovedOption = False,
) -> None:
    """Count keys by template, with bytes and expiries from a sample. Only reads, with SCAN.

    With --watch the table is renewed after every pass and shows how fast each count changes.

    Exits with 2 for a wrong invocation, 3 when it could not run.
    """
    if watch and (once or form is StatsFormat.JSON):
        raise UsageError("--watch cannot be combined with --once or --format json. Drop one of them.")
    target = server_url(url, embedded)
    share = parse_share(sample)
    if model is not None:
        loaded = proved_model(model, prefix, unproved=unproved)
    elif prefix is None:
        loaded = model_on_the_fly(target, max_rate)
    else:
        raise UsageError("--prefix needs a MODEL. Name one, or drop --prefix.")
    if watch:
        asyncio.run(_watch(loaded, target, prefix, share, max_rate, interval))
        return
    snapshot = asyncio.run(_once(loaded, target, prefix, share, max_rate))
    if form is StatsFormat.JSON:
        echo_json(as_json(snapshot.as_data()))
    else:
        Console().print(_table(snapshot))


async def _once(model: Model, url: str, prefix: str | None, sample: float, max_rate: int | None) -> Snapshot:
    async with aconnect(url, *bindings_of(model.spaces, prefix)) as db:
        return await take_snapshot(db, model, sample=sample, max_rate=max_rate)


async def _watch(
    model: Model, url: str, prefix: str | None, sample: float, max_rate: int | None, interval: float
) -> None:
    async with aconnect(url, *bindings_of(model.spaces, prefix)) as db:
        with Live(auto_refresh=False) as live:
            async for snapshot in snapshots(db, model, sample=sample, max_rate=max_rate):
                live.update(_table(snapshot), refresh=True)
                await asyncio.sleep(interval)


def _table(snapshot: Snapshot) -> Table:
    title = f"{printable(snapshot.model)}: {snapshot.names:,} keys, {snapshot.unknown:,} unknown"
    if snapshot.outside:
        title += f"; {snapshot.outside:,} outside the prefix"
    table = Table("template", title=title, title_justify="left")
    for heading in ("keys", "keys/s", "bytes", "expire"):
        table.add_column(heading, justify="right")
    for count in sorted(snapshot.counts, key=lambda count: (-count.keys, count.template)):
        rate = "" if count.rate is None else f"{count.rate:+,.1f}"
        table.add_row(
            Text(printable(count.template)),
            f"{count.keys:,}",
            rate,
            estimated_bytes(count.bytes, count.bytes_error),
            estimated_share(count.expiring, count.expiring_error),
        )
    return table
