"""`keywright export`: the keys of a model as lines of JSON."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable
from enum import Enum
from pathlib import Path
from typing import Annotated

import typer

from keywright.cli.audit import FullSpeedOption, MaxRateOption, PrefixOption
from keywright.cli.files import check_writable
from keywright.cli.output import as_json, echo, echo_json, note
from keywright.cli.progress import Meter
from keywright.cli.targets import (
    DatabaseOption,
    EmbeddedOption,
    ModelName,
    UrlOption,
    connected,
    one_part,
    proved_model,
    server_url,
)
from keywright.errors import UsageError
from keywright.tools.databases import DatabasePart
from keywright.tools.pace import Pace
from keywright.tools.private_files import overwrite_private
from keywright.tools.transfer import Exported, export_keys

__all__ = ["export"]


class ExportFormat(Enum):
    TEXT = "text"
    JSON = "json"


def export(
    model: ModelName,
    url: UrlOption = None,
    embedded: EmbeddedOption = None,
    database: DatabaseOption = None,
    prefix: PrefixOption = None,
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", help="The file to write, else standard output.", show_default=False),
    ] = None,
    with_secrets: Annotated[
        bool, typer.Option("--with-secrets", help="Export secrets in clear, too. Keep the file safe.")
    ] = False,
    max_rate: MaxRateOption = None,
    full_speed: FullSpeedOption = False,
    form: Annotated[
        ExportFormat, typer.Option("--format", help="How to print the counts, on standard error.")
    ] = ExportFormat.TEXT,
) -> None:
    """Export the keys of a model as lines of JSON, for `keywright import`. Read only.

    Each line has the template, the decoded variables and value, the stored bytes and the expiry of one key.
    It is not a snapshot: stop the writers if keys must fit together. Sealed values stay sealed. Keys that
    hold secrets in clear are left out without --with-secrets, and so are unknown keys and those of other
    versions. The file is for its owner only, and complete or not there.

    Exits with 1 when keys were left out because they are not stored as declared or too large, 2 for a wrong
    invocation, 3 when it could not run.

    Examples:
        keywright export shop.schema:shop --url redis://localhost:6379/0 -o shop.jsonl
        keywright export shop.schema:shop | gzip > shop.jsonl.gz
    """
    loaded, target = proved_model(model, prefix), server_url(url, embedded)
    pace = Pace(max_rate, full_speed)
    check_writable(output)
    part = one_part(loaded, target, database)
    if output is None:
        done = asyncio.run(_run(part, target, prefix, _to_stdout, with_secrets, pace))
    else:
        half = output.with_name(f".{output.name}.part")
        try:
            with overwrite_private(half) as file:
                done = asyncio.run(_run(part, target, prefix, file.write, with_secrets, pace))
                file.flush()
                os.fsync(file.fileno())
            half.replace(output)
        except OSError as error:
            raise UsageError(f"{output} cannot be written: {error.strerror}. Name another file.") from error
        finally:
            half.unlink(missing_ok=True)
    _report(done, form)
    if done.failed:
        raise typer.Exit(1)


def _to_stdout(line: bytes) -> None:
    echo_json(line, nl=False)


async def _run(
    part: DatabasePart,
    url: str,
    prefix: str | None,
    write: Callable[[bytes], object],
    with_secrets: bool,
    pace: Pace,
) -> Exported:
    with Meter() as meter:
        async with connected(url, part, prefix) as db:
            return await export_keys(
                db,
                part.model.name,
                part.model.spaces,
                write,
                with_secrets=with_secrets,
                pace=pace,
                on_progress=meter.show,
            )


def _report(done: Exported, form: ExportFormat) -> None:
    if form is ExportFormat.JSON:
        data = done._asdict() | {"examples": [each._asdict() for each in done.examples]}
        echo(*as_json(data).split("\n"), err=True)
        return
    note(f"{sum(done.keys.values()):,} keys exported")
    for reason, count in sorted(done.left_out.items()):
        echo(f"left out: {count:,} keys: {reason}", err=True)
    for each in done.examples:
        echo(f"  {each.key}: {each.reason}", err=True)
