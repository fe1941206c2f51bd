"""`keywright stats`: how many keys of each template there are, once or as they change."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Iterator, Sequence
from contextlib import AsyncExitStack
from enum import Enum
from typing import Annotated

import typer
from rich.live import Live
from rich.text import Text

from keywright.cli.audit import FullSpeedOption, JobsOption, MaxRateOption, parse_share, planned
from keywright.cli.infer import inferred_on_the_fly
from keywright.cli.output import as_json, echo, echo_json
from keywright.cli.paragraphs import laid_out
from keywright.cli.progress import Meter
from keywright.cli.targets import (
    MODEL_HELP,
    ChecksumOption,
    DatabaseOption,
    EmbeddedOption,
    PrefixOption,
    RdbOption,
    UnprovedOption,
    UrlOption,
    connected,
    database_named,
    default_model,
    is_dump,
    model_parts,
    proved_model,
    readable_part,
    source_of,
)
from keywright.cli.terminal import is_coloured, rich_console, width_of
from keywright.errors import UsageError
from keywright.tools.audit.formats.units import estimated_bytes, estimated_share
from keywright.tools.databases import DatabasePart
from keywright.tools.jobs import JobPlan
from keywright.tools.layout import Block, Column, Line, Meaning, Table
from keywright.tools.pace import Pace
from keywright.tools.stats import Count, Snapshot, snapshots, take_snapshot

__all__ = ["stats"]

_COLUMNS = (
    Column("template", flexible=True, meaning=Meaning.NAME),
    Column("keys", right=True),
    Column("keys/s", right=True),
    Column("bytes", right=True),
    Column("expire", right=True),
)


class StatsFormat(Enum):
    TEXT = "text"
    JSON = "json"


def stats(
    model: Annotated[
        str | None,
        typer.Argument(
            metavar="MODEL",
            help=f"{MODEL_HELP} Without both it is inferred from the keys.",
            show_default=False,
        ),
    ] = None,
    url: UrlOption = None,
    embedded: EmbeddedOption = None,
    rdb: RdbOption = None,
    checksum: ChecksumOption = False,
    database: DatabaseOption = None,
    prefix: PrefixOption = None,
    watch: Annotated[bool, typer.Option("--watch", help="Go on until interrupted, with rates.")] = False,
    once: Annotated[bool, typer.Option("--once", help="One pass, one table: the default.")] = False,
    interval: Annotated[
        float, typer.Option(min=0.0, metavar="SECONDS", help="The pause between two passes.")
    ] = 2.0,
    sample: Annotated[
        str, typer.Option(metavar="SHARE", help="The share of keys to measure: 0.02 or 2%.")
    ] = "2%",
    max_rate: MaxRateOption = None,
    full_speed: FullSpeedOption = False,
    jobs: JobsOption = 1,
    form: Annotated[
        StatsFormat, typer.Option("--format", help="How to print: for people, or for programs.")
    ] = StatsFormat.TEXT,
    unproved: UnprovedOption = False,
) -> None:
    """Count keys by template, with bytes and expiries from a sample. Only reads.

    With --watch the table is renewed after every pass and shows how fast each count changes. Keyspaces of
    several databases have a table each; without a MODEL all databases that have keys are read.

    Exits with 2 for a wrong invocation, 3 when it could not run.

    Examples:
        keywright stats shop.schema:shop --url redis://localhost:6379/0
        keywright stats shop.schema:shop --watch --interval 5
        keywright stats --url redis://localhost:6379/0
    """
    if watch and (once or form is StatsFormat.JSON):
        raise UsageError("--watch cannot be combined with --once or --format json. Drop one of them.")
    target = source_of(url, embedded, rdb, checksum=checksum)
    if watch and is_dump(target):
        raise UsageError("a dump does not change. Leave out --watch.")
    share, pace = parse_share(sample), Pace(max_rate, full_speed)
    model = model or default_model()
    if model is None and jobs > 1:
        raise UsageError("--jobs needs a MODEL, which each process imports. Name one, or drop --jobs.")
    if model is not None:
        loaded = proved_model(model, prefix, unproved=unproved)
    elif prefix is None:
        loaded, _ = inferred_on_the_fly(target, pace, database_named(target, database))
    else:
        raise UsageError("--prefix needs a MODEL. Name one, or drop --prefix.")
    parts = model_parts(loaded, target, database)
    plans = [planned(jobs, model or "", target, prefix, part.database) for part in parts]
    if watch:
        asyncio.run(_watch(parts, target, prefix, share, pace, plans, interval))
        return
    found = asyncio.run(_once(parts, target, prefix, share, pace, plans))
    if form is StatsFormat.JSON:
        listed = [snapshot.as_data() for snapshot in found]
        echo_json(as_json(listed[0] if len(listed) == 1 else {"model": loaded.name, "databases": listed}))
    else:
        echo(*_blocks(found))


async def _once(
    parts: Sequence[DatabasePart],
    url: str,
    prefix: str | None,
    sample: float,
    pace: Pace,
    plans: Sequence[JobPlan | None],
) -> list[Snapshot]:
    found = []
    for part, plan in zip(parts, plans, strict=True):
        with Meter() as meter:
            async with readable_part(url, part, prefix) as db:
                found.append(
                    await take_snapshot(
                        db,
                        part.model,
                        sample=sample,
                        pace=pace,
                        database=part.declared,
                        on_progress=meter.show,
                        plan=plan,
                    )
                )
    return found


async def _watch(
    parts: Sequence[DatabasePart],
    url: str,
    prefix: str | None,
    sample: float,
    pace: Pace,
    plans: Sequence[JobPlan | None],
    interval: float,
) -> None:
    async with AsyncExitStack() as opened:
        passes = []
        for part, plan in zip(parts, plans, strict=True):
            db = await opened.enter_async_context(connected(url, part, prefix))
            passes.append(
                snapshots(db, part.model, sample=sample, pace=pace, database=part.declared, plan=plan)
            )
        live = opened.enter_context(Live(console=rich_console(sys.stdout), auto_refresh=False))
        while True:
            blocks = _blocks([await anext(each) for each in passes])
            lines = laid_out(blocks, width_of(sys.stdout), coloured=is_coloured(sys.stdout))
            live.update(Text.from_ansi("\n".join(lines)), refresh=True)
            await asyncio.sleep(interval)


def _blocks(found: Sequence[Snapshot]) -> Iterator[Block]:
    for number, snapshot in enumerate(found):
        if number:
            yield ""
        yield from _of_database(snapshot)


def _of_database(snapshot: Snapshot) -> Iterator[Block]:
    number = "" if snapshot.database is None else f", database {snapshot.database}"
    outside = f"; {snapshot.outside:,} outside the prefix" if snapshot.outside else ""
    numbers = f"{number}: {snapshot.names:,} keys, {snapshot.unknown:,} unknown{outside}"
    yield Line(Meaning.HEADING(snapshot.model), numbers)
    yield ""
    yield _table(snapshot)
    for count in snapshot.counts:
        yield from (Line(f"{count.template}: {words}", hang=2) for words in _groups(count))


def _table(snapshot: Snapshot) -> Table:
    counts = sorted(snapshot.counts, key=lambda count: (-count.keys, count.template))
    with_rates = any(count.rate is not None for count in counts)
    return Table(
        [column for column in _COLUMNS if with_rates or column.heading != "keys/s"],
        [
            [
                count.template,
                f"{count.keys:,}",
                *(["" if count.rate is None else f"{count.rate:+,.1f}"] if with_rates else []),
                estimated_bytes(count.bytes, count.bytes_error),
                estimated_share(count.expiring, count.expiring_error),
            ]
            for count in counts
        ],
    )


def _groups(count: Count) -> Iterator[str]:
    for name, group in sorted(count.groups.items()):
        lag = "unknown" if group.lag is None else format(group.lag, ",")
        yield f"group {name}: {group.pending:,} pending, lag {lag}"
