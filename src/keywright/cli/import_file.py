"""`keywright import`: the keys of an export, checked first, then written."""

from __future__ import annotations

import asyncio
import shutil
import sys
import tempfile
from contextlib import ExitStack
from enum import Enum
from typing import IO, Annotated, Any, cast

import typer

from keywright.cli.audit import MaxRateOption, PrefixOption
from keywright.cli.files import open_source
from keywright.cli.output import as_json, echo, echo_json, note
from keywright.cli.progress import Meter
from keywright.cli.targets import (
    DatabaseOption,
    EmbeddedOption,
    OptionalModel,
    UrlOption,
    connected,
    default_model,
    one_part,
    proved_model,
    server_url,
)
from keywright.errors import UsageError
from keywright.tools.databases import DatabasePart
from keywright.tools.pace import Pace
from keywright.tools.transfer import Imported, Plan, import_keys, plan_import

__all__ = ["import_file"]


class ImportFormat(Enum):
    TEXT = "text"
    JSON = "json"


def import_file(
    model: OptionalModel = None,
    file: Annotated[
        str | None,
        typer.Argument(metavar="FILE", help="A file of `keywright export`; - for stdin.", show_default=False),
    ] = None,
    url: UrlOption = None,
    embedded: EmbeddedOption = None,
    database: DatabaseOption = None,
    prefix: PrefixOption = None,
    replace: Annotated[
        bool, typer.Option("--replace", help="Overwrite keys that exist with another content.")
    ] = False,
    with_dumps: Annotated[
        bool,
        typer.Option(
            "--with-dumps", help="Import keys of modules from dumps, which are not checked: trust the file."
        ),
    ] = False,
    max_rate: MaxRateOption = None,
    form: Annotated[
        ImportFormat, typer.Option("--format", help="How to print: for people, or for programs.")
    ] = ImportFormat.TEXT,
    yes: Annotated[bool, typer.Option("--yes", help="Do it. Else only the plan is shown.")] = False,
) -> None:
    """Import keys from lines of JSON. Shows a plan; changes nothing without --yes.

    Every line is decoded and checked before the first key is written; one line that is invalid, or one key
    that exists with another content, and nothing is written. --replace overwrites such keys. Keys are written
    as they were stored, with their expiries, each whole or not at all. If it is stopped, run it again: keys
    that are as in the file are skipped. Relations and indexes are imported as keys: audit the model then.

    Exits with 0 when all keys of the file are stored, 1 when not, 2 for a wrong invocation, 3 when it could
    not run.

    Examples:
        keywright import shop.schema:shop shop.jsonl --url redis://localhost:6379/0
        keywright import shop.schema:shop shop.jsonl --yes
        zcat shop.jsonl.gz | keywright import shop.schema:shop - --replace --yes
    """
    if file is None:
        if model is None:
            raise UsageError("no FILE is given. Name one that `keywright export` wrote, or - for stdin.")
        model, file = str(default_model(required=True)), model
    loaded, target = proved_model(str(model), prefix), server_url(url, embedded)
    part = one_part(loaded, target, database)
    with ExitStack() as opened:
        source = _seekable(open_source(file, opened, "a file of `keywright export`"), opened)
        work = _run(part, target, prefix, source, replace, with_dumps, Pace(max_rate, full_speed=True), yes)
        try:
            plan, done = asyncio.run(work)
        except KeyboardInterrupt:
            note("stopped. Keys that were written stay; run it again to continue.")
            raise typer.Exit(1) from None
    _print(plan, done, form, replace=replace)
    if done is None or done.failed or done.overtaken:
        raise typer.Exit(0 if done is None and not _due(plan) and not plan.invalid else 1)


def _seekable(source: IO[bytes], opened: ExitStack) -> IO[bytes]:
    """Return the file, or a private copy of a pipe: it is read twice."""
    if source is not sys.stdin.buffer and source.seekable():
        return source
    copy = opened.enter_context(tempfile.TemporaryFile())  # noqa: SIM115  # it closes with the command
    shutil.copyfileobj(source, copy)
    return cast(IO[bytes], copy)


async def _run(
    part: DatabasePart,
    url: str,
    prefix: str | None,
    file: IO[bytes],
    replace: bool,
    with_dumps: bool,
    pace: Pace,
    yes: bool,
) -> tuple[Plan, Imported | None]:
    spaces = part.model.spaces
    async with connected(url, part, prefix) as db:
        with Meter() as meter:
            plan = await plan_import(db, spaces, file, with_dumps=with_dumps, on_progress=meter.show)
        if not yes or plan.invalid or (plan.different and not replace):
            return plan, None
        with Meter() as meter:
            return plan, await import_keys(
                db,
                spaces,
                file,
                plan,
                replace=replace,
                with_dumps=with_dumps,
                pace=pace,
                on_progress=meter.show,
            )


def _due(plan: Plan) -> bool:
    return bool(plan.new or plan.different)


def _print(plan: Plan, done: Imported | None, form: ImportFormat, *, replace: bool) -> None:
    if form is ImportFormat.JSON:
        data: dict[str, Any] = {"applied": done is not None, "plan": plan.as_data(), "result": None}
        if done is not None:
            failed = [{"line": number, "reason": reason} for number, reason in done.failed]
            data["result"] = {**done._asdict(), "failed": failed}
        echo_json(as_json(data))
        return
    echo(f"an export of {plan.model} of {plan.made_at}: {plan.lines:,} keys")
    for number, reason in plan.problems:
        echo(f"line {number}: {reason}")
    if plan.invalid > len(plan.problems):
        echo(f"… and {plan.invalid - len(plan.problems):,} more lines that cannot be imported")
    for counts, words in (
        (plan.new, "to be written"),
        (plan.same, "are stored already"),
        (plan.different, "exist with another content"),
        (plan.expired, "have expired"),
    ):
        for template, count in counts.items():
            echo(f"  {template}: {count:,} {words}")
    if done is not None:
        _print_result(done)
    elif plan.invalid:
        echo("Nothing was changed: correct the lines, or repair the source and export again.")
    elif plan.different and not replace:
        echo("Nothing was changed. Add --replace to overwrite keys that exist with another content.")
    else:
        echo("Nothing was changed. Add --yes to do it." if _due(plan) else "Nothing is to be done.")


def _print_result(done: Imported) -> None:
    echo(f"{done.written:,} keys written, {done.same:,} were stored already, {done.expired:,} had expired")
    if done.overtaken:
        echo(f"{done.overtaken:,} keys were made by another writer meanwhile, and left")
    for number, reason in done.failed:
        echo(f"line {number}: {reason}")
    echo("Relations and indexes were not checked: `keywright audit` does.")
