"""`keywright docs`: the document of a data model, and whether a committed one is up to date."""

from __future__ import annotations

import asyncio
from enum import Enum
from pathlib import Path
from typing import Annotated

import typer

from keywright.cli.files import write_file
from keywright.cli.output import echo, echo_error, echo_exact
from keywright.cli.progress import Meter
from keywright.cli.targets import (
    MODEL_HELP,
    UnprovedOption,
    default_model,
    model_parts,
    proved_model,
    readable_part,
    source_of,
)
from keywright.errors import UsageError
from keywright.tools.docs.asyncapi import asyncapi
from keywright.tools.docs.dump import CountedPart, described_with_counts
from keywright.tools.docs.formats import Format, is_current, written
from keywright.tools.generators.asyncapi import program_channels
from keywright.tools.model import Model, ModelDescription
from keywright.tools.stats import take_snapshot

__all__ = ["docs"]


class DocumentFormat(Enum):
    MARKDOWN = "markdown"
    HTML = "html"
    JSON = "json"
    ASYNCAPI = "asyncapi"


def docs(
    model: Annotated[
        str | None,
        typer.Argument(
            metavar="MODEL",
            help=f"{MODEL_HELP} With --rdb and without both it is inferred from the dump.",
            show_default=False,
        ),
    ] = None,
    form: Annotated[
        DocumentFormat, typer.Option("--format", help="How to write it; asyncapi is for message channels.")
    ] = DocumentFormat.MARKDOWN,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="The file to write, else standard output.")
    ] = None,
    check: Annotated[
        Path | None, typer.Option(help="Write nothing; fail if this file is out of date.")
    ] = None,
    rdb: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Count the keys of a dump (RDB file, or folder of append-only files) too.",
            show_default=False,
        ),
    ] = None,
    unproved: UnprovedOption = False,
) -> None:
    """Write the document of a data model. Needs no server.

    Every key with its type, variables, members, expiry, relations, versions, slot and guarantees, and a
    diagram of the relations: Mermaid in Markdown, drawn in HTML, which is one file that loads nothing. With
    --rdb each key has its number, size and share of expiring keys in the dump. No name or value is shown.

    Exits with 1 when the file given to --check is missing or out of date, 2 when the model is not known.

    Examples:
        keywright docs shop.schema:shop -o keys.md
        keywright docs shop.schema:shop --format html -o keys.html
        keywright docs shop.schema:shop --check keys.md
        keywright docs --rdb dump.rdb --format html -o keys.html
    """
    if output and check:
        raise UsageError("--output writes and --check does not. Give one of them.")
    model = model or default_model(required=rdb is None)
    options = " ".join(filter(None, [model, f"--rdb {rdb}" if rdb else "", f"--format {form.value}"]))
    command = f"keywright docs {options}"
    if rdb is None:
        text = _text(proved_model(str(model), unproved=unproved), form)
    else:
        text = _text_with_counts(model, rdb, form, command, unproved=unproved)
    if check:
        if not is_current(text, check):
            command = f"{command} -o {check}"
            echo_error(f"{check} is out of date. Write it again: {command}")
            raise typer.Exit(1)
        echo(f"{check} is up to date.")
    elif output:
        _save(output, text)
    else:
        echo_exact(text, nl=False)


def _text(model: Model, form: DocumentFormat) -> str:
    if form is DocumentFormat.ASYNCAPI:
        return asyncapi(program_channels(model))
    return written(model.described(), Format(form.value))


def _text_with_counts(
    model: str | None, rdb: Path, form: DocumentFormat, command: str, *, unproved: bool
) -> str:
    if form is DocumentFormat.ASYNCAPI:
        raise UsageError("messages of channels are not stored, so a dump has none. Leave out --rdb.")
    from keywright.cli.infer import (
        inferred_on_the_fly,  # it takes a while, and other documents do not need it
    )

    source = source_of(None, None, rdb)
    loaded = inferred_on_the_fly(source)[0] if model is None else proved_model(model, unproved=unproved)
    described = asyncio.run(_counted(loaded, source))
    return written(described, Format(form.value), command)


async def _counted(model: Model, source: str) -> ModelDescription:
    found, shown = [], ""
    for part in model_parts(model, source):
        with Meter() as meter:
            async with readable_part(source, part) as db:
                snapshot = await take_snapshot(db, part.model, sample=1.0, on_progress=meter.show)
                shown = db.address.shown
        found.append(CountedPart(part, snapshot))
    return described_with_counts(model.name, shown, found)


def _save(path: Path, text: str) -> None:
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UsageError(f"{path.parent} cannot be made: {error.strerror}. Name another file.") from error
    write_file(path, text)
