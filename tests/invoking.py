"""The command line in this process, as typer's runner calls it."""

from __future__ import annotations

from collections.abc import Callable

from typer.testing import CliRunner, Result

from keywright.cli import app

Invoke = Callable[..., Result]


def invoke_keywright(*arguments: str, stdin: str | None = None) -> Result:
    return CliRunner().invoke(app, arguments, input=stdin, prog_name="keywright")
