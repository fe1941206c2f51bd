"""`keywright diff`: the changes between two versions of a declaration, and whether they are compatible."""

from __future__ import annotations

from collections.abc import Iterator
from enum import Enum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, NamedTuple

import typer

from keywright.cli.audit import PrefixOption
from keywright.cli.output import as_json, echo, echo_error, echo_json, note, warn
from keywright.cli.revisions import version_at
from keywright.cli.targets import DatabaseOption, bindings_of, default_model
from keywright.errors import UsageError
from keywright.tools.databases import parts_of
from keywright.tools.diff import Difference
from keywright.tools.diff import diff as difference
from keywright.tools.lock import ModelVersion, read_lock, write_lock
from keywright.tools.plugins import load_model

if TYPE_CHECKING:
    from keywright.tools.rdb import DumpDifference

__all__ = ["diff"]


class DiffFormat(Enum):
    TEXT = "text"
    JSON = "json"


def diff(
    old: Annotated[
        str | None,
        typer.Argument(
            metavar="OLD",
            help="MODEL, MODEL@REVISION of git, MODEL@FILE or a schema file. With --lock the only one, "
            "else model of [tool.keywright]. With --model: a dump (RDB file).",
            show_default=False,
        ),
    ] = None,
    new: Annotated[
        str | None, typer.Argument(metavar="NEW", help="The same, for the later version.", show_default=False)
    ] = None,
    lock: Annotated[
        Path | None, typer.Option(help="Compare the model as it is with this lock file.", show_default=False)
    ] = None,
    write: Annotated[bool, typer.Option("--write", help="Update the lock file.")] = False,
    yes: Annotated[bool, typer.Option("--yes", help="With --write: accept breaking changes.")] = False,
    model: Annotated[
        str | None,
        typer.Option(
            metavar="MODEL",
            help="Compare two dumps of the data of this model, and not two versions of a declaration.",
            show_default=False,
        ),
    ] = None,
    keys: Annotated[
        bool, typer.Option("--keys", help="With --model: list every key that differs, and how.")
    ] = False,
    show_ids: Annotated[
        bool, typer.Option("--show-ids", help="With --keys: show names of keys and entries, not masked.")
    ] = False,
    prefix: PrefixOption = None,
    database: DatabaseOption = None,
    checksum: Annotated[
        bool, typer.Option("--checksum", help="With --model: check that the dumps are not damaged first.")
    ] = False,
    form: Annotated[
        DiffFormat, typer.Option("--format", help="How to print: for people, or for programs.")
    ] = DiffFormat.TEXT,
) -> None:
    """List the changes between two versions of a declaration, or of stored data. Needs no server.

    A change is breaking if stored data becomes unreadable or is not found: a removed key, another name, type
    or codec, a required member without an upgrade. New keys, optional members, other expiries are compatible.
    Each change also says whether a running reader in another language breaks: one that has the old schema
    file only. A lock file is the schema of the model at one moment, for every language: commit it, and
    `keywright diff MODEL --lock FILE` guards it.

    With --model, OLD and NEW are dumps: keys that were added or removed, and changed values and expiries, are
    counted by template. Equal values in another encoding are equal.

    Exits with 1 when a change is breaking, or two dumps differ; 2 when a version cannot be loaded.

    Examples:
        keywright diff shop.schema:shop@v1.2 shop.schema:shop
        keywright diff shop.schema:shop --lock shop.lock
        keywright diff shop.schema:shop --lock shop.lock --write
        keywright diff monday.rdb tuesday.rdb --model shop.schema:shop
    """
    if model is not None:
        if old is None or new is None or lock is not None or write or yes:
            raise UsageError("--model compares two dumps. Give OLD and NEW, and leave out --lock.")
        dumps = DumpOptions(prefix, database, checksum, keys, show_ids)
        _compare_dumps(Path(old), Path(new), model, dumps, form)
        return
    if keys or show_ids or prefix is not None or database is not None or checksum:
        raise UsageError("--keys, --show-ids, --prefix, --database and --checksum need --model. Name it.")
    if lock is None:
        if old is None or new is None or write:
            raise UsageError("nothing to compare with. Give OLD and NEW, or MODEL --lock FILE.")
        _report(difference(version_at(old).description, version_at(new).description), form)
        return
    if new is not None:
        raise UsageError("--lock compares one model with its lock file. Drop the second name.")
    _against_lock(version_at(old or str(default_model(required=True))), lock, form, write=write, accept=yes)


MOST_LISTED = 100_000


class DumpOptions(NamedTuple):
    """The options of a comparison of two dumps."""

    prefix: str | None
    database: int | None
    checked: bool
    keys: bool
    show_ids: bool


def _compare_dumps(old: Path, new: Path, name: str, options: DumpOptions, form: DiffFormat) -> None:
    from keywright.tools.rdb import ChangedKey, compare_dumps  # only this form needs it

    model = load_model(name)
    parts = parts_of(model, options.database)
    if len(parts) > 1:
        numbers = ", ".join(str(part.database) for part in parts)
        raise UsageError(f"{name} is in databases {numbers}. Name one of them with --database.")
    (part,) = parts
    listed: list[dict[str, str]] = []

    def on_key(changed: ChangedKey) -> None:
        shown = changed.shown_name(show_ids=options.show_ids)
        what = changed.what
        if options.show_ids and changed.entries:
            what += f" ({', '.join(entry.decode('utf-8', 'backslashreplace') for entry in changed.entries)})"
        if form is DiffFormat.TEXT:
            echo(f"{changed.sort:<8} {shown}{f': {what}' if what else ''}")
        elif len(listed) < MOST_LISTED:
            listed.append({"sort": changed.sort, "template": changed.template, "key": shown, "what": what})

    found = compare_dumps(
        old,
        new,
        part.model,
        *bindings_of(part.model.spaces, options.prefix),
        number=part.database or 0,
        checked=options.checked,
        on_key=on_key if options.keys else None,
    )
    if form is DiffFormat.JSON:
        echo_json(as_json(found.as_data() | ({"keys": listed} if options.keys else {})))
    else:
        echo(*_dump_lines(found))
    if not found.is_empty:
        raise typer.Exit(1)


def _dump_lines(found: DumpDifference) -> Iterator[str]:
    """Yield a table of the templates, those that changed most first."""
    yield f"{found.model}: {found.old}"
    yield f"{' ' * len(found.model)}  {found.new}"
    head = ("template", "added", "removed", "changed", "expiry", "same")
    ordered = sorted(found.templates.items(), key=lambda item: (-item[1].differ, item[0]))
    rows = [
        (template, *(f"{count:,}" for count in (row.added, row.removed, row.changed, row.expiry, row.same)))
        for template, row in ordered
    ]
    widths = [max(map(len, column)) for column in zip(head, *rows, strict=True)]
    for row in (head, *rows):
        cells = [row[0].ljust(widths[0]), *(c.rjust(w) for c, w in zip(row[1:], widths[1:], strict=True))]
        yield "  ".join(cells)
    if found.outside:
        yield f"{found.outside:,} keys outside of the prefix were not compared"


def _against_lock(version: ModelVersion, lock: Path, form: DiffFormat, *, write: bool, accept: bool) -> None:
    if write and not lock.exists():
        _locked(lock, version)
        return
    found = difference(read_lock(lock).description, version.description)
    _print(found, form)
    if write and (found.compatible or accept):
        _locked(lock, version)
        return
    if write:
        echo_error(f"{lock} was not written: there are breaking changes. Add --yes to accept them.")
    elif found.changes and found.compatible:
        warn(f"{lock} is out of date. Update it with --write.")
    if not found.compatible:
        raise typer.Exit(1)


def _locked(lock: Path, version: ModelVersion) -> None:
    try:
        write_lock(lock, version)
    except OSError as error:
        raise UsageError(f"{lock} cannot be written: {error.strerror}. Name another file.") from error
    note(f"{lock} is up to date.")


def _report(found: Difference, form: DiffFormat) -> None:
    _print(found, form)
    if not found.compatible:
        raise typer.Exit(1)


def _print(found: Difference, form: DiffFormat) -> None:
    if form is DiffFormat.JSON:
        echo_json(as_json(found.as_data()))
    else:
        echo(*found.blocks())
