"""`keywright explore`: a live keyspace in a browser, seen through its declaration."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer

from keywright.cli.audit import FullSpeedOption
from keywright.cli.infer import inferred_on_the_fly
from keywright.cli.output import echo
from keywright.cli.targets import (
    MODEL_HELP,
    DatabaseOption,
    EmbeddedOption,
    PrefixOption,
    UnprovedOption,
    UrlOption,
    bindings_of,
    database_named,
    default_model,
    model_parts,
    proved_model,
    server_url,
)
from keywright.engine import aconnect
from keywright.errors import UsageError
from keywright.keyspace import Binding, Keyspace, Secret
from keywright.tools.databases import numbers_with_keys
from keywright.tools.pace import Pace
from keywright.tools.plugins import load_model, model_names
from keywright.tools.presence import PresenceSample

__all__ = ["explore"]

TOKEN = "KEYWRIGHT_EXPLORER_TOKEN"


def explore(
    models: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="MODEL",
            help=f"{MODEL_HELP} Without any: model of [tool.keywright] in pyproject.toml; else the installed "
            "models that most keys of the server are of; if they are of others, a model is inferred. If "
            "there are no keys, all installed models are shown, if no name is of two.",
            show_default=False,
        ),
    ] = None,
    host: Annotated[
        str,
        typer.Option(rich_help_panel="Listening", help="Where to listen; beyond loopback a token is needed."),
    ] = "127.0.0.1",
    port: Annotated[
        int,
        typer.Option(
            min=0, max=65535, metavar="PORT", rich_help_panel="Listening", help="The port; 0 is any free one."
        ),
    ] = 8600,
    public_url: Annotated[
        str | None,
        typer.Option(
            metavar="URL",
            rich_help_panel="Listening",
            help="The address of the proxy in front, as in https://keys.example.org; a token is needed.",
            show_default=False,
        ),
    ] = None,
    url: UrlOption = None,
    embedded: EmbeddedOption = None,
    database: DatabaseOption = None,
    prefix: PrefixOption = None,
    write: Annotated[
        bool, typer.Option("--write", help="Allow edits, and repairs of the findings of an audit.")
    ] = False,
    show_unknown: Annotated[
        bool,
        typer.Option(
            "--show-unknown",
            help="Show the bytes of keys that no template matches, which may be secrets of other programs.",
        ),
    ] = False,
    undo: Annotated[
        Path | None,
        typer.Option(
            help="The undo file of repairs, else keywright-explorer.undo here.",
            show_default=False,
        ),
    ] = None,
    token: Annotated[
        str | None,
        typer.Option(
            rich_help_panel="Listening",
            help=f"The token that browsers must give; better in {TOKEN}, where no other user sees it.",
            show_default=False,
        ),
    ] = None,
    beside: Annotated[
        list[str] | None,
        typer.Option(
            metavar="URL#PREFIX",
            rich_help_panel="Server",
            help="A database to compare with: another server, another prefix, or both.",
            show_default=False,
        ),
    ] = None,
    full_speed: FullSpeedOption = False,
    unproved: UnprovedOption = False,
) -> None:
    """Browse a live keyspace through its declaration. Read only, unless --write is given.

    Counts come from a survey that runs in the background; nothing scans the keyspace while a page loads.
    Secrets are never shown. It needs only reading commands, so an auditor's user will do. SIGINT and SIGTERM
    end it.

    Exits with 0 on SIGINT and SIGTERM, 2 when no server is given, it cannot listen or would let anybody in, 3
    when the server cannot be reached at the start.

    Examples:
        keywright explore shop.schema:shop --url redis://localhost:6379/0
        keywright explore shop.schema:shop --write --port 8700
        keywright explore shop.schema:shop --beside '#staging'
    """
    from keywright.explorer import ExplorerSettings, serve

    pace = Pace(full_speed=full_speed)
    given = token or os.environ.get(TOKEN)
    settings = ExplorerSettings(
        host=host,
        port=port,
        token=Secret(given) if given else None,
        public_url=public_url,
        write=write,
        show_unknown=show_unknown,
        undo=undo,
        survey_pace=pace,
    )
    settings.check()
    if write and unproved:
        raise UsageError("--write edits and repairs, which needs a proved model. Drop --write or --unproved.")
    declaration = None
    configured = None if models else default_model()
    named, target, number = models or ([configured] if configured else []), None, database
    if not named:
        target = server_url(url, embedded)
        number = database_named(target, database)
        named = model_names() if prefix is not None or write else asyncio.run(_present(target, number))
    if named:
        model = proved_model(",".join(named), prefix, unproved=unproved)
        shown = [load_model(name) for name in named]
        target = target or server_url(url, embedded)
    elif prefix is not None or write or target is None:
        option = "--write" if write else "--prefix"
        raise UsageError(f"{option} needs a MODEL, and none is installed. Name one, or drop {option}.")
    else:
        model, declaration = inferred_on_the_fly(target, pace, number)
        shown = [model]
    parts = model_parts(model, target, database)
    spaces = [space for part in parts for space in part.model.spaces]
    asyncio.run(
        serve(
            shown,
            settings,
            url=target,
            database=database,
            bindings=bindings_of(spaces, prefix),
            declaration=declaration,
            beside=[_side(each, target, spaces, prefix) for each in beside or ()],
            on_listening=lambda address: echo(f"exploring at {address}"),
        )
    )


async def _present(url: str, database: int | None) -> list[str]:
    """Return the installed models that most keys are of; none if they are of others, all without keys."""
    models = {name: load_model(name) for name in model_names()}
    if not models:
        return []
    async with aconnect(url) as db:
        numbers = [database] if database is not None else await numbers_with_keys(db) or [0]
    sample = PresenceSample(models)
    for number in numbers:
        async with aconnect(url, db=number) as db:
            await sample.read(db, number)
    if not sample.owners:
        return [*models]
    found = sample.models
    if found:
        echo(f"no MODEL is given, and most keys are of {', '.join(found)}", err=True)
    return found


def _side(
    text: str, own_url: str, spaces: Sequence[Keyspace], own_prefix: str | None
) -> tuple[str, list[Binding]]:
    """Parse [URL][#PREFIX]; what is left out is as in the explored database."""
    url, mark, prefix = text.partition("#")
    if not url and not prefix:
        raise UsageError("--beside needs a URL, a #PREFIX or both, as in redis://other#staging.")
    return url or own_url, bindings_of(spaces, prefix if mark else own_prefix)
