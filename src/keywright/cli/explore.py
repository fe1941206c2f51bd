"""`keywright explore`: a live keyspace in a browser, seen through its declaration."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path
from typing import Annotated

import typer

from keywright.cli.infer import model_on_the_fly
from keywright.cli.output import echo
from keywright.cli.targets import (
    MODEL_HELP,
    EmbeddedOption,
    UnprovedOption,
    UrlOption,
    bindings_of,
    proved_model,
    server_url,
)
from keywright.errors import UsageError
from keywright.keyspace import Secret
from keywright.tools.plugins import model_names

__all__ = ["explore"]

TOKEN = "KEYWRIGHT_EXPLORER_TOKEN"


def explore(
    models: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[MODEL]…",
            help=f"{MODEL_HELP} Without any, all installed models are shown together, if no name is "
            "of two; if none is installed, one is inferred from the server.",
            show_default=False,
        ),
    ] = None,
    host: Annotated[
        str, typer.Option(help="Where to listen; beyond loopback a token is needed.")
    ] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=0, max=65535, help="0 is any free one.")] = 8600,
    public_url: Annotated[
        str | None,
        typer.Option(
            help="The address of the proxy in front, as in https://keys.example.org; a token is needed.",
            show_default=False,
        ),
    ] = None,
    url: UrlOption = None,
    embedded: EmbeddedOption = None,
    prefix: Annotated[
        str | None, typer.Option(help="The prefix of names, if not the declared one.", show_default=False)
    ] = None,
    write: Annotated[
        bool, typer.Option("--write", help="Allow repairs of the findings of an audit.")
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
            help=f"The token that browsers must give; better in {TOKEN}, where no other user sees it.",
            show_default=False,
        ),
    ] = None,
    unproved: UnprovedOption = False,
) -> None:
    """Browse a live keyspace through its declaration. Read only, unless --write is given.

    Counts come from a survey that runs in the background; nothing scans the keyspace while a page loads.
    Secrets are never shown. It needs only reading commands, so an auditor's user will do. SIGINT and SIGTERM
    end it.

    Exits with 0 on SIGINT and SIGTERM, 2 when no server is given, it cannot listen or would let anybody in, 3
    when the server cannot be reached at the start.
    """
    from keywright.explorer import ExplorerSettings, serve

    given = token or os.environ.get(TOKEN)
    settings = ExplorerSettings(
        host=host,
        port=port,
        token=Secret(given) if given else None,
        public_url=public_url,
        write=write,
        show_unknown=show_unknown,
        undo=undo,
    )
    settings.check()
    if write and unproved:
        raise UsageError("--write repairs, which needs a proved model. Drop --write or --unproved.")
    named = models or model_names()
    if named:
        spaces = proved_model(",".join(named), prefix, unproved=unproved).spaces
    elif prefix is not None or write:
        option = "--write" if write else "--prefix"
        raise UsageError(f"{option} needs a MODEL, and none is installed. Name one, or drop {option}.")
    else:
        spaces = model_on_the_fly(server_url(url, embedded)).spaces
    asyncio.run(
        serve(
            spaces,
            settings,
            url=server_url(url, embedded),
            bindings=bindings_of(spaces, prefix),
            on_listening=lambda address: echo(f"exploring at {address}"),
        )
    )
