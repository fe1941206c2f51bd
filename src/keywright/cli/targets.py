"""The model and the server of a command.

The server is that of `--url`, else REDIS_URL, else `[tool.keywright]`, else an embedded one.
"""

from __future__ import annotations

import os
import tomllib
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

import typer

from keywright.errors import UnprovedError, UsageError
from keywright.keyspace import Binding, Keyring, Keyspace
from keywright.tools.check import prove_model
from keywright.tools.model import Model
from keywright.tools.plugins import load_model

__all__ = [
    "MODEL_HELP",
    "ModelName",
    "NamesPrefix",
    "ServerOption",
    "UnprovedOption",
    "UrlOption",
    "bindings_of",
    "needed_url",
    "proved_model",
    "server_url",
    "setting",
]

MODEL_HELP = (
    "An installed model by name, or MODULE:ATTRIBUTE, as in shop.schema:shop; several are separated by "
    "commas. The current folder is searched too."
)

ModelName = Annotated[str, typer.Argument(metavar="MODEL", help=MODEL_HELP, show_default=False)]

UrlOption = Annotated[
    str | None,
    typer.Option(
        help="The server, as in redis://localhost:6379/0. Else REDIS_URL, else url of [tool.keywright] in "
        "pyproject.toml, else an embedded one.",
        show_default=False,
    ),
]

ServerOption = Annotated[
    str | None,
    typer.Option(help="The server, as in redis://localhost:6379/0. Else REDIS_URL, else an embedded one."),
]
"""For the commands of one model, which do not look into pyproject.toml."""
NamesPrefix = Annotated[str | None, typer.Option(help="The prefix of names; else none.")]

UnprovedOption = Annotated[
    bool,
    typer.Option("--unproved", help="Read although `keywright check` finds the model unsound; may be wrong."),
]
"""For the commands that only read."""


def proved_model(names: str, prefix: str | None = None, *, unproved: bool | None = None) -> Model:
    """Load a model that is sound in the database that it is bound to. Raise UnprovedError if it is not.

    With `unproved` it is loaded all the same, and a warning is printed. A command that writes leaves it out.
    """
    model = load_model(names)
    findings = [str(finding) for report in prove_model(model, prefix) for finding in report.errors]
    if not findings:
        return model
    if unproved:
        typer.echo(f"warning: {names} is not proved, so what follows may be wrong: {findings[0]}", err=True)
        return model
    remedy = "Nothing was changed." if unproved is None else "Add --unproved to read all the same."
    raise UnprovedError(names, findings, remedy)


def server_url(url: str | None) -> str | None:
    """Return the URL of the requested server, or None for an embedded one."""
    return url or os.environ.get("REDIS_URL") or setting("url")


def needed_url(url: str | None, purpose: str) -> str:
    """Return the URL of the requested server. Raise UsageError if none is given."""
    found = server_url(url)
    if found is None:
        raise UsageError(f"no server to {purpose} is given. Add --url redis://…, or set REDIS_URL.")
    return found


def setting(name: str) -> str | None:
    """Return a setting of `[tool.keywright]` in the nearest pyproject.toml, or None."""
    for folder in (Path.cwd(), *Path.cwd().parents):
        path = folder / "pyproject.toml"
        if path.is_file():
            value = _table(path).get(name)
            if value is None or isinstance(value, str):
                return value or None
            raise UsageError(f'{name} of [tool.keywright] in {path} must be a string. Write {name} = "…".')
    return None


def _table(path: Path) -> dict[str, Any]:
    try:
        found = tomllib.loads(path.read_text("utf-8")).get("tool", {}).get("keywright", {})
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise UsageError(f"{path} cannot be read: {error}. Correct it, or give --url.") from error
    if not isinstance(found, dict):
        raise UsageError(f'[tool.keywright] in {path} must be a table. Write url = "…" below it.')
    return found


def bindings_of(spaces: Sequence[Keyspace], prefix: str | None) -> list[Binding]:
    """Bind keyspaces to the prefix of the command line, and to the environment's keyring if they seal."""
    sealed = any(kind.declaration.sealed for space in spaces for kind in space)
    keyring = Keyring.from_env_if_set() if sealed else None
    return [space.bind(prefix=prefix, keyring=keyring) for space in spaces]
