"""`keywright infer`: write a declaration from what exists."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from enum import Enum
from pathlib import Path
from types import ModuleType
from typing import Annotated

import typer

from keywright.cli.audit import FullSpeedOption, JobsOption, MaxRateOption, planned
from keywright.cli.files import check_writable, open_source, write_file
from keywright.cli.output import as_json, echo_exact, echo_json, note
from keywright.cli.progress import Meter
from keywright.cli.targets import (
    ChecksumOption,
    DatabaseOption,
    EmbeddedOption,
    RdbOption,
    UrlOption,
    database_named,
    is_dump,
    readable,
    source_of,
)
from keywright.errors import UsageError
from keywright.tools.databases import numbers_with_keys
from keywright.tools.infer import (
    Inference,
    NameSample,
    infer_server,
    inferred_model,
    joined_inference,
    names_in,
)
from keywright.tools.infer import infer as inferred
from keywright.tools.infer.document import LARGEST, DocumentInference, infer_document
from keywright.tools.infer.programs import recognised_lines
from keywright.tools.infer.update import (
    Addition,
    Target,
    append_to,
    drafted_addition,
    module_at,
    names_after,
    server_addition,
    targets_in,
)
from keywright.tools.model import Model
from keywright.tools.pace import GENTLE, Pace
from keywright.tools.plugins import load_catalogue
from keywright.tools.program import Program

__all__ = ["infer", "inferred_module", "inferred_on_the_fly"]


class InferFormat(Enum):
    TEXT = "text"
    JSON = "json"


SPACE = "inferred"
"""The name of the keyspace in a module, unless another is given."""


def infer(
    url: UrlOption = None,
    embedded: EmbeddedOption = None,
    rdb: RdbOption = None,
    checksum: ChecksumOption = False,
    database: DatabaseOption = None,
    names: Annotated[
        str | None,
        typer.Option(
            metavar="FILE",
            help="Instead of a server: a file of names, as redis-cli --scan prints them; - for stdin.",
            show_default=False,
        ),
    ] = None,
    document: Annotated[
        str | None,
        typer.Option(
            metavar="FILE",
            help="Instead of a server: a Markdown document that describes keys; - for stdin.",
            show_default=False,
        ),
    ] = None,
    output: Annotated[
        Path | None,
        typer.Option(
            "--output",
            "-o",
            rich_help_panel="Output",
            help="Write the module there instead.",
            show_default=False,
        ),
    ] = None,
    update: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            rich_help_panel="Output",
            help="Append to this module what it does not declare; the rest stays as it is.",
            show_default=False,
        ),
    ] = None,
    space: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            rich_help_panel="Output",
            help="The name of the keyspace in the module, else inferred; of --update the one to add to.",
            show_default=False,
        ),
    ] = None,
    max_rate: MaxRateOption = None,
    full_speed: FullSpeedOption = False,
    jobs: JobsOption = 1,
    primary: Annotated[
        bool, typer.Option("--primary", rich_help_panel="Server", help="Read from primaries, not replicas.")
    ] = False,
    show_ids: Annotated[
        bool, typer.Option("--show-ids", help="Show a name of each template in a comment.")
    ] = False,
    no_catalogue: Annotated[
        bool, typer.Option("--no-catalogue", help="Do not recognise programs of the catalogue.")
    ] = False,
    form: Annotated[
        InferFormat,
        typer.Option(
            "--format",
            rich_help_panel="Output",
            help="A module, or JSON with the module, unless it goes to a file.",
        ),
    ] = InferFormat.TEXT,
) -> None:
    """Write a declaration from the keys of a server or a dump, a list of names or a document. Read only.

    Walks all names with SCAN and reads a bounded part of some keys of each kind. If several databases of the
    server have keys, each gets a keyspace of its own. Of a document it reads headings, tables, lists and code
    with names such as user:{id}:posts, and words such as "set of", "hash" and "TTL 10 minutes". The module
    passes `keywright check`; doubts in it are marked `guess`. Keys of a program of the catalogue are not
    guessed: the module refers to its declaration. The coverage is printed on standard error.

    Exits with 2 for a wrong invocation, 3 when it could not run.

    Examples:
        keywright infer --url redis://localhost:6379/0 -o shop.py
        redis-cli --scan | keywright infer --names -
        keywright infer --document README.md --space shop
        keywright infer --url redis://localhost:6379/0 --update shop.py
    """
    check_writable(output, update)
    if output is not None and update is not None:
        raise UsageError("--update changes a module, --output makes one. Give one of them.")
    if document is not None:
        if url or embedded or rdb or names or update:
            raise UsageError("--document is instead of a server, --names and --update. Give one of them.")
        _write(_documented(document, space or SPACE), output, form)
        return
    programs, pace = {} if no_catalogue else load_catalogue(), Pace(max_rate, full_speed)
    if names is not None:
        if url or embedded or rdb or database is not None:
            raise UsageError("--names is instead of a server. Give one of them.")
        if update is None:
            sample = _listed(names)
            result = inferred(sample, space=space or SPACE, show_ids=show_ids, programs=programs)
            _write(result, output, form)
            return
    if update is None:
        target = source_of(url, embedded, rdb, checksum=checksum)
        inference = _inferred(
            target,
            pace,
            database_named(target, database),
            primary=primary,
            space=space or SPACE,
            show_ids=show_ids,
            programs=programs,
            jobs=jobs,
        )
        _write(asyncio.run(inference), output, form)
        return
    module = module_at(update)
    if names is not None:
        targets = targets_in(module, space)
        if len(targets) > 1:
            listing = ", ".join(each.variable for each in targets)
            raise UsageError(f"{update} has {listing}. Choose the one that the names are of with --space.")
        draft = drafted_addition(module, targets[0], _listed(names), {}, show_ids=show_ids, programs=programs)
        additions = [draft.written(vars(module), show_ids=show_ids)]
    else:
        target = source_of(url, embedded, rdb, checksum=checksum)
        targets = targets_in(module, space, database_named(target, database))
        added = _added(
            target, module, targets, pace, primary=primary, show_ids=show_ids, programs=programs, jobs=jobs
        )
        additions = asyncio.run(added)
    if any(each.text for each in additions):
        append_to(update, "".join(each.text for each in additions))
    coverage = [
        f"{each.variable}: {line}" if len(targets) > 1 else line
        for each, addition in zip(targets, additions, strict=True)
        for line in addition.coverage
    ]
    if form is InferFormat.JSON:
        _print_json(None, update, coverage)
    else:
        note(*coverage)


def _listed(names: str) -> NameSample:
    with ExitStack() as opened:
        return names_in(open_source(names, opened, "a file of names"))


async def _added(
    url: str,
    module: ModuleType,
    targets: Sequence[Target],
    pace: Pace,
    *,
    primary: bool,
    show_ids: bool,
    programs: Mapping[str, Program],
    jobs: int,
) -> list[Addition]:
    """Return what each keyspace of a module lacks of the keys in its database."""
    found: list[Addition] = []
    imported: Mapping[str, object] = vars(module)
    for target in targets:
        with Meter() as meter:
            number = target.database or database_named(url) or 0
            async with readable(url, database=number) as db:
                addition = await server_addition(
                    db,
                    module,
                    target,
                    imported=imported,
                    show_ids=show_ids,
                    programs=programs,
                    pace=pace,
                    prefer_replica=not primary,
                    on_progress=meter.show,
                    plan=planned(jobs, "", url, None, number),
                )
        imported = names_after(imported, addition.text)
        found.append(addition)
    return found


def _documented(document: str, space: str) -> DocumentInference:
    with ExitStack() as opened:
        source = open_source(document, opened, "a Markdown document").read(LARGEST + 1)
    return infer_document(source, space=space)


def _write(result: Inference | DocumentInference, output: Path | None, form: InferFormat) -> None:
    if output is not None:
        write_file(output, result.text)
    if form is InferFormat.JSON:
        _print_json(result.text if output is None else None, output, result.coverage)
        return
    if output is None:
        echo_exact(result.text, nl=False)
    note(*result.coverage)


def _print_json(module: str | None, output: Path | None, coverage: Sequence[str]) -> None:
    data = {"module": module, "output": None if output is None else str(output), "coverage": list(coverage)}
    echo_json(as_json(data))


def inferred_on_the_fly(url: str, pace: Pace = GENTLE, database: int | None = None) -> tuple[Model, str]:
    """Return a model that is inferred from a server and its module. Print to standard error that it is.

    It has all databases that have keys, or the one that is given.
    """
    result = asyncio.run(_inferred(url, pace, database, primary=False, programs=load_catalogue()))
    source = "dump" if is_dump(url) else "server"
    note(f"no MODEL is given, so one is inferred from the {source}; keywright infer -o FILE saves it")
    note(*result.coverage[:1], *recognised_lines(result.programs))
    return inferred_model(result), result.text


async def inferred_module(url: str, space: str, pace: Pace = GENTLE) -> str:
    """Return the module of the keys of a server, and print the coverage to standard error."""
    number = database_named(url)
    found = await _inferred(url, pace, number, primary=False, programs=load_catalogue(), space=space)
    note(*found.coverage)
    return found.text


async def _inferred(
    url: str,
    pace: Pace,
    database: int | None,
    *,
    primary: bool,
    programs: Mapping[str, Program],
    space: str = SPACE,
    show_ids: bool = False,
    jobs: int = 1,
) -> Inference:
    """Infer a database, or all that have keys, each with a keyspace of its own."""
    numbers = await _numbers(url) if database is None else [database]
    found: list[Inference] = []
    for number in numbers:
        with Meter() as meter:
            async with readable(url, database=number) as db:
                found.append(
                    await infer_server(
                        db,
                        space=space if len(numbers) == 1 else f"{space}_{number}",
                        show_ids=show_ids,
                        programs=programs,
                        database=number or None if len(numbers) == 1 else number,
                        before=found,
                        pace=pace,
                        prefer_replica=not primary,
                        on_progress=meter.show,
                        plan=planned(jobs, "", url, None, number),
                    )
                )
    return found[0] if len(found) == 1 else joined_inference(found, "a dump" if is_dump(url) else "a server")


async def _numbers(url: str) -> list[int]:
    """Return the databases that have keys, and print them unless it is only the first."""
    async with readable(url) as db:
        numbers = [*(await numbers_with_keys(db))] or [0]
    if numbers != [0]:
        listed = ", ".join(map(str, numbers))
        note(f"keys are in {'database' if len(numbers) == 1 else 'databases'} {listed}")
    return numbers
