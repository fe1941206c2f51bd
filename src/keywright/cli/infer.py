"""`keywright infer`: write a declaration from what exists."""

from __future__ import annotations

import asyncio
from contextlib import ExitStack
from pathlib import Path
from typing import Annotated

import typer

from keywright.cli.audit import MaxRateOption
from keywright.cli.files import check_writable, open_source, write_file
from keywright.cli.output import echo, echo_exact
from keywright.cli.progress import Meter
from keywright.cli.targets import EmbeddedOption, UrlOption, server_url
from keywright.engine import aconnect
from keywright.errors import UsageError
from keywright.tools.infer import Survey, inferred_model, names_in, survey
from keywright.tools.infer import infer as inferred
from keywright.tools.infer.update import added_to, append_to, module_at
from keywright.tools.model import Model

__all__ = ["infer", "model_on_the_fly"]


def infer(
    url: UrlOption = None,
    embedded: EmbeddedOption = None,
    names: Annotated[
        str | None,
        typer.Option(
            metavar="FILE",
            help="Instead of a server: a file of names, as redis-cli --scan prints them; - for stdin.",
            show_default=False,
        ),
    ] = None,
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", help="Write the module there instead.", show_default=False),
    ] = None,
    update: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Append to this module what it does not declare; the rest stays as it is.",
            show_default=False,
        ),
    ] = None,
    space: Annotated[str, typer.Option(help="The name of the keyspace in the module.")] = "inferred",
    max_rate: MaxRateOption = None,
    primary: Annotated[bool, typer.Option("--primary", help="Read from primaries, not replicas.")] = False,
    show_ids: Annotated[
        bool, typer.Option("--show-ids", help="Show a name of each template in a comment.")
    ] = False,
) -> None:
    """Write a declaration from the keys of a server or from a list of names. Read only.

    Walks all names with SCAN and reads a bounded part of some keys of each kind. The module passes `keywright
    check`; doubts in it are marked `guess`. The coverage is printed on standard error.

    Exits with 2 for a wrong invocation, 3 when it could not run.
    """
    check_writable(output, update)
    if output is not None and update is not None:
        raise UsageError("--update changes a module, --output makes one. Give one of them.")
    module = None if update is None else module_at(update)
    if names is not None:
        if url or embedded:
            raise UsageError("--names is instead of a server. Give one of them.")
        with ExitStack() as opened:
            found = Survey(names_in(open_source(names, opened, "a file of names")), {})
        origin = "a list of names"
    else:
        found = asyncio.run(_survey(server_url(url, embedded), max_rate, primary=primary))
        origin = "a server"
    if update is not None and module is not None:
        addition = added_to(module, found.sample, found.facts, show_ids=show_ids)
        if addition.text:
            append_to(update, addition.text)
        echo(*addition.coverage, err=True)
        return
    result = inferred(found.sample, found.facts, space=space, origin=origin, show_ids=show_ids)
    if output is not None:
        write_file(output, result.text)
    else:
        echo_exact(result.text, nl=False)
    echo(*result.coverage, err=True)


def model_on_the_fly(url: str, max_rate: int | None = None) -> Model:
    """Return a model that is inferred from a server, and print to standard error that it is."""
    found = asyncio.run(_survey(url, max_rate, primary=False))
    result = inferred(found.sample, found.facts, origin="a server")
    echo("no MODEL is given, so one is inferred from the server; keywright infer -o FILE saves it", err=True)
    echo(*result.coverage[:1], err=True)
    return inferred_model(result)


async def _survey(url: str, max_rate: int | None, *, primary: bool) -> Survey:
    with Meter() as meter:
        async with aconnect(url) as db:
            return await survey(db, max_rate=max_rate, prefer_replica=not primary, on_progress=meter.show)
