"""`keywright audit`: compare stored data with a declaration."""

from __future__ import annotations

import asyncio
from enum import Enum
from pathlib import Path
from typing import Annotated

import typer

from keywright.cli.files import check_writable, write_file
from keywright.cli.output import echo, echo_exact, echo_json
from keywright.cli.progress import Meter
from keywright.cli.targets import (
    EmbeddedOption,
    ModelName,
    UnprovedOption,
    UrlOption,
    bindings_of,
    proved_model,
    server_url,
)
from keywright.engine import aconnect
from keywright.errors import UsageError
from keywright.tools.audit import (
    AuditOptions,
    AuditReport,
    Budget,
    Checkpoint,
    codes_named,
    parse_budget,
)
from keywright.tools.audit import audit as audited
from keywright.tools.audit.auditor import FAILING
from keywright.tools.audit.formats import FORMATS
from keywright.tools.model import Model

__all__ = ["IgnoreOption", "MaxRateOption", "PrefixOption", "audit", "parse_share"]


class AuditFormat(Enum):
    TEXT = "text"
    JSON = "json"
    SARIF = "sarif"
    JUNIT = "junit"
    HTML = "html"


PrefixOption = Annotated[
    str | None, typer.Option(help="The prefix of names, if not the declared one.", show_default=False)
]
MaxRateOption = Annotated[
    int | None, typer.Option(min=1, help="The rate limit in keys a second.", show_default=False)
]
IgnoreOption = Annotated[
    list[str] | None,
    typer.Option(help="Names to ignore, as in 'celery-*'; repeatable.", show_default=False),
]


def audit(
    model: ModelName,
    url: UrlOption = None,
    embedded: EmbeddedOption = None,
    prefix: PrefixOption = None,
    sample: Annotated[
        str, typer.Option(help="The share of values to read: 0.1 or 10%. All names are matched.")
    ] = "100%",
    max_rate: MaxRateOption = None,
    resume: Annotated[
        Path | None,
        typer.Option(help="Save the progress in this file, and resume from it.", show_default=False),
    ] = None,
    form: Annotated[
        AuditFormat, typer.Option("--format", help="How to print the report.")
    ] = AuditFormat.TEXT,
    output: Annotated[
        Path | None, typer.Option(help="Write the report there instead.", show_default=False)
    ] = None,
    fail_on: Annotated[
        str | None,
        typer.Option(help="Findings to exit with 1 for: unknown,dangling,… Else all.", show_default=False),
    ] = None,
    max_bytes: Annotated[
        list[str] | None,
        typer.Option(help="A budget: TEMPLATE=SIZE, or *=SIZE for all; repeatable.", show_default=False),
    ] = None,
    ignore: IgnoreOption = None,
    limit: Annotated[int, typer.Option(min=1, help="The most findings of one code to list.")] = 100,
    primary: Annotated[bool, typer.Option("--primary", help="Read from primaries, not replicas.")] = False,
    show_ids: Annotated[bool, typer.Option("--show-ids", help="Show names and values, not masked.")] = False,
    unproved: UnprovedOption = False,
) -> None:
    """Compare the stored data of a server or a cluster with a declaration. Read only.

    Walks all keys with SCAN, reads values in bounded pages, and reports counts and sizes by template, data
    that is not as declared, and unknown keys. Prefers replicas. Ids and values are masked unless asked for.

    Exits with 1 when there are findings to fail on, 2 for a wrong invocation, 3 when it could not run.
    """
    loaded, target = proved_model(model, prefix, unproved=unproved), server_url(url, embedded)
    options = AuditOptions(
        parse_share(sample), max_rate, limit, ignore=ignore or (), prefer_replica=not primary
    )
    failing = FAILING if fail_on is None else codes_named(fail_on.split(",")) | {"KW501"}
    budgets = [parse_budget(text) for text in max_bytes or ()]
    check_writable(output, resume)
    checkpoint = None if resume is None else Checkpoint.at(resume, _scope(loaded, prefix, options))
    report = asyncio.run(
        _run(loaded, target, prefix, options, budgets, failing, checkpoint, show_ids=show_ids)
    )
    printed = FORMATS[form.value](report)
    if output is not None:
        write_file(output, printed if printed.endswith("\n") else f"{printed}\n")
    elif form is AuditFormat.TEXT:
        echo(*printed.split("\n"))
    elif form in (AuditFormat.JSON, AuditFormat.SARIF):
        echo_json(printed)
    else:
        echo_exact(printed)
    if report.failed:
        raise typer.Exit(1)


def _scope(model: Model, prefix: str | None, options: AuditOptions) -> list[str]:
    """Return the options that counts depend on: a resumed audit must have the same."""
    return [
        *(space.name for space in model.spaces),
        *([] if prefix is None else [f"--prefix {prefix}"]),
        *([] if options.sample == 1 else [f"--sample {options.sample:g}"]),
        *(f"--ignore {pattern}" for pattern in options.ignore),
    ]


async def _run(
    model: Model,
    url: str,
    prefix: str | None,
    options: AuditOptions,
    budgets: list[Budget],
    failing: frozenset[str],
    checkpoint: Checkpoint | None,
    *,
    show_ids: bool,
) -> AuditReport:
    with Meter() as meter:
        async with aconnect(url, *bindings_of(model.spaces, prefix)) as db:
            return await audited(
                db,
                model,
                options,
                budgets=budgets,
                failing=failing,
                show_ids=show_ids,
                on_progress=meter.show,
                checkpoint=checkpoint,
            )


def parse_share(text: str) -> float:
    """Return the fraction of `0.1` or `10%`. Raise UsageError for anything else."""
    try:
        share = float(text[:-1]) / 100 if text.endswith("%") else float(text)
    except ValueError:
        share = -1.0
    if not 0 < share <= 1:
        raise UsageError(
            f"--sample must be a fraction or a percentage up to 100%, got {text!r}. Write 0.1 or 10%."
        )
    return share
