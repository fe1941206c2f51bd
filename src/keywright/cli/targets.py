"""The model and the server of a command.

The server is that of `--url`, else REDIS_URL, else that of a configuration, else of `[tool.keywright]`; or
one that keeps its data in the folder of `--embedded`. A command without any of them is refused: its result
would be lost with a server of its own.
"""

from __future__ import annotations

import os
import time
import tomllib
from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path
from typing import Annotated, Any

import typer

from keywright.cli.output import detail, note, warn
from keywright.engine import Database, EmbeddedServer, Settings, aconnect, connect
from keywright.engine.address import parse_address
from keywright.errors import UnprovedError, UsageError
from keywright.keyspace import Binding
from keywright.tools.check import prove_model
from keywright.tools.databases import DatabasePart, parts_of
from keywright.tools.model import Model
from keywright.tools.plugins import load_model
from keywright.tools.readable import ReadableDatabase
from keywright.tools.sources import CHECKED_DUMP, DUMP, bindings_of, is_dump, opened_source

__all__ = [
    "MODEL_HELP",
    "ChecksumOption",
    "DatabaseOption",
    "EmbeddedOption",
    "ModelName",
    "NamesPrefix",
    "OptionalModel",
    "PrefixOption",
    "RdbOption",
    "UnprovedOption",
    "UrlOption",
    "bindings_of",
    "connected",
    "database_named",
    "default_model",
    "is_dump",
    "model_parts",
    "one_part",
    "opened",
    "proved_model",
    "readable",
    "readable_part",
    "server_url",
    "setting",
    "source_of",
]

MODEL_HELP = (
    "An installed model or a program of the catalogue by name, or MODULE:ATTRIBUTE, as in shop.schema:shop; "
    "several are separated by commas. The current folder is searched too. Without one: model of "
    "[tool.keywright] in pyproject.toml."
)


def default_model(*, required: bool = False) -> Any:
    """Return the model of `[tool.keywright]`, or None; raise UsageError if one is required."""
    found, path = setting("model")
    if found:
        note(f"the model is {found}, of [tool.keywright] in {path}")
    elif required:
        raise UsageError(
            'no MODEL is given. Name one, as in shop.schema:shop, or write model = "shop.schema:shop" below '
            "[tool.keywright] in pyproject.toml; `keywright init` begins a project."
        )
    return found


def _required_model() -> str:
    return str(default_model(required=True))


ModelName = Annotated[
    str,
    typer.Argument(metavar="MODEL", help=MODEL_HELP, show_default=False, default_factory=_required_model),
]
OptionalModel = Annotated[str | None, typer.Argument(metavar="MODEL", help=MODEL_HELP, show_default=False)]
"""For commands with a second argument: `default_model` is asked for when there is only one."""

UrlOption = Annotated[
    str | None,
    typer.Option(
        rich_help_panel="Server",
        help="The server, as in redis://localhost:6379/0. Else REDIS_URL, else url of [tool.keywright] in "
        "pyproject.toml.",
        show_default=False,
    ),
]


PrefixOption = Annotated[
    str | None,
    typer.Option(
        rich_help_panel="Server", help="The prefix of names, if not the declared one.", show_default=False
    ),
]


def _start(context: typer.Context, folder: str | None) -> str | None:
    return None if folder is None else context.with_resource(EmbeddedServer(Path(folder))).url


EmbeddedOption = Annotated[
    str | None,
    typer.Option(
        metavar="DIR",
        rich_help_panel="Server",
        callback=_start,
        help="Instead of a server: keep the data in this folder. Its server runs as long as this command.",
        show_default=False,
    ),
]
"""The URL of a server that was started in the folder, and stops when the command ends."""
RdbOption = Annotated[
    Path | None,
    typer.Option(
        metavar="FILE",
        rich_help_panel="Server",
        help="Instead of a server: a dump (RDB file), or the folder of append-only files.",
        show_default=False,
    ),
]
ChecksumOption = Annotated[
    bool,
    typer.Option(
        "--checksum", rich_help_panel="Server", help="With --rdb: check that the file is not damaged first."
    ),
]
DatabaseOption = Annotated[
    int | None,
    typer.Option(
        min=0,
        rich_help_panel="Server",
        help="The number of one database; else that of the URL, else all that the model or the server has.",
        show_default=False,
    ),
]
NamesPrefix = Annotated[
    str | None, typer.Option(rich_help_panel="Server", help="The prefix of names; else none.")
]

UnprovedOption = Annotated[
    bool,
    typer.Option(
        "--unproved", help="Read although `keywright check` finds the model unsound; the result may be wrong."
    ),
]
"""For the commands that only read."""


def proved_model(names: str, prefix: str | None = None, *, unproved: bool | None = None) -> Model:
    """Load a model that is sound in the database that it is bound to. Raise UnprovedError if it is not.

    With `unproved` it is loaded all the same, and a warning is printed. A command that writes leaves it out.
    """
    started = time.monotonic()
    model = load_model(names)
    findings = [str(finding) for report in prove_model(model, prefix) for finding in report.errors]
    keys = sum(len(space.keys) for space in model.spaces)
    detail(f"model: {names}, {keys} templates, loaded and checked in {time.monotonic() - started:.2f} s")
    if not findings:
        return model
    if unproved:
        warn(f"{names} is not proved, so what follows may be wrong: {findings[0]}")
        return model
    remedy = "Nothing was changed." if unproved is None else "Add --unproved to read all the same."
    raise UnprovedError(names, findings, remedy)


def source_of(url: str | None, embedded: str | None, rdb: Path | None, *, checksum: bool = False) -> str:
    """Return what `readable` opens: the URL of the requested server, or a form of the path of a dump."""
    if rdb is None:
        if checksum:
            raise UsageError("--checksum is of a dump. Add --rdb FILE, or leave it out.")
        return server_url(url, embedded)
    if url or embedded:
        raise UsageError("--rdb is instead of a server. Leave out --url and --embedded.")
    return f"{CHECKED_DUMP if checksum else DUMP}{rdb}"


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
            note(f"the server is that of [tool.keywright] in {path}")
    if not found:
        raise UsageError(
            "no server is given. Add --url redis://localhost:6379/0 or set REDIS_URL; "
            "or add --embedded DIR, which keeps the data in a folder."
        )
    detail(f"server: {parse_address(found).shown}")
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
        raise UsageError(
            f"{path} cannot be read: {error}. Correct it, or name the model and the server."
        ) from error
    if not isinstance(found, dict):
        raise UsageError(f'[tool.keywright] in {path} must be a table. Write url = "…" below it.')
    return found


def database_named(url: str, database: int | None = None) -> int | None:
    """Return the number that `--database` or the URL names, or None. Raise UsageError if they differ."""
    of_url = None if is_dump(url) else parse_address(url).database
    if database is not None and of_url is not None and database != of_url:
        raise UsageError(
            f"--database {database} is not the database {of_url} of the URL. Leave out one of the numbers."
        )
    return of_url if database is None else database


def model_parts(model: Model, url: str, database: int | None = None) -> list[DatabasePart]:
    """Return the parts of a model by database, and print which of them the URL or the option leaves out."""
    named = database_named(url, database)
    parts = parts_of(model, named)
    left = sorted({part.database for part in parts_of(model) if part.database is not None} - {named})
    if named is not None and left and parts[0].model is not model:
        numbers = ", ".join(map(str, left))
        note(f"only database {named} is read, since it is named; the model is in {numbers} too")
    return parts


def one_part(model: Model, url: str, database: int | None = None) -> DatabasePart:
    """Return the only part of a model. Raise UsageError if it is in several databases."""
    parts = model_parts(model, url, database)
    if len(parts) > 1:
        numbers = ", ".join(str(part.database) for part in parts)
        raise UsageError(
            f"the keyspaces of {model.name} are in databases {numbers}, and this command works on one of "
            f"them. Name it in the URL, as in redis://localhost:6379/{parts[0].database}."
        )
    return parts[0]


def opened(url: str, part: DatabasePart, prefix: str | None = None, *, read_only: bool = False) -> Database:
    """Open the database of a part of a model for blocking calls, with its keyspaces bound."""
    bindings, settings = bindings_of(part.model.spaces, prefix), Settings(read_only=read_only)
    if part.database is None:
        return connect(url, *bindings, settings=settings)
    return connect(url, *bindings, settings=settings, db=part.database)


@asynccontextmanager
async def readable(
    source: str, *bindings: Binding, database: int | None = None
) -> AsyncIterator[ReadableDatabase]:
    """Open a server or a dump for reading, and print how much of a dump was not read."""
    async with opened_source(source, *bindings, database=database) as db:
        yield db
        if not is_dump(source):
            return
        from keywright.tools.rdb import DumpDatabase  # few commands need it

        if isinstance(db, DumpDatabase) and db.unread:
            warn(
                f"{db.unread:,} bytes of commands behind the dump were not read: this is the state of "
                f"{db.taken:%Y-%m-%d %H:%M:%S} UTC. BGREWRITEAOF on the server renews the dump."
            )


def readable_part(
    source: str, part: DatabasePart, prefix: str | None = None
) -> AbstractAsyncContextManager[ReadableDatabase]:
    """Open the database of a part of a model for reading, with its keyspaces bound."""
    return readable(source, *bindings_of(part.model.spaces, prefix), database=part.database)


def connected(url: str, part: DatabasePart, prefix: str | None = None) -> aconnect:
    """Open the database of a part of a model, with its keyspaces bound."""
    bindings = bindings_of(part.model.spaces, prefix)
    return aconnect(url, *bindings) if part.database is None else aconnect(url, *bindings, db=part.database)
