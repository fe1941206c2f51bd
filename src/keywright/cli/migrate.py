"""`keywright migrate`: upgrade old data, and find out whether old declarations may be dropped."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from enum import Enum
from pathlib import Path
from typing import Annotated, Any, NamedTuple, TypeVar

import typer

from keywright.cli.audit import FullSpeedOption, JobsOption, MaxRateOption, planned
from keywright.cli.files import check_writable
from keywright.cli.output import UNCHANGED, as_json, echo, echo_json, note
from keywright.cli.progress import Meter
from keywright.cli.targets import (
    EmbeddedOption,
    ModelName,
    PrefixOption,
    UrlOption,
    bindings_of,
    one_part,
    proved_model,
    server_url,
)
from keywright.engine import AsyncDatabase, aconnect
from keywright.errors import UsageError
from keywright.tools.audit.findings import masked_name
from keywright.tools.jobs import JobPlan
from keywright.tools.layout import Line, Meaning
from keywright.tools.migrate import (
    Bookmark,
    Contract,
    ConversionRoute,
    Refusal,
    SweepOptions,
    SweepResult,
    convert_all,
    sweep,
)
from keywright.tools.migrate import contract as contracted
from keywright.tools.model import Model
from keywright.tools.pace import Pace

__all__ = ["migrate"]

T = TypeVar("T")


class MigrateFormat(Enum):
    TEXT = "text"
    JSON = "json"


class _Task(NamedTuple):
    """One invocation."""

    model: Model
    url: str
    prefix: str | None
    options: SweepOptions
    bookmark: Bookmark
    config: Path | None
    plan: JobPlan | None


def migrate(
    model: ModelName,
    url: UrlOption = None,
    embedded: EmbeddedOption = None,
    prefix: PrefixOption = None,
    layout: Annotated[
        str | None,
        typer.Option(help="Convert to this layout instead: spectacles --layout drc.", show_default=False),
    ] = None,
    to_prefix: Annotated[
        str | None,
        typer.Option(help="What the names of the new layout begin with.", show_default=False),
    ] = None,
    contract: Annotated[
        bool, typer.Option("--contract", help="Only audit whether old data is left.")
    ] = False,
    discard_old: Annotated[
        bool,
        typer.Option("--discard-old", help="Remove a former name if the present one has other content."),
    ] = False,
    from_version: Annotated[
        str | None,
        typer.Option(
            help="Also move names that differ in this version only, as in v0json.", show_default=False
        ),
    ] = None,
    max_rate: MaxRateOption = None,
    full_speed: FullSpeedOption = False,
    jobs: JobsOption = 1,
    limit: Annotated[
        int | None, typer.Option(min=1, help="Plan from so many names only.", show_default=False)
    ] = None,
    resume: Annotated[
        Path | None,
        typer.Option(help="Save the progress in this file, and resume from it.", show_default=False),
    ] = None,
    config: Annotated[
        Path | None,
        typer.Option(
            help="A configuration file for the model's own migration, where it has one.",
            show_default=False,
        ),
    ] = None,
    form: Annotated[
        MigrateFormat,
        typer.Option("--format", rich_help_panel="Output", help="How to print: for people, or for programs."),
    ] = MigrateFormat.TEXT,
    show_ids: Annotated[
        bool, typer.Option("--show-ids", rich_help_panel="Output", help="Show names, not masked.")
    ] = False,
    yes: Annotated[bool, typer.Option("--yes", help="Do it. Else old keys are only counted.")] = False,
) -> None:
    """Bring stored data up to date with its declaration: former names, older shapes, former codecs.

    Programs may run meanwhile: reads upgrade the keys they touch, and every step uses an optimistic lock. It
    may be stopped and started again at any time; with --resume it continues where it was stopped. Afterwards
    an audit reports whether the old declarations may be dropped. With --layout one layout is converted into
    another, and the old one stays.

    Exits with 0 when nothing old is left, 1 when something is, 2 for a wrong invocation, 3 when it could not
    run.

    Examples:
        keywright migrate shop.schema:shop --url redis://localhost:6379/0
        keywright migrate shop.schema:shop --yes --resume progress
        keywright migrate shop.schema:shop --contract
    """
    target = server_url(url, embedded)
    loaded = one_part(proved_model(model, prefix), target).model
    options = SweepOptions(yes, Pace(max_rate, full_speed), None if yes else limit, discard_old, from_version)
    check_writable(resume)
    given = {"layout": layout, "prefix": prefix, "to-prefix": to_prefix, "from-version": from_version}
    name = " ".join(
        [
            f"migrate {model}",
            *(f"--{option} {value}" for option, value in given.items() if value is not None),
            *(["--discard-old"] if discard_old else []),
        ]
    )
    bookmark = Bookmark(name) if resume is None or not yes else Bookmark.at(resume, name)
    plan = planned(jobs, model, target, prefix, None)
    if plan is not None and (layout is not None or (yes and loaded.sweep is not None)):
        what = "a conversion of the layout" if layout is not None else f"the own migration of {loaded.name}"
        raise UsageError(f"{what} runs in one process. Leave out --jobs.")
    task = _Task(loaded, target, prefix, options, bookmark, config, plan)
    if layout is not None:
        _convert(task, layout, to_prefix, form)
        return
    swept = None if contract else _stoppable(_sweep(task))
    ended = _stoppable(_contract(task)) if contract or yes else None
    _print(_Summary(loaded.name, swept, ended, applied=yes, show_ids=show_ids), form)
    if _old(swept, ended):
        raise typer.Exit(1)


def _old(swept: SweepResult | None, ended: Contract | None) -> bool:
    if ended is not None:
        return not ended.ready or bool(swept and swept.left)
    return bool(swept and (swept.done or swept.left))


async def _sweep(task: _Task) -> SweepResult:
    own = task.model.sweep if task.options.apply else None
    with Meter() as meter:
        async with _connected(task) as db:
            if own is not None:
                return await own(db, task.options, task.config, meter.show)
            return await sweep(
                db,
                task.model.spaces,
                task.options,
                bookmark=task.bookmark,
                on_progress=meter.show,
                plan=task.plan,
            )


async def _contract(task: _Task) -> Contract:
    with Meter() as meter:
        async with _connected(task) as db:
            return await contracted(
                db, task.model, pace=task.options.pace, on_progress=meter.show, plan=task.plan
            )


def _connected(task: _Task) -> aconnect:
    return aconnect(task.url, *bindings_of(task.model.spaces, task.prefix))


def _convert(task: _Task, layout: str, to_prefix: str | None, form: MigrateFormat) -> None:
    chosen = _route(task, layout, to_prefix)

    async def count(db: AsyncDatabase) -> int:
        return await chosen.conversion.size(db)

    async def convert(db: AsyncDatabase) -> int:
        with Meter() as meter:
            return await convert_all(
                db,
                chosen.conversion,
                pace=task.options.pace,
                bookmark=task.bookmark,
                on_progress=meter.show,
            )

    async def run() -> int:
        async with aconnect(task.url, *chosen.bindings) as db:
            return await (convert(db) if task.options.apply else count(db))

    number, applied = _stoppable(run()), task.options.apply
    if form is MigrateFormat.JSON:
        counted = {"entities" if applied else "pages": number, "left_out": list(chosen.conversion.left_out)}
        echo_json(as_json({"model": task.model.name, "layout": layout, "applied": applied, **counted}))
    else:
        echo(f"{number:,} entities converted." if applied else f"about {number:,} pages to convert.")
        for words in chosen.conversion.left_out:
            echo(Line(Meaning.WARNING("not converted:"), f" {words}", hang=2))
        if not applied:
            echo(UNCHANGED)
    if number and not applied:
        raise typer.Exit(1)


def _route(task: _Task, layout: str, to_prefix: str | None) -> ConversionRoute:
    known = task.model.conversions
    if layout not in known:
        there = ", ".join(known) or "none"
        raise UsageError(
            f"no conversion from {task.model.name!r} to {layout!r} exists. Available conversions: {there}."
        )
    return known[layout](task.prefix, to_prefix)


def _stoppable(work: Coroutine[Any, Any, T]) -> T:
    """Run a migration. SIGINT ends it between two pages, and finished pages stay migrated."""
    try:
        return asyncio.run(work)
    except KeyboardInterrupt:
        note("stopped. Migrated keys stay migrated; run it again to continue.")
        raise typer.Exit(1) from None


class _Summary(NamedTuple):
    """The result of a migration, for printing."""

    model: str
    swept: SweepResult | None
    ended: Contract | None
    applied: bool
    show_ids: bool

    def as_data(self) -> dict[str, Any]:
        data: dict[str, Any] = {"model": self.model, "applied": self.applied}
        if self.swept is not None:
            data["seen"], data["total"] = self.swept.seen, self.swept.total
            data["seconds"] = round(self.swept.seconds, 3)
            data["templates"] = {
                template: {
                    "moved": counts.moved,
                    "upgraded": counts.upgraded,
                    "both": counts.both,
                    "refused": counts.refused,
                }
                for template, counts in sorted(self.swept.counts.items())
            }
            data["refusals"] = [
                {"key": self.key(each), "reason": self.reason(each)} for each in self.swept.refusals
            ]
        if self.ended is not None:
            data["contract"] = {
                "ready": self.ended.ready,
                "old": self.ended.old,
                "unknown": self.ended.unknown,
                "droppable": self.ended.droppable,
            }
        return data

    def key(self, refusal: Refusal) -> str:
        if self.show_ids:
            return refusal.name.decode("utf-8", "backslashreplace")
        return masked_name(refusal.template, refusal.name)

    def reason(self, refusal: Refusal) -> str:
        return refusal.detail if self.show_ids and refusal.detail else refusal.reason


def _print(summary: _Summary, form: MigrateFormat) -> None:
    if form is MigrateFormat.JSON:
        echo_json(as_json(summary.as_data()))
        return
    if summary.swept is not None:
        _print_sweep(summary, summary.swept)
    if summary.ended is not None:
        _print_contract(summary.ended)


def _print_sweep(summary: _Summary, swept: SweepResult) -> None:
    verb = "" if summary.applied else "to be "
    for template, counts in sorted(swept.counts.items()):
        words = [
            f"{number:,} {what}"
            for number, what in (
                (counts.moved, f"{verb}moved"),
                (counts.upgraded, f"{verb}upgraded"),
                (counts.both, "under both names, and different"),
                (counts.refused, "that cannot be upgraded"),
            )
            if number
        ]
        if words:
            echo(Line(Meaning.NAME(template), f": {', '.join(words)}", hang=2))
    for refusal in swept.refusals:
        name = Meaning.NAME(summary.key(refusal))
        echo(Line(Meaning.WARNING("left:"), " ", name, f": {summary.reason(refusal)}", hang=2))
    echo(f"{summary.model}: {swept.seen:,} names seen in {swept.seconds:.1f} s.")
    if not summary.applied:
        echo(UNCHANGED if swept.done else Line(Meaning.OK("Nothing is old.")))


def _print_contract(ended: Contract) -> None:
    for template, number in sorted(ended.old.items()):
        echo(Line(Meaning.WARNING("old:"), f" {number:,} of ", Meaning.NAME(template), hang=2))
    for template, why in sorted(ended.unknown.items()):
        echo(Line(Meaning.WARNING("not known:"), " ", Meaning.NAME(template), f": {why}", hang=2))
    if not ended.ready:
        found = "found data that needs them" if ended.old else "could not check all data"
        echo(f"The old declarations must stay: an audit {found}.")
        return
    echo(Line(Meaning.OK("An audit found nothing old.")))
    for words in ended.droppable:
        echo(Line(Meaning.OK("may be dropped:"), f" {words}", hang=2))
