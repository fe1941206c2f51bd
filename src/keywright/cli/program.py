"""The commands of `keywright`, their options and exit codes.

0: success. 1: findings, or invalid data. 2: wrong usage. 3: the server is not reachable. Each KeywrightError
carries its own.
"""

from __future__ import annotations

import os
import traceback
from collections.abc import Callable, Sequence
from enum import Enum
from importlib import import_module
from importlib.metadata import version
from typing import Annotated, Any

import typer
from typer.core import TyperGroup
from typer.main import get_command, get_group

from keywright.cli.output import as_json, echo, echo_json
from keywright.cli.targets import (
    EmbeddedOption,
    ModelName,
    UnprovedOption,
    UrlOption,
    bindings_of,
    proved_model,
    server_url,
)
from keywright.cli.tour import take_tour
from keywright.engine import connect
from keywright.errors import DeclarationError, KeywrightError, UsageError, dependencies_of
from keywright.keyspace import Finding, Keyspace
from keywright.tools.check import CheckReport, Proof, prove_model
from keywright.tools.describe.inspection import LIMIT, Inspection, inspect
from keywright.tools.describe.plain import inspected
from keywright.tools.plugins import command_names, distribution_of, install_hint, load_command, load_model

__all__ = ["app"]


# Each is a module here with a command of the same name; others arrive by entry point.
COMMANDS = ("acl", "audit", "diff", "docs", "explore", "infer", "migrate", "recover", "repair", "stats")


class _Commands(TyperGroup):
    """Import a command when it is called. Exit with the code of an error and its message, not a traceback."""

    def list_commands(self, ctx: typer.Context) -> list[str]:  # type: ignore[override]  # as in invoke
        return [*COMMANDS, *super().list_commands(ctx), *command_names()]

    def get_command(self, ctx: typer.Context, name: str) -> Any:  # type: ignore[override]  # as in invoke
        if name in COMMANDS:
            return _command(name, getattr(import_module(f"keywright.cli.{name}"), name))
        if name in command_names():
            try:
                return _command(name, load_command(name))
            except KeywrightError as error:
                return _unavailable(name, error)
        hint = install_hint(name)
        if hint is not None:
            raise UsageError(f"the command {name!r} is not installed. Install it with: {hint}")
        return super().get_command(ctx, name)

    def invoke(self, ctx: typer.Context) -> Any:  # type: ignore[override]  # typer makes no other contexts
        try:
            return self._invoked(ctx)
        except KeywrightError as error:
            if ctx.params.get("debug"):
                echo(*"".join(traceback.format_exception(error)).split("\n"), err=True)
            else:
                echo(*f"error: {error}".split("\n"), err=True)
            raise typer.Exit(error.exit_code) from error

    def _invoked(self, ctx: typer.Context) -> Any:
        try:
            return super().invoke(ctx)
        except ModuleNotFoundError:
            # A distribution that was installed without its dependencies shows it only here.
            command = ctx.invoked_subcommand or ""
            with dependencies_of(f"`keywright {command}`", install=distribution_of(command)):
                raise


app = typer.Typer(
    cls=_Commands,
    add_completion=False,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _command(name: str, part: Callable[..., None] | typer.Typer) -> Any:
    if isinstance(part, typer.Typer):
        command: Any = get_group(part)
    else:
        alone = typer.Typer(add_completion=False, pretty_exceptions_enable=False, rich_markup_mode=None)
        alone.command()(part)
        command = get_command(alone)
    command.name = name
    return command


def _unavailable(name: str, error: KeywrightError) -> Any:
    """Return a command that raises why it could not be loaded, so that the others can still be listed."""

    def refuse() -> None:
        raise error

    command = _command(name, refuse)
    command.help = f"(not available) {error}"
    command.add_help_option = False
    command.ignore_unknown_options = command.allow_extra_args = True
    return command


class Format(Enum):
    TEXT = "text"
    JSON = "json"


def _print_version(wanted: bool) -> None:  # typer calls it with the flag's value
    if wanted:
        echo(f"keywright {version('keywright')}")
        raise typer.Exit


@app.callback()
def keywright(
    show_version: Annotated[
        bool,
        typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version and exit."),
    ] = False,
    debug: Annotated[bool, typer.Option("--debug", help="Show where an error was raised.")] = False,
) -> None:
    """The Redis data model as code: prove, document, audit, repair, migrate and explore a keyspace."""


@app.command()
def check(
    model: ModelName,
    prefix: Annotated[str | None, typer.Option(help="The prefix of names, if not the declared one.")] = None,
    output: Annotated[
        Format, typer.Option("--format", help="How to print: for people, or for programs.")
    ] = Format.TEXT,
) -> None:
    """Prove that the keyspaces of a model are sound, alone and in one database. Needs no server.

    Prints the proofs, or each finding with its template, the reason and a counterexample.
    Exits with 0 when everything is proved, 1 when there are findings, 2 when no keyspace can be loaded.
    """
    try:
        reports = prove_model(load_model(model), prefix)
    except DeclarationError as error:
        reports = [_refused(model, error)]
    if output is Format.TEXT:
        echo(*"\n\n".join(report.as_text() for report in reports).split("\n"))
    elif len(reports) == 1:
        echo_json(as_json(reports[0].as_data()))
    else:
        *alone, union = [report.as_data() for report in reports]
        echo_json(as_json({"model": model, "keyspaces": alone, "union": union}))
    if not all(report.proved for report in reports):
        raise typer.Exit(1)


@app.command()
def get(
    model: ModelName,
    key: Annotated[
        str,
        typer.Argument(metavar="KEY", help="The full name of the key, as Redis has it.", show_default=False),
    ],
    url: UrlOption = None,
    embedded: EmbeddedOption = None,
    prefix: Annotated[str | None, typer.Option(help="The prefix of names, if not the declared one.")] = None,
    limit: Annotated[int, typer.Option(min=1, help="The most entries of a collection to read.")] = LIMIT,
    unproved: UnprovedOption = False,
) -> None:
    """Print the decoded value of a key as JSON. Read only.

    Nothing on the server changes: no expiry is renewed, no older shape is upgraded. Secrets are printed as
    "(secret)", sealed values as "(sealed)", and values that are declared sealed and are not as "(secret,
    stored in clear)". With KEYWRIGHT_SEAL_KEYS seals are checked; the values stay hidden. Times are RFC 3339,
    bytes are {"base64": …}, integers are exact.

    Exits with 1 when the key is missing or not stored as declared, 2 when no template has that name, 3 when
    the server cannot be reached.
    """
    spaces = proved_model(model, prefix, unproved=unproved).spaces
    found = _look(spaces, server_url(url, embedded), os.fsencode(key), prefix, limit)
    if found is None:
        echo(f"{key} does not exist.", err=True)
        raise typer.Exit(1)
    if found.truncated:
        echo(f"truncated: {limit} of {found.size} entries are shown. Raise --limit for more.", err=True)
    if found.older:
        echo(f"stored in the older shape {found.older!r}; shown as it is stored.", err=True)
    echo_json(as_json(inspected(found)))


@app.command()
def tour() -> None:
    """Walk through Keywright on a small sample, on a private server that is removed afterwards."""
    take_tour()


def _look(
    spaces: Sequence[Keyspace], url: str, name: bytes, prefix: str | None, limit: int
) -> Inspection | None:
    with connect(url, *bindings_of(spaces, prefix)) as db:
        matches = (found for space in spaces if (found := space.find(name, db.context)) is not None)
        key = next(matches, None) or spaces[0].parse(name, db.context)
        return db.run(inspect(key, limit))


def _refused(space: str, error: DeclarationError) -> CheckReport:
    """Return a report with one finding for a declaration that raised an error at import."""
    finding = Finding("refused-declaration", error.subject, f"{error.reason}. {error.remedy}")
    return CheckReport(space, 0, 0, (Proof("declarations hold", "Every declaration is valid.", (finding,)),))
