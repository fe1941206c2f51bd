"""`keywright repair`: a plan from the findings of an audit, its application, and undo."""

from __future__ import annotations

import asyncio
from datetime import datetime
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Annotated

import typer

from keywright.cli.audit import IgnoreOption, MaxRateOption, PrefixOption
from keywright.cli.files import check_writable
from keywright.cli.output import echo
from keywright.cli.targets import EmbeddedOption, ModelName, UrlOption, bindings_of, proved_model, server_url
from keywright.engine import aconnect
from keywright.errors import UsageError
from keywright.tools.audit import AuditOptions, codes_named
from keywright.tools.audit.findings import masked_name
from keywright.tools.model import Model
from keywright.tools.plugins import load_model
from keywright.tools.repair import Repair, RepairPlan, read_plan, undo
from keywright.tools.repair import repair as repaired
from keywright.tools.repair.rounds import apply_saved, plan_repair
from keywright.tools.repair.undo import Undone

__all__ = ["repair"]

SHOWN = 40


def repair(
    model: ModelName,
    url: UrlOption = None,
    embedded: EmbeddedOption = None,
    prefix: PrefixOption = None,
    remove: Annotated[
        str | None,
        typer.Option(
            help="Findings whose only repair is removal, to be removed: unknown,undecodable,… or all.",
            show_default=False,
        ),
    ] = None,
    save: Annotated[Path | None, typer.Option(help="Write the plan to a file.", show_default=False)] = None,
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
    ignore: IgnoreOption = None,
    show_ids: Annotated[bool, typer.Option("--show-ids", help="Show names, not masked.")] = False,
    yes: Annotated[bool, typer.Option("--yes", help="Do it. Else only the plan is shown.")] = False,
) -> None:
    """Repair the findings of an audit. Shows a plan; changes nothing without --yes.

    Each step checks its finding again before it writes. Findings without a safe repair are listed and left.
    Data is only removed with --remove, and removed data goes to an undo file, for --undo.

    Exits with 0 when nothing is left to do, 1 when something is, 2 for a wrong invocation, 3 when it could
    not run.
    """
    target = server_url(url, embedded)
    if undo_from is not None:
        # Proved or not: it puts back what the file holds, and no template decides.
        asyncio.run(_undo(load_model(model), target, prefix, undo_from, yes=yes))
        return
    loaded = proved_model(model, prefix)
    check_writable(save, undo_to)
    codes = frozenset() if remove is None else codes_named(remove.split(","))
    options = AuditOptions(max_rate=max_rate, ignore=ignore or ())
    if yes:
        to = undo_to or Path(f"keywright-undo-{datetime.now():%Y%m%d-%H%M%S}.jsonl")
        done = asyncio.run(_repaired(loaded, target, prefix, options, codes, plan, to))
        _print_result(done)
        if done.left or done.failed or done.waiting:
            raise typer.Exit(1)
        return
    with TemporaryDirectory(prefix="keywright-") as folder:
        path = save or Path(folder) / "plan"
        found = (
            asyncio.run(_planned(loaded, target, prefix, options, codes, path))
            if plan is None
            else _saved_plan(plan, loaded)
        )
        _show(found, show_ids=show_ids)
    if found.steps or found.left:
        raise typer.Exit(1)


async def _planned(
    model: Model, url: str, prefix: str | None, options: AuditOptions, remove: frozenset[str], path: Path
) -> RepairPlan:
    async with aconnect(url, *bindings_of(model.spaces, prefix)) as db:
        return await plan_repair(db, model, options, path, remove)


def _saved_plan(path: Path, model: Model) -> RepairPlan:
    plan = read_plan(path)
    if plan.model != model.name:
        raise UsageError(f"{path} is a plan for {plan.model}, not for {model.name}. Name that model.")
    return plan


async def _repaired(
    model: Model,
    url: str,
    prefix: str | None,
    options: AuditOptions,
    remove: frozenset[str],
    plan: Path | None,
    to: Path,
) -> Repair:
    saved = None if plan is None else _saved_plan(plan, model)
    async with aconnect(url, *bindings_of(model.spaces, prefix)) as db:
        try:
            if saved is not None:
                return await apply_saved(db, model, saved, to)
            return await repaired(db, model, options, to, remove)
        except OSError as error:
            raise UsageError(
                f"{to} cannot be written: {error.strerror}. Free some space, or name another with --undo-to."
            ) from error


async def _undo(model: Model, url: str, prefix: str | None, path: Path, *, yes: bool) -> None:
    if not yes:
        raise UsageError(f"restoring {path} changes data. Review the file, then add --yes.")
    async with aconnect(url, *bindings_of(model.spaces, prefix)) as db:
        undone: Undone = await undo(db, path, model.spaces)
    echo(f"{undone.restored} restored, {undone.left} left because newer data exists")


def _show(plan: RepairPlan, *, show_ids: bool) -> None:
    echo(f"{plan.model}: {plan.steps} steps")
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
        echo(f"  {step.action:12} {name}  ({step.code}: {step.reason}{does})")
    for code, count, why in plan.reasons():
        echo(f"left: {count} of {code}, {why}")
    if plan.steps:
        echo("Nothing was changed. Add --yes to do it.")


def _print_result(done: Repair) -> None:
    listing = ", ".join(f"{count} {action}" for action, count in sorted(done.done.items())) or "nothing to do"
    echo(f"{done.steps} steps in {done.rounds} rounds: {listing}")
    if done.overtaken:
        echo(f"{done.overtaken} steps were overtaken: another writer had changed their keys")
    if done.waiting:
        echo(f"{done.waiting} steps need another audit, since data was completed: repair again")
    for template, why in done.failed:
        echo(f"left: {template}: {why}")
    for code, count in sorted(done.left.items()):
        echo(f"left: {count} of {code}, see docs/findings/{code}.md")
    if done.undo is not None:
        echo(f"removed data is in {done.undo}; keywright repair --undo restores it")
