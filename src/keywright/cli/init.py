"""`keywright init`: the files that begin a project."""

from __future__ import annotations

import asyncio
import re
from enum import Enum
from pathlib import Path
from typing import Annotated

import typer

from keywright.cli.audit import FullSpeedOption, MaxRateOption
from keywright.cli.infer import inferred_module
from keywright.cli.output import as_json, echo, echo_json
from keywright.cli.targets import UrlOption, server_url
from keywright.errors import UsageError
from keywright.tools.lock import version_of, write_lock
from keywright.tools.pace import Pace
from keywright.tools.plugins import load_model
from keywright.tools.project_files import (
    NewFile,
    append_settings,
    github_workflow,
    is_new_name,
    schema_module,
    settings_table,
    write_new,
)

__all__ = ["init"]

SCHEMA = "schema.py"
LOCK = "keywright.lock.json"
WORKFLOW = Path(".github/workflows/keyspace.yml")


class InitFormat(Enum):
    TEXT = "text"
    JSON = "json"


class Ci(Enum):
    GITHUB = "github"


def init(
    name: Annotated[
        str | None,
        typer.Argument(metavar="NAME", help="The name of the keyspace, else that of this folder."),
    ] = None,
    url: UrlOption = None,
    infer: Annotated[
        bool, typer.Option("--infer", help="Declare the keys that the server has, instead of an example.")
    ] = False,
    max_rate: MaxRateOption = None,
    full_speed: FullSpeedOption = False,
    ci: Annotated[
        Ci | None,
        typer.Option(
            help="Write a CI workflow, and the lock file that it compares with.", show_default=False
        ),
    ] = None,
    form: Annotated[
        InitFormat, typer.Option("--format", help="How to print: for people, or for programs.")
    ] = InitFormat.TEXT,
) -> None:
    """Begin a project in this folder: schema.py, and its model and server in pyproject.toml.

    The declaration passes `keywright check`; with --infer it is that of `keywright infer`. With --ci github a
    workflow checks each change against a lock file, and audits the server once a day. No file is overwritten:
    what exists stays, and is named. A URL with a password is not written.

    Exits with 2 for a wrong invocation, 3 when the server cannot be reached.

    Examples:
        keywright init
        keywright init --infer --url redis://localhost:6379/0
    """
    space = name or _name_of(Path.cwd())
    if not is_new_name(space):
        raise UsageError(f"{space!r} is not a name for a keyspace. Use lower-case letters, digits and _.")
    model = f"{Path(SCHEMA).stem}:{space}"
    table = settings_table(model, url)
    done = [_schema(space, url, Pace(max_rate, full_speed), infer=infer)]
    done.append(append_settings(Path("pyproject.toml"), table))
    if ci is Ci.GITHUB:
        done += _workflow(model)
    _print(done, table, model, form)


def _name_of(folder: Path) -> str:
    found = re.sub(r"[^a-z0-9]+", "_", folder.name.lower()).strip("_")
    return found if is_new_name(found) else "app"


def _schema(space: str, url: str | None, pace: Pace, *, infer: bool) -> NewFile:
    path = Path(SCHEMA)
    if path.exists():
        return NewFile(path, False, "declaration")
    if not infer:
        return write_new(path, schema_module(space), "declaration")
    text = asyncio.run(inferred_module(server_url(url), space, pace))
    return write_new(path, text, "declaration")


def _workflow(model: str) -> list[NewFile]:
    done = [write_new(WORKFLOW, github_workflow(model, LOCK), "CI workflow")]
    lock = Path(LOCK)
    if lock.exists():
        return [*done, NewFile(lock, False, "lock file")]
    write_lock(lock, version_of(load_model(model)))
    return [*done, NewFile(lock, True, "lock file")]


def _print(done: list[NewFile], table: str, model: str, form: InitFormat) -> None:
    commands = [
        f"keywright check {model}",
        f"keywright docs {model} -o KEYS.md",
        f"keywright audit {model} --url redis://localhost:6379/0",
    ]
    if form is InitFormat.JSON:
        files = [{"path": str(each.path), "written": each.written, "what": each.what} for each in done]
        echo_json(as_json({"model": model, "files": files, "next": commands}))
        return
    for each in done:
        echo(f"{'wrote' if each.written else 'exists, and stays:'} {each.path} ({each.what})")
        if not each.written and each.what == "settings":
            echo("  it has [tool.keywright] already; the new one would be:", "")
            echo(*(f"  {line}" for line in table.splitlines()))
    echo("", "Next:", *(f"  {command}" for command in commands))
