"""`keywright get`: one key, decoded, by its name or by the masked name of an audit's report."""

from __future__ import annotations

import asyncio
import os
from enum import Enum
from pathlib import Path
from typing import Annotated

import typer

from keywright.cli.audit import FullSpeedOption, MaxRateOption, PrefixOption
from keywright.cli.output import as_json, echo, echo_error, echo_json, note, warn
from keywright.cli.progress import Meter
from keywright.cli.targets import (
    ChecksumOption,
    DatabaseOption,
    EmbeddedOption,
    OptionalModel,
    RdbOption,
    UnprovedOption,
    UrlOption,
    connected,
    default_model,
    one_part,
    proved_model,
    readable_part,
    source_of,
)
from keywright.errors import UsageError
from keywright.tools.databases import DatabasePart
from keywright.tools.describe.inspection import LIMIT, Inspection, inspect
from keywright.tools.describe.plain import inspected
from keywright.tools.masked_names import MaskedName, masked_in, resolved
from keywright.tools.pace import Pace

__all__ = ["get"]


class GetFormat(Enum):
    JSON = "json"


def get(
    model: OptionalModel = None,
    key: Annotated[
        str | None,
        typer.Argument(
            metavar="KEY",
            help="The full name of the key, as Redis has it; with --in a masked one, as '#f1ec88'.",
            show_default=False,
        ),
    ] = None,
    url: UrlOption = None,
    embedded: EmbeddedOption = None,
    rdb: RdbOption = None,
    checksum: ChecksumOption = False,
    database: DatabaseOption = None,
    prefix: PrefixOption = None,
    limit: Annotated[int, typer.Option(min=1, help="The most entries of a collection to read.")] = LIMIT,
    report: Annotated[
        Path | None,
        typer.Option(
            "--in",
            metavar="FILE",
            help="The report of an audit, of --format json, in which the KEY is masked. It names the model.",
            show_default=False,
        ),
    ] = None,
    max_rate: MaxRateOption = None,
    full_speed: FullSpeedOption = False,
    form: Annotated[
        GetFormat, typer.Option("--format", help="How to print; there is only one.", show_default=False)
    ] = GetFormat.JSON,
    unproved: UnprovedOption = False,
) -> None:
    """Print the decoded value of a key as JSON. Read only.

    Nothing on the server changes: no expiry is renewed, no older shape is upgraded. Secrets are printed as
    "(secret)", sealed values as "(sealed)", and values that are declared sealed and are not as "(secret,
    stored in clear)". With KEYWRIGHT_SEAL_KEYS seals are checked; the values stay hidden. Times are RFC 3339,
    bytes are {"base64": …}, integers are exact.

    A report has no names, only a part of the digest of each. With --in all names of the server are compared
    with it, which is slow on a large one; the name that is found is printed on standard error.

    Exits with 1 when the key is missing or not stored as declared, 2 when no template has that name, 3 when
    the server cannot be reached.

    Examples:
        keywright get shop.schema:shop order:17 --url redis://localhost:6379/0
        keywright get '#f1ec88' --in audit.json
        keywright get shop.schema:shop order:17 --rdb dump.rdb
    """
    if key is not None:
        asked = key
    elif model is not None:
        asked, model = model, None
    else:
        raise UsageError("no KEY is given. Name one, as in keywright get shop.schema:shop order:17.")
    if report is None and asked.startswith("#"):
        raise UsageError(
            f"{asked!r} is a masked name. Add --in with the file of an audit, of --format json --output FILE."
        )
    if report is not None and rdb is not None:
        raise UsageError("--in looks for the name on a server. Leave out --rdb.")
    masked = None if report is None else masked_in(report, asked)
    model = model or (masked.model if masked is not None else str(default_model(required=True)))
    loaded = proved_model(model, prefix, unproved=unproved)
    target = source_of(url, embedded, rdb, checksum=checksum)
    part = one_part(loaded, target, database if masked is None else masked.database)
    if masked is None:
        name = os.fsencode(asked)
    else:
        name = asyncio.run(_resolved(part, target, prefix, masked, Pace(max_rate, full_speed)))
    found = asyncio.run(_look(part, target, name, prefix, limit))
    if found is None:
        echo_error(f"{os.fsdecode(name)} does not exist.")
        raise typer.Exit(1)
    if found.truncated:
        warn(f"truncated: {limit} of {found.size} entries are shown. Raise --limit for more.")
    if found.older:
        warn(f"stored in the older shape {found.older!r}; shown as it is stored.")
    echo_json(as_json(inspected(found)))


async def _resolved(
    part: DatabasePart, url: str, prefix: str | None, masked: MaskedName, pace: Pace
) -> bytes:
    with Meter() as meter:
        async with connected(url, part, prefix) as db:
            names = await resolved(db, part.model.spaces, masked, pace=pace, on_progress=meter.show)
    shown = [name.decode("utf-8", "backslashreplace") for name in names]
    if not names:
        echo_error(f"no key has the masked name {masked.shown} now. It was removed since the audit.")
        raise typer.Exit(1)
    if len(names) > 1:
        echo_error(f"{len(names)} keys have the masked name {masked.shown}. Name one of them:")
        echo(*(f"  {each}" for each in shown), err=True)
        raise typer.Exit(1)
    note(f"{masked.shown} is {shown[0]}")
    return names[0]


async def _look(
    part: DatabasePart, source: str, name: bytes, prefix: str | None, limit: int
) -> Inspection | None:
    spaces = part.model.spaces
    async with readable_part(source, part, prefix) as db:
        matches = [found for space in spaces if (found := space.find(name, db.context)) is not None]
        matches.sort(key=lambda found: found.declaration.fallback)
        key = matches[0] if matches else spaces[0].parse(name, db.context)
        return await db.run(inspect(key, limit))
