"""`keywright audit`: compare stored data with a declaration."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from enum import Enum
from pathlib import Path
from typing import Annotated

import typer

from keywright.cli.files import check_writable, write_file
from keywright.cli.output import echo, echo_exact, echo_json
from keywright.cli.progress import Meter
from keywright.cli.targets import (
    ChecksumOption,
    DatabaseOption,
    EmbeddedOption,
    ModelName,
    PrefixOption,
    RdbOption,
    UnprovedOption,
    UrlOption,
    model_parts,
    proved_model,
    readable_part,
    source_of,
)
from keywright.errors import UsageError
from keywright.tools.audit import (
    AuditOptions,
    AuditReport,
    Budget,
    Checkpoint,
    ServerReport,
    codes_named,
    parse_budget,
)
from keywright.tools.audit import audit as audited
from keywright.tools.audit.auditor import FAILING
from keywright.tools.audit.budgets import check_budgets
from keywright.tools.audit.formats import FORMATS
from keywright.tools.audit.formats.text import blocks
from keywright.tools.databases import DatabasePart
from keywright.tools.jobs import MOST_JOBS, JobPlan
from keywright.tools.model import Model
from keywright.tools.pace import Pace

__all__ = [
    "FullSpeedOption",
    "IgnoreOption",
    "JobsOption",
    "MaxRateOption",
    "PrefixOption",
    "audit",
    "numbered",
    "parse_share",
    "planned",
]


class AuditFormat(Enum):
    TEXT = "text"
    JSON = "json"
    SARIF = "sarif"
    JUNIT = "junit"
    HTML = "html"


MaxRateOption = Annotated[
    int | None,
    typer.Option(
        min=1,
        metavar="RATE",
        rich_help_panel="Server",
        help="The rate limit in keys a second.",
        show_default=False,
    ),
]
JobsOption = Annotated[
    int,
    typer.Option(
        "--jobs",
        min=1,
        max=MOST_JOBS,
        metavar="N",
        rich_help_panel="Server",
        help="The number of processes that share the work; on one server only with --full-speed.",
    ),
]
FullSpeedOption = Annotated[
    bool,
    typer.Option(
        "--full-speed",
        rich_help_panel="Server",
        help="Do not rest between batches: other clients of the server wait longer.",
    ),
]
IgnoreOption = Annotated[
    list[str] | None,
    typer.Option(metavar="GLOB", help="Names to ignore, as in 'celery-*'.", show_default=False),
]


def audit(
    model: ModelName,
    url: UrlOption = None,
    embedded: EmbeddedOption = None,
    rdb: RdbOption = None,
    checksum: ChecksumOption = False,
    database: DatabaseOption = None,
    prefix: PrefixOption = None,
    sample: Annotated[
        str,
        typer.Option(metavar="SHARE", help="The share of values to read: 0.1 or 10%. All names are matched."),
    ] = "100%",
    max_rate: MaxRateOption = None,
    full_speed: FullSpeedOption = False,
    jobs: JobsOption = 1,
    resume: Annotated[
        Path | None,
        typer.Option(help="Save the progress in this file, and resume from it.", show_default=False),
    ] = None,
    form: Annotated[
        AuditFormat, typer.Option("--format", rich_help_panel="Output", help="How to print the report.")
    ] = AuditFormat.TEXT,
    output: Annotated[
        Path | None,
        typer.Option(rich_help_panel="Output", help="Write the report there instead.", show_default=False),
    ] = None,
    fail_on: Annotated[
        str | None,
        typer.Option(
            metavar="CODES",
            help="Findings to exit with 1 for, as in unknown,dangling; else all errors and warnings.",
            show_default=False,
        ),
    ] = None,
    max_bytes: Annotated[
        list[str] | None,
        typer.Option(
            metavar="BUDGET", help="A budget: TEMPLATE=SIZE, or *=SIZE for all.", show_default=False
        ),
    ] = None,
    ignore: IgnoreOption = None,
    limit: Annotated[
        int, typer.Option(min=1, rich_help_panel="Output", help="The most findings of one code to list.")
    ] = 100,
    primary: Annotated[
        bool, typer.Option("--primary", rich_help_panel="Server", help="Read from primaries, not replicas.")
    ] = False,
    show_ids: Annotated[
        bool, typer.Option("--show-ids", rich_help_panel="Output", help="Show names and values, not masked.")
    ] = False,
    unproved: UnprovedOption = False,
) -> None:
    """Compare the stored data of a server, a cluster or a dump with a declaration. Read only.

    Walks all keys with SCAN, reads values in bounded pages, and reports counts and sizes by template, data
    that is not as declared, and unknown keys. Prefers replicas. Ids and values are masked unless asked for.
    Keyspaces of several databases are audited in one run, each in its own. Of a dump, expiries count from the
    moment at which it was taken, and sizes are those in the file.

    Exits with 1 when there are findings to fail on, 2 for a wrong invocation, 3 when it could not run.

    Examples:
        keywright audit shop.schema:shop --url redis://localhost:6379/0
        keywright audit shop.schema:shop --sample 10% --max-rate 5000
        keywright audit shop.schema:shop --format html --output audit.html
        keywright audit shop.schema:shop --fail-on unknown --ignore 'celery-*'
    """
    loaded, target = (
        proved_model(model, prefix, unproved=unproved),
        source_of(url, embedded, rdb, checksum=checksum),
    )
    options = AuditOptions(
        parse_share(sample),
        Pace(max_rate, full_speed),
        limit,
        ignore=ignore or (),
        prefer_replica=not primary,
    )
    failing = FAILING if fail_on is None else codes_named(fail_on.split(",")) | {"KW501"}
    budgets = [parse_budget(text) for text in max_bytes or ()]
    check_writable(output, resume)
    parts = model_parts(loaded, target, database)
    if budgets:
        check_budgets(budgets, _templates(loaded))
    checkpoints = [
        None
        if resume is None
        else Checkpoint.at(numbered(resume, part.database, len(parts)), _scope(part, prefix, options))
        for part in parts
    ]
    plans = [planned(jobs, model, target, prefix, part.database) for part in parts]
    report = asyncio.run(
        _run(parts, target, prefix, options, budgets, failing, checkpoints, plans, show_ids=show_ids)
    )
    if output is None and form is AuditFormat.TEXT:
        echo(*blocks(report))
    else:
        _print(FORMATS[form.value](report), form, output)
    if report.failed:
        raise typer.Exit(1)


def _print(printed: str, form: AuditFormat, output: Path | None) -> None:
    if output is not None:
        write_file(output, printed if printed.endswith("\n") else f"{printed}\n")
    elif form in (AuditFormat.JSON, AuditFormat.SARIF):
        echo_json(printed)
    else:
        echo_exact(printed)


def planned(jobs: int, model: str, source: str, prefix: str | None, database: int | None) -> JobPlan | None:
    """Return the plan of several jobs; None for one, which is this process."""
    return None if jobs == 1 else JobPlan(jobs, model, source, prefix, database)


def numbered(path: Path, database: int | None, databases: int) -> Path:
    """Return the file of one of several databases: `plan` becomes `plan.db1`."""
    return path if databases == 1 else path.with_name(f"{path.name}.db{database}")


def _templates(model: Model) -> list[str]:
    return [kind.declaration.template.source for space in model.spaces for kind in space]


def _scope(part: DatabasePart, prefix: str | None, options: AuditOptions) -> list[str]:
    """Return the options that counts depend on: a resumed audit must have the same."""
    return [
        *(space.name for space in part.model.spaces),
        *([] if part.declared is None else [f"--database {part.declared}"]),
        *([] if prefix is None else [f"--prefix {prefix}"]),
        *([] if options.sample == 1 else [f"--sample {options.sample:g}"]),
        *(f"--ignore {pattern}" for pattern in options.ignore),
    ]


async def _run(
    parts: Sequence[DatabasePart],
    url: str,
    prefix: str | None,
    options: AuditOptions,
    budgets: list[Budget],
    failing: frozenset[str],
    checkpoints: Sequence[Checkpoint | None],
    plans: Sequence[JobPlan | None],
    *,
    show_ids: bool,
) -> AuditReport | ServerReport:
    reports = []
    for part, checkpoint, plan in zip(parts, checkpoints, plans, strict=True):
        declared = {"*", *_templates(part.model)}
        with Meter() as meter:
            async with readable_part(url, part, prefix) as db:
                reports.append(
                    await audited(
                        db,
                        part.model,
                        options,
                        budgets=[budget for budget in budgets if budget.template in declared],
                        failing=failing,
                        show_ids=show_ids,
                        on_progress=meter.show,
                        checkpoint=checkpoint,
                        database=part.declared,
                        plan=plan,
                    )
                )
    return reports[0] if len(reports) == 1 else ServerReport(tuple(reports))


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
