"""`keywright docs`: the document of a data model, and whether a committed one is up to date."""

from __future__ import annotations

from enum import Enum
from pathlib import Path
from typing import Annotated

import typer

from keywright.cli.files import write_file
from keywright.cli.output import echo, echo_exact
from keywright.cli.targets import ModelName, UnprovedOption, proved_model
from keywright.errors import UsageError
from keywright.tools.docs.asyncapi import asyncapi
from keywright.tools.docs.formats import Format, is_current, written
from keywright.tools.model import Model

__all__ = ["docs"]


class DocumentFormat(Enum):
    MARKDOWN = "markdown"
    HTML = "html"
    JSON = "json"
    ASYNCAPI = "asyncapi"


def docs(
    model: ModelName,
    form: Annotated[
        DocumentFormat, typer.Option("--format", help="How to write it; asyncapi is for message channels.")
    ] = DocumentFormat.MARKDOWN,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="The file to write, else standard output.")
    ] = None,
    check: Annotated[
        Path | None, typer.Option(help="Write nothing; fail if this file is out of date.")
    ] = None,
    unproved: UnprovedOption = False,
) -> None:
    """Write the document of a data model. Needs no server.

    Every key with its type, variables, members, expiry, relations, versions, slot and guarantees, and a
    diagram of the relations: Mermaid in Markdown, drawn in HTML, which is one file that loads nothing.

    Exits with 1 when the file given to --check is missing or out of date, 2 when the model is not known.
    """
    if output and check:
        raise UsageError("--output writes and --check does not. Give one of them.")
    text = _text(proved_model(model, unproved=unproved), form)
    if check:
        if not is_current(text, check):
            command = f"keywright docs {model} --format {form.value} -o {check}"
            echo(f"{check} is out of date. Write it again: {command}", err=True)
            raise typer.Exit(1)
        echo(f"{check} is up to date.")
    elif output:
        _save(output, text)
    else:
        echo_exact(text, nl=False)


def _text(model: Model, form: DocumentFormat) -> str:
    if form is DocumentFormat.ASYNCAPI:
        if model.channels is None:
            raise UsageError(
                f"{model.name!r} has no message channels to describe in AsyncAPI. Choose another format."
            )
        return asyncapi(model.channels())
    return written(model.described(), Format(form.value))


def _save(path: Path, text: str) -> None:
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UsageError(f"{path.parent} cannot be made: {error.strerror}. Name another file.") from error
    write_file(path, text)
