"""The commands of `keywright`, their options and exit codes.

0: success. 1: findings, or invalid data. 2: wrong usage. 3: the server is not reachable. Each KeywrightError
carries its own.
"""

from __future__ import annotations

import sys
from importlib import import_module
from importlib.metadata import version
from typing import Annotated, Any

import typer

from keywright.cli.command import Group, adopted, refusing
from keywright.cli.completion import completed
from keywright.cli.faults import exit_codes
from keywright.cli.output import detail, echo
from keywright.cli.summaries import summary_of
from keywright.cli.terminal import manner
from keywright.errors import KeywrightError, UsageError, dependencies_of
from keywright.tools.installed import COMMANDS as ENTRIES
from keywright.tools.installed import command_names, entries, install_hint

__all__ = ["COMMANDS", "app"]

# Each is a module here with a command of the same name; others arrive by entry point.
COMMANDS = {
    "init": "Declare",
    "infer": "Declare",
    "check": "Declare",
    "diff": "Declare",
    "docs": "Declare",
    "acl": "Declare",
    "generate": "Declare",
    "audit": "Look",
    "stats": "Look",
    "scan": "Look",
    "get": "Look",
    "explore": "Look",
    "shell": "Look",
    "export": "Look",
    "repair": "Change",
    "migrate": "Change",
    "import": "Change",
    "recover": "Change",
    "tour": "Learn",
    "explain": "Learn",
    "completion": "Learn",
}
_MODULES = {"import": "import_file"}  # a keyword names no module
SYSTEMS = "Systems"


class _Commands(Group):
    """Import a command when it is called, so that help and completion import none."""

    def list_commands(self, ctx: Any) -> list[str]:
        return [*COMMANDS, *command_names()]

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        name = cmd_name
        if name in COMMANDS:
            module = _MODULES.get(name, name)
            return adopted(name, getattr(import_module(f"keywright.cli.{module}"), module))
        if name in command_names():
            from keywright.tools.plugins import load_command

            try:
                return adopted(name, load_command(name))
            except KeywrightError as error:
                return refusing(name, error)
        hint = install_hint(name)
        if hint is not None:
            raise UsageError(f"the command {name!r} is not installed. Install it with: {hint}")
        return None

    def sections(self, ctx: Any) -> dict[str, list[tuple[str, str]]]:
        found: dict[str, list[tuple[str, str]]] = {}
        for name in self.list_commands(ctx):
            group = COMMANDS.get(name, SYSTEMS)
            found.setdefault(group, []).append((name, self._summary(ctx, name)))
        return found

    def _summary(self, ctx: Any, name: str) -> str:
        if name in COMMANDS:
            module = _MODULES.get(name, name)
            found = summary_of(f"keywright.cli.{module}", module)
        else:
            entry = entries(ENTRIES)[name]
            found = summary_of(entry.module, entry.attr)
        return found or super().summary(ctx, name)

    def main(self, args: Any = None, prog_name: Any = None, *_: Any, **more: Any) -> Any:
        manner.reset()
        if completed(self, args):
            raise SystemExit(0)
        more["standalone_mode"] = False
        with exit_codes(sys.argv[1:] if args is None else args) as ended:
            ended.code = super().main(args, prog_name, **more)
        detail(f"ended after {ended.seconds:.2f} s with exit code {ended.code}")
        raise SystemExit(ended.code)

    def invoke(self, ctx: Any) -> Any:
        try:
            return super().invoke(ctx)
        except ModuleNotFoundError as error:
            if isinstance(error, KeywrightError):
                raise
            # A distribution that was installed without its dependencies shows it only here.
            from keywright.tools.plugins import distribution_of

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
) -> None:
    """The Redis data model as code: prove, document, audit, repair, migrate and explore a keyspace.

    Examples:
        keywright tour
        keywright infer --url redis://localhost:6379/0 --output shop.py
        keywright check shop:shop
        keywright audit shop:shop --url redis://localhost:6379/0
    """
