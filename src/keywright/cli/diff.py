"""`keywright diff`: the changes between two versions of a declaration, and whether they are compatible."""

from __future__ import annotations

from enum import Enum
from pathlib import Path
from typing import Annotated

import typer

from keywright.cli.output import as_json, echo, echo_json
from keywright.cli.revisions import described_at
from keywright.errors import UsageError
from keywright.tools.diff import Difference
from keywright.tools.diff import diff as difference
from keywright.tools.lock import read_lock, write_lock
from keywright.tools.model import ModelDescription

__all__ = ["diff"]


class DiffFormat(Enum):
    TEXT = "text"
    JSON = "json"


def diff(
    old: Annotated[
        str,
        typer.Argument(
            metavar="OLD",
            help="MODEL, MODEL@REVISION of git, MODEL@FILE or a lock file. The only one, if --lock is given.",
            show_default=False,
        ),
    ],
    new: Annotated[
        str | None, typer.Argument(metavar="NEW", help="The same, for the later version.", show_default=False)
    ] = None,
    lock: Annotated[
        Path | None, typer.Option(help="Compare the model as it is with this lock file.", show_default=False)
    ] = None,
    write: Annotated[bool, typer.Option("--write", help="Update the lock file.")] = False,
    yes: Annotated[bool, typer.Option("--yes", help="With --write: accept breaking changes.")] = False,
    form: Annotated[
        DiffFormat, typer.Option("--format", help="How to print: for people, or for programs.")
    ] = DiffFormat.TEXT,
) -> None:
    """List the changes between two versions of a declaration. Needs no server.

    A change is breaking if stored data becomes unreadable or is not found: a removed key, another name, type
    or codec, a required member without an upgrade. New keys, optional members, other expiries are compatible.
    A lock file is the declaration at one moment: commit it, and `keywright diff MODEL --lock FILE` guards it.

    Exits with 1 when a change is breaking, 2 when a version cannot be loaded.
    """
    if lock is None:
        if new is None or write:
            raise UsageError("nothing to compare with. Give OLD and NEW, or MODEL --lock FILE.")
        _report(difference(described_at(old), described_at(new)), form)
        return
    if new is not None:
        raise UsageError("--lock compares one model with its lock file. Drop the second name.")
    _against_lock(described_at(old), lock, form, write=write, accept=yes)


def _against_lock(
    model: ModelDescription, lock: Path, form: DiffFormat, *, write: bool, accept: bool
) -> None:
    if write and not lock.exists():
        _locked(lock, model)
        return
    found = difference(read_lock(lock), model)
    _print(found, form)
    if write and (found.compatible or accept):
        _locked(lock, model)
        return
    if write:
        echo(f"{lock} was not written: there are breaking changes. Add --yes to accept them.", err=True)
    elif found.changes and found.compatible:
        echo(f"{lock} is out of date. Update it with --write.", err=True)
    if not found.compatible:
        raise typer.Exit(1)


def _locked(lock: Path, model: ModelDescription) -> None:
    try:
        write_lock(lock, model)
    except OSError as error:
        raise UsageError(f"{lock} cannot be written: {error.strerror}. Name another file.") from error
    echo(f"{lock} is up to date.", err=True)


def _report(found: Difference, form: DiffFormat) -> None:
    _print(found, form)
    if not found.compatible:
        raise typer.Exit(1)


def _print(found: Difference, form: DiffFormat) -> None:
    if form is DiffFormat.JSON:
        echo_json(as_json(found.as_data()))
    else:
        echo(*found.as_text().split("\n"))
