"""The commands of the tools, run in this process with the exit codes of the program."""

from __future__ import annotations

import typer
from typer.testing import CliRunner, Result

from keywright.ui.cli import app
from keywright.ui.cli.acl import acl
from keywright.ui.cli.diff import diff
from keywright.ui.cli.docs import docs


def run_tool(*arguments: str) -> Result:
    tools = typer.Typer(cls=app.info.cls, pretty_exceptions_enable=False, rich_markup_mode=None)
    tools.callback()(lambda: None)
    for command in (acl, diff, docs):
        tools.command()(command)
    return CliRunner().invoke(tools, arguments, prog_name="keywright")
