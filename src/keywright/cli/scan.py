"""`keywright scan`: the keys of a model by template, found with a cursor."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence
from contextlib import aclosing
from enum import Enum
from typing import Annotated

import msgspec
import typer

from keywright.cli.audit import FullSpeedOption, MaxRateOption, PrefixOption
from keywright.cli.output import echo, echo_json
from keywright.cli.progress import Meter
from keywright.cli.targets import (
    DatabaseOption,
    EmbeddedOption,
    OptionalModel,
    UnprovedOption,
    UrlOption,
    connected,
    default_model,
    model_parts,
    proved_model,
    server_url,
    setting,
)
from keywright.errors import UsageError
from keywright.keyspace import Key
from keywright.tools.databases import DatabasePart
from keywright.tools.key_walks import Listed, Wanted, kind_named, list_keys
from keywright.tools.pace import Pace
from keywright.tools.plugins import load_model

__all__ = ["scan"]

MOST_VALUES = 1000


class ScanFormat(Enum):
    TEXT = "text"
    JSON = "json"


def scan(
    model: OptionalModel = None,
    template: Annotated[
        str | None,
        typer.Argument(
            metavar="TEMPLATE",
            help="A template as it is declared, or the name of its class. Without one: all.",
            show_default=False,
        ),
    ] = None,
    url: UrlOption = None,
    embedded: EmbeddedOption = None,
    database: DatabaseOption = None,
    prefix: PrefixOption = None,
    match: Annotated[
        str | None,
        typer.Option(
            metavar="GLOB", help="A glob that the full names match, as in 'shop:*:7'.", show_default=False
        ),
    ] = None,
    where: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME=VALUE", help="A variable of the TEMPLATE, as in order=a17.", show_default=False
        ),
    ] = None,
    values: Annotated[
        bool, typer.Option("--values", rich_help_panel="Output", help="Read the values and expiries too.")
    ] = False,
    limit: Annotated[
        int | None,
        typer.Option(
            min=1, rich_help_panel="Output", help="Stop after so many keys. Else all.", show_default=False
        ),
    ] = None,
    entries: Annotated[
        int,
        typer.Option(min=1, max=MOST_VALUES, rich_help_panel="Output", help="The most entries of a value."),
    ] = 20,
    max_rate: MaxRateOption = None,
    full_speed: FullSpeedOption = False,
    form: Annotated[
        ScanFormat,
        typer.Option(
            "--format",
            rich_help_panel="Output",
            help="How to print: for people, or a line of JSON for each key.",
        ),
    ] = ScanFormat.TEXT,
    unproved: UnprovedOption = False,
) -> None:
    """List the keys of a model, or of one template, with SCAN. Read only.

    Prints names, with --format json a line for each key: its name, template and decoded variables, and with
    --values its time to live and decoded value. Secrets are masked, as in `keywright get`. Globs of a server
    are wider than templates: names of other templates are left out.

    Exits with 2 for a wrong invocation, 3 when it could not run.

    Examples:
        keywright scan shop.schema:shop --url redis://localhost:6379/0
        keywright scan shop.schema:shop 'order:<order>' --values --limit 20
        keywright scan shop.schema:shop Order --where order=a17 --format json
    """
    name, template = _named(model, template)
    loaded, target = proved_model(name, prefix, unproved=unproved), server_url(url, embedded)
    kind = None if template is None else kind_named(loaded.spaces, template)
    if where and kind is None:
        raise UsageError("--where is for the variables of one template. Name a TEMPLATE too.")
    wanted = Wanted(kind, {} if kind is None else dict(_variable(kind, text) for text in where or ()), match)
    parts = [
        part
        for part in model_parts(loaded, target, database)
        if kind is None or kind.declaration.space in part.model.spaces
    ]
    asyncio.run(
        _run(parts, target, prefix, wanted, entries if values else 0, limit, Pace(max_rate, full_speed), form)
    )


def _named(model: str | None, template: str | None) -> tuple[str, str | None]:
    """Return the names of the model and the template; a single argument may be either."""
    if model is None:
        return str(default_model(required=True)), None
    configured, _ = setting("model")
    if template is None and configured is not None:
        try:
            kind_named(load_model(configured).spaces, model)
        except UsageError:
            return model, None
        return str(default_model()), model
    return model, template


def _variable(kind: type[Key], text: str) -> tuple[str, object]:
    name, equals, value = text.partition("=")
    alphabets = kind.declaration.template.alphabets
    if not equals or name not in alphabets:
        known = ", ".join(alphabets) or "none"
        raise UsageError(
            f"--where {text!r} does not name a variable. Write NAME=VALUE; the variables are {known}."
        )
    try:
        return name, alphabets[name].parse(value)
    except ValueError as error:
        raise UsageError(f"--where {text!r}: <{name}> must be {alphabets[name].expected}.") from error


async def _run(
    parts: Sequence[DatabasePart],
    url: str,
    prefix: str | None,
    wanted: Wanted,
    values: int,
    limit: int | None,
    pace: Pace,
    form: ScanFormat,
) -> None:
    left = limit
    for part in parts:
        with Meter() as meter:
            async with connected(url, part, prefix) as db:
                keys = list_keys(
                    db, part.model.spaces, wanted, values=values, pace=pace, on_progress=meter.show
                )
                async with aclosing(keys):
                    async for listed in keys:
                        _print(listed, form)
                        left = None if left is None else left - 1
                        if left == 0:
                            return


def _print(listed: Listed, form: ScanFormat) -> None:
    data = listed.as_data()
    if form is ScanFormat.JSON:
        echo_json(msgspec.json.encode(data).decode())
        return
    more = []
    if "ttl_ms" in data:
        ttl = data["ttl_ms"]
        more = [
            "no expiry" if ttl is None else f"expires in {ttl / 1000:,.0f} s",
            json.dumps(data["value"], ensure_ascii=False) if "value" in data else f"({data['problem']})",
        ]
    echo("  ".join([data["name"], *more]))
