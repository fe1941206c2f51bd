"""The model and the server of a command.

The server is that of `--url`, else REDIS_URL, else that of a configuration, else of `[tool.keywright]`; or
one that keeps its data in the folder of `--embedded`. A command without any of them is refused: its result
would be lost with a server of its own.
"""

from __future__ import annotations

import os
import tomllib
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

import typer

from keywright.cli.output import echo
from keywright.engine import EmbeddedServer
from keywright.errors import UnprovedError, UsageError
from keywright.keyspace import Binding, Keyring, Keyspace
from keywright.tools.check import prove_model
from keywright.tools.model import Model
from keywright.tools.plugins import load_model

__all__ = [
    "MODEL_HELP",
    "EmbeddedOption",
    "ModelName",
    "NamesPrefix",
    "UnprovedOption",
    "UrlOption",
    "bindings_of",
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
        "pyproject.toml.",
        show_default=False,
    ),
]


def _start(context: typer.Context, folder: str | None) -> str | None:
    return None if folder is None else context.with_resource(EmbeddedServer(Path(folder))).url


EmbeddedOption = Annotated[
    str | None,
    typer.Option(
        metavar="DIR",
        callback=_start,
        help="Instead of a server: keep the data in this folder. Its server runs as long as this command.",
        show_default=False,
    ),
]
"""The URL of a server that was started in the folder, and stops when the command ends."""
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
        echo(f"warning: {names} is not proved, so what follows may be wrong: {findings[0]}", err=True)
        return model
    remedy = "Nothing was changed." if unproved is None else "Add --unproved to read all the same."
    raise UnprovedError(names, findings, remedy)


def server_url(url: str | None, embedded: str | None = None, *, configured: str | None = None) -> str:
    """Return the URL of the requested server. Raise UsageError if none or two are given.

    `url` and `embedded` are the values of the options, `configured` the server of the command's own
    configuration file, where it has one.
    """
    if url and embedded:
        raise UsageError("--url and --embedded are two servers. Give one of them.")
    found = url or embedded or os.environ.get("REDIS_URL") or configured
    if not found:
        found, path = setting("url")
        if found:
            echo(f"the server is that of [tool.keywright] in {path}", err=True)
    if not found:
        raise UsageError(
            "no server is given. Add --url redis://localhost:6379/0 or set REDIS_URL; "
            "or add --embedded DIR, which keeps the data in a folder."
        )
    return found


def setting(name: str) -> tuple[str | None, Path | None]:
    """Return a setting of `[tool.keywright]` in the nearest pyproject.toml, and the path of that file.

    Folders above the repository or the home folder are not searched: others may own them.
    """
    for folder in _project_folders():
        path = folder / "pyproject.toml"
        if path.is_file():
            value = _table(path).get(name)
            if value is None or isinstance(value, str):
                return value or None, path
            raise UsageError(f'{name} of [tool.keywright] in {path} must be a string. Write {name} = "…".')
    return None, None


def _project_folders() -> list[Path]:
    """Return the current folder and those above it, up to the repository or the home folder it is in."""
    here, home = Path.cwd(), Path(os.path.expanduser("~")).resolve()
    folders = [here, *here.parents]
    for number, folder in enumerate(folders):
        if folder == home or (folder / ".git").exists():
            return folders[: number + 1]
    return [here]


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
