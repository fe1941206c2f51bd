"""Commands and groups of `keywright`: one look of their help, the global options, and suggestions.

They are click's, as typer makes them; functions and `typer.Typer` of other distributions become such too.
"""

from __future__ import annotations

import logging
import sys
from collections.abc import Callable
from functools import cache
from typing import Annotated, Any

import typer
from typer.core import TyperCommand, TyperGroup
from typer.main import get_command, get_group

from keywright.cli.help import rendered
from keywright.cli.summaries import first_sentence
from keywright.cli.terminal import Color, is_coloured, manner
from keywright.errors import KeywrightError, UsageError, did_you_mean

# typer has a copy of click of its own, and exports only this one of its errors: its bases are the others.
CLICK_ERROR: Any = typer.BadParameter.__mro__[2]

__all__ = ["CLICK_ERROR", "Command", "Group", "adopted", "global_options", "refusing"]


def _set_color(color: Color | None) -> None:
    if color is not None:
        manner.color = color


def _set_quiet(quiet: bool) -> None:
    if quiet:
        manner.quiet = True
        _check_manner()


def _set_verbosity(verbosity: int) -> None:
    if verbosity:
        from keywright.cli.logs import log_to_stderr

        manner.verbosity += verbosity
        _check_manner()
        log_to_stderr(logging.INFO if manner.verbosity == 1 else logging.DEBUG)


def _set_debug(debug: bool) -> None:
    manner.debug = manner.debug or debug


def _check_manner() -> None:
    if manner.quiet and manner.verbosity:
        manner.verbosity = 0
        raise UsageError("--quiet and --verbose exclude each other. Drop one of them.")


def _options(
    color: Annotated[
        Color | None,
        typer.Option(
            callback=_set_color,
            is_eager=True,
            expose_value=False,
            help="Colours: auto is on a terminal, unless NO_COLOR is set.",
        ),
    ] = None,
    quiet: Annotated[
        bool,
        typer.Option(
            "--quiet", "-q", callback=_set_quiet, expose_value=False, help="No progress, notes and hints."
        ),
    ] = False,
    verbose: Annotated[
        int,
        typer.Option(
            "--verbose",
            "-v",
            count=True,
            callback=_set_verbosity,
            expose_value=False,
            show_default=False,
            help="Print what the command does and how long it takes; twice: the log too.",
        ),
    ] = 0,
    debug: Annotated[
        bool,
        typer.Option(
            "--debug", callback=_set_debug, expose_value=False, help="Show where an error is raised."
        ),
    ] = False,
) -> None:
    """Accept the global options."""


@cache
def global_options() -> tuple[Any, ...]:
    """Return the options that every command has; their callbacks set the `manner` of the run."""
    alone = typer.Typer(add_completion=False)
    alone.command()(_options)
    return tuple(get_command(alone).params)


class _Common:
    """What commands and groups have in common."""

    def get_params(self, ctx: Any) -> list[Any]:
        own: list[Any] = super().get_params(ctx)  # type: ignore[misc]
        taken = {name for param in own for name in param.opts}
        return own + [option for option in global_options() if not taken & {*option.opts}]

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        try:
            parsed: list[str] = super().parse_args(ctx, args)  # type: ignore[misc]
        except CLICK_ERROR as error:
            error.ctx = getattr(error, "ctx", None) or ctx  # the parser leaves it out of some
            raise
        return parsed

    def get_help(self, ctx: Any) -> str:
        ctx.color = is_coloured(sys.stdout)
        return rendered(self, ctx, {option.name for option in global_options()})


class Command(_Common, TyperCommand):
    """One command."""


class Group(_Common, TyperGroup):
    """A group of commands."""

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        name = args[0]
        found = self.get_command(ctx, name)
        if found is None:
            hint = did_you_mean(name, self.list_commands(ctx)) or f" `{ctx.command_path} --help` lists them."
            ctx.fail(f"{name!r} is not a command of {ctx.command_path}.{hint}")
        return name, found, args[1:]

    def summary(self, ctx: Any, name: str) -> str:
        command = self.get_command(ctx, name)
        return first_sentence(command.help or "") if command is not None else ""

    def sections(self, ctx: Any) -> dict[str, list[tuple[str, str]]]:
        """Return the names and summaries of the commands, by the heading that they stand under."""
        found: dict[str, list[tuple[str, str]]] = {}
        for name in self.list_commands(ctx):
            command = self.get_command(ctx, name)
            if command is not None and not command.hidden:
                heading = getattr(command, "rich_help_panel", None) or "Commands"
                found.setdefault(str(heading), []).append((name, self.summary(ctx, name)))
        return found


def adopted(name: str, part: Callable[..., None] | typer.Typer) -> Any:
    """Return the command of a function, or the group of a `typer.Typer`, as one of Keywright's."""
    if isinstance(part, typer.Typer):
        _adopt(part)
        command: Any = get_group(part)
    else:
        alone = typer.Typer(add_completion=False, pretty_exceptions_enable=False, rich_markup_mode=None)
        alone.command(cls=Command)(part)
        command = get_command(alone)
    command.name = name
    return command


def _adopt(app: typer.Typer) -> None:
    app.info.cls = Group
    for each in app.registered_commands:
        if each.cls is TyperCommand:
            each.cls = Command
    for below in app.registered_groups:
        if below.typer_instance is not None:
            _adopt(below.typer_instance)


def refusing(name: str, error: KeywrightError) -> Any:
    """Return a command that raises why it could not be loaded, so that the others can still be listed."""

    def refuse() -> None:
        raise error

    command = adopted(name, refuse)
    command.help = f"(not available) {error}"
    command.add_help_option = False
    command.ignore_unknown_options = command.allow_extra_args = True
    return command
