"""The command line: parses arguments, calls the layers below, prints the results.

Commands of other distributions may use the options and helpers that are listed here.
"""

from __future__ import annotations

import sys
from importlib import import_module
from typing import TYPE_CHECKING, Any

from keywright.errors import MissingDependencyError, dependencies_of

if TYPE_CHECKING:
    from keywright.cli.files import check_writable, open_source, write_file
    from keywright.cli.logs import log_to_stderr
    from keywright.cli.output import as_json, echo, echo_error, echo_exact, echo_json, note, printable, warn
    from keywright.cli.program import app
    from keywright.cli.progress import Meter, bar
    from keywright.cli.targets import (
        EmbeddedOption,
        ModelName,
        NamesPrefix,
        UrlOption,
        bindings_of,
        server_url,
    )
    from keywright.cli.terminal import rich_console

__all__ = [
    "EmbeddedOption",
    "Meter",
    "ModelName",
    "NamesPrefix",
    "UrlOption",
    "app",
    "as_json",
    "bar",
    "bindings_of",
    "check_writable",
    "echo",
    "echo_error",
    "echo_exact",
    "echo_json",
    "log_to_stderr",
    "main",
    "note",
    "open_source",
    "printable",
    "rich_console",
    "server_url",
    "warn",
    "write_file",
]

_HOMES = {
    "EmbeddedOption": "targets",
    "Meter": "progress",
    "ModelName": "targets",
    "NamesPrefix": "targets",
    "UrlOption": "targets",
    "app": "program",
    "as_json": "output",
    "bar": "progress",
    "bindings_of": "targets",
    "check_writable": "files",
    "echo": "output",
    "echo_error": "output",
    "echo_exact": "output",
    "echo_json": "output",
    "log_to_stderr": "logs",
    "note": "output",
    "open_source": "files",
    "printable": "output",
    "rich_console": "terminal",
    "server_url": "targets",
    "warn": "output",
    "write_file": "files",
}


def main() -> None:
    """Run the `keywright` program."""
    try:
        with dependencies_of("the command line", install="keywright[cli]"):
            from keywright.cli.program import app
    except MissingDependencyError as error:
        sys.stderr.write(f"error: {error}\n")
        raise SystemExit(error.exit_code) from None
    app(prog_name="keywright")


if not TYPE_CHECKING:  # a checker that saw it would take any name for one of ours

    def __getattr__(name: str) -> Any:
        """Import a helper on first use: a library program needs none of them."""
        if name not in _HOMES:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        return getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
