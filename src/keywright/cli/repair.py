"""`keywright repair`: a plan from the findings of an audit, its application, and undo."""

from __future__ import annotations

import asyncio
from datetime import datetime
from enum import Enum
from itertools import islice
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Annotated, Any

import typer

from keywright.cli.audit import FullSpeedOption, IgnoreOption, MaxRateOption, numbered
from keywright.cli.files import check_writable
from keywright.cli.output import UNCHANGED, as_json, echo, echo_json
from keywright.cli.progress import Meter
from keywright.cli.targets import (
    DatabaseOption,
    EmbeddedOption,
    ModelName,
    PrefixOption,
    UrlOption,
    connected,
    model_parts,
    one_part,
    proved_model,
    server_url,
)
from keywright.errors import UsageError
from keywright.tools.audit import AuditOptions, codes_named
from keywright.tools.audit.findings import masked_name
from keywright.tools.databases import DatabasePart
from keywright.tools.layout import Line, Meaning
from keywright.tools.model import Model
from keywright.tools.pace import Pace
from keywright.tools.plugins import load_model
from keywright.tools.repair import Repair, RepairPlan, read_plan, undo
from keywright.tools.repair import repair as repaired
from keywright.tools.repair.plan import CREATABLE
from keywright.tools.repair.rounds import apply_saved, plan_repair
from keywright.tools.repair.undo import Undone

__all__ = ["repair"]

SHOWN = 40
LISTED = 1000
"""The steps of a plan in JSON. A file of --save has all."""


class RepairFormat(Enum):
    TEXT = "text"
    JSON = "json"


def repair(
    model: ModelName,
    url: UrlOption = None,
    embedded: EmbeddedOption = None,
    database: DatabaseOption = None,
    prefix: PrefixOption = None,
    remove: Annotated[
        str | None,
        typer.Option(
            metavar="CODES",
            help="Findings whose only repair is removal, to be removed: as in unknown,undecodable, or all.",
            show_default=False,
        ),
    ] = None,
    create_groups: Annotated[
        bool,
        typer.Option(
            "--create-groups", help="Create missing consumer groups. They begin with the first entry."
        ),
    ] = False,
    save: Annotated[
        Path | None,
        typer.Option(rich_help_panel="Output", help="Write the plan to a file.", show_default=False),
    ] = None,
    plan: Annotated[
        Path | None, typer.Option(help="Apply a saved plan instead of a new one.", show_default=False)
    ] = None,
    undo_to: Annotated[
        Path | None,
        typer.Option(
            "--undo-to", help="The undo file for removed data. Else a file here.", show_default=False
        ),
    ] = None,
    undo_from: Annotated[
        Path | None,
        typer.Option(
            "--undo", help="Restore the data that a repair removed, from its undo file.", show_default=False
        ),
    ] = None,
    max_rate: MaxRateOption = None,
    full_speed: FullSpeedOption = False,
    ignore: IgnoreOption = None,
    show_ids: Annotated[
        bool, typer.Option("--show-ids", rich_help_panel="Output", help="Show names, not masked.")
    ] = False,
    form: Annotated[
        RepairFormat,
        typer.Option("--format", rich_help_panel="Output", help="How to print: for people, or for programs."),
    ] = RepairFormat.TEXT,
    yes: Annotated[bool, typer.Option("--yes", help="Do it. Else only the plan is shown.")] = False,
) -> None:
    """Repair the findings of an audit. Shows a plan; changes nothing without --yes.

    Each step checks its finding again before it writes. Findings without a safe repair are listed and left.
    Data is only removed with --remove, and removed data goes to an undo file, for --undo. Keyspaces of
    several databases are repaired one after the other, with files of their own: FILE.db0, FILE.db1.

    Exits with 0 when nothing is left to do, 1 when something is, 2 for a wrong invocation, 3 when it could
    not run.

    Examples:
        keywright repair shop.schema:shop --url redis://localhost:6379/0
        keywright repair shop.schema:shop --yes
        keywright repair shop.schema:shop --remove unknown --save plan.jsonl
        keywright repair shop.schema:shop --undo removed.jsonl --yes
    """
    target = server_url(url, embedded)
    if undo_from is not None:
        # Proved or not: it puts back what the file holds, and no template decides.
        part = one_part(load_model(model), target, database)
        undone = asyncio.run(_undo(part, target, prefix, undo_from, yes=yes))
        if form is RepairFormat.JSON:
            echo_json(as_json({"model": part.model.name, **undone._asdict()}))
        else:
            echo(f"{undone.restored} restored, {undone.left} left because newer data exists")
        return
    loaded = proved_model(model, prefix)
    check_writable(save, undo_to)
    codes = frozenset() if remove is None else codes_named(remove.split(",")) - CREATABLE
    codes |= CREATABLE if create_groups else frozenset()
    options = AuditOptions(pace=Pace(max_rate, full_speed), ignore=ignore or ())
    parts = model_parts(loaded, target, database) if plan is None else [one_part(loaded, target, database)]
    begun, remains = datetime.now(), False
    printed: list[dict[str, Any]] = []
    for part in parts:
        if len(parts) > 1 and form is RepairFormat.TEXT:
            echo(Line(Meaning.HEADING(f"database {part.database}:")))
        if yes:
            to = undo_to or Path(f"keywright-undo-{begun:%Y%m%d-%H%M%S}.jsonl")
            to = numbered(to, part.database, len(parts))
            done = asyncio.run(_repaired(part, target, prefix, options, codes, plan, to))
            if form is RepairFormat.JSON:
                printed.append(_result_data(part, done))
            else:
                _print_result(done)
            remains |= bool(done.left or done.failed or done.waiting)
            continue
        with TemporaryDirectory(prefix="keywright-") as folder:
            path = numbered(save or Path(folder) / "plan", part.database, len(parts))
            found = (
                asyncio.run(_planned(part, target, prefix, options, codes, path))
                if plan is None
                else _saved_plan(plan, loaded)
            )
            if form is RepairFormat.JSON:
                printed.append(_plan_data(part, found, show_ids=show_ids))
            else:
                _show(found, show_ids=show_ids)
            remains |= bool(found.steps or found.left)
    if form is RepairFormat.JSON:
        echo_json(as_json(printed[0] if len(parts) == 1 else {"model": model, "databases": printed}))
    if remains:
        raise typer.Exit(1)


async def _planned(
    part: DatabasePart,
    url: str,
    prefix: str | None,
    options: AuditOptions,
    remove: frozenset[str],
    path: Path,
) -> RepairPlan:
    with Meter() as meter:
        async with connected(url, part, prefix) as db:
            return await plan_repair(db, part.model, options, path, remove, meter.show)


def _saved_plan(path: Path, model: Model) -> RepairPlan:
    plan = read_plan(path)
    if plan.model != model.name:
        raise UsageError(f"{path} is a plan for {plan.model}, not for {model.name}. Name that model.")
    return plan


async def _repaired(
    part: DatabasePart,
    url: str,
    prefix: str | None,
    options: AuditOptions,
    remove: frozenset[str],
    plan: Path | None,
    to: Path,
) -> Repair:
    saved = None if plan is None else _saved_plan(plan, part.model)
    with Meter() as meter:
        async with connected(url, part, prefix) as db:
            try:
                if saved is not None:
                    return await apply_saved(db, part.model, saved, to, meter.show)
                return await repaired(db, part.model, options, to, remove, meter.show)
            except OSError as error:
                raise UsageError(
                    f"{to} cannot be written: {error.strerror}. Free some space, or name another with "
                    "--undo-to."
                ) from error


async def _undo(part: DatabasePart, url: str, prefix: str | None, path: Path, *, yes: bool) -> Undone:
    if not yes:
        raise UsageError(f"restoring {path} changes data. Review the file, then add --yes.")
    async with connected(url, part, prefix) as db:
        return await undo(db, path, part.model.spaces)


def _show(plan: RepairPlan, *, show_ids: bool) -> None:
    echo(Line(Meaning.HEADING(plan.model), f": {plan.steps} steps"))
    for number, step in enumerate(plan.steps_in_order()):
        if number == SHOWN:
            echo(f"  … and {plan.steps - SHOWN} more; --save FILE keeps them all")
            break
        name = (
            step.name.decode("utf-8", "backslashreplace")
            if show_ids
            else masked_name(step.template, step.name)
        )
        does = f"; {step.does}" if step.does else ""
        action = (Meaning.WARNING if step.removes else Meaning.OK)(f"{step.action:12}")
        why = Meaning.MUTED(f"({step.code}: {step.reason}{does})")
        echo(Line("  ", action, " ", Meaning.NAME(name), "  ", why, hang=15))
    echo(*(_left(f"{count} of {code}, {why}") for code, count, why in plan.reasons()))
    if plan.steps:
        echo(UNCHANGED)


def _plan_data(part: DatabasePart, plan: RepairPlan, *, show_ids: bool) -> dict[str, Any]:
    steps = [
        {
            "action": step.action,
            "code": step.code,
            "template": step.template,
            "key": step.name.decode("utf-8", "backslashreplace")
            if show_ids
            else masked_name(step.template, step.name),
            "reason": step.reason,
            "does": step.does,
        }
        for step in islice(plan.steps_in_order(), LISTED)
    ]
    left = [{"code": code, "count": count, "reason": why} for code, count, why in plan.reasons()]
    return {**_head(part, applied=False), "steps": plan.steps, "listed": steps, "left": left}


def _result_data(part: DatabasePart, done: Repair) -> dict[str, Any]:
    failed = [{"template": template, "reason": why} for template, why in done.failed]
    undo = None if done.undo is None else str(done.undo)
    data = {**done._asdict(), "steps": done.steps, "failed": failed, "undo": undo}
    return {**_head(part, applied=True), **data}


def _head(part: DatabasePart, *, applied: bool) -> dict[str, Any]:
    number = {} if part.declared is None else {"database": part.declared}
    return {"model": part.model.name, **number, "applied": applied}


def _left(words: str) -> Line:
    return Line(Meaning.WARNING("left:"), f" {words}", hang=2)


def _print_result(done: Repair) -> None:
    listing = ", ".join(f"{count} {action}" for action, count in sorted(done.done.items())) or "nothing to do"
    echo(f"{done.steps} steps in {done.rounds} rounds: {listing}")
    if done.overtaken:
        echo(f"{done.overtaken} steps were overtaken: another writer had changed their keys")
    if done.waiting:
        echo(f"{done.waiting} steps need another audit, since data was completed: repair again")
    echo(*(_left(f"{template}: {why}") for template, why in done.failed))
    left = sorted(done.left.items())
    echo(*(_left(f"{count} of {code}, see `keywright explain {code}`") for code, count in left))
    if done.undo is not None:
        echo(f"removed data is in {done.undo}; keywright repair --undo restores it")
