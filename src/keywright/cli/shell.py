"""`keywright shell`: a Python prompt with the classes of a model, and its database open."""

from __future__ import annotations

import ast
import code
import importlib
import importlib.util
import sys
from contextlib import suppress
from types import ModuleType
from typing import Annotated, Any

import typer

import keywright
from keywright.cli.audit import PrefixOption
from keywright.cli.output import as_json, echo, echo_json
from keywright.cli.targets import (
    DatabaseOption,
    EmbeddedOption,
    ModelName,
    UrlOption,
    one_part,
    opened,
    proved_model,
    server_url,
)
from keywright.engine import Database
from keywright.errors import KeywrightError, UsageError
from keywright.keyspace import Call, Key
from keywright.tools.databases import DatabasePart
from keywright.tools.describe.inspection import LIMIT, inspect
from keywright.tools.describe.plain import inspected

__all__ = ["shell"]


def shell(
    model: ModelName,
    url: UrlOption = None,
    embedded: EmbeddedOption = None,
    database: DatabaseOption = None,
    prefix: PrefixOption = None,
    command: Annotated[
        str | None,
        typer.Option(
            "--command",
            "-c",
            metavar="PYTHON",
            help="Run this instead of a prompt, and print its last value.",
        ),
    ] = None,
    write: Annotated[bool, typer.Option("--write", help="Allow calls that write.")] = False,
) -> None:
    """Open a Python prompt with the classes of a model and its database. Reads only, unless --write is given.

    There are the key classes, keyspaces and relations by their names; `db`, the open database; `run(call)`,
    which runs calls; `look(key)`, which prints a key as `keywright get` does, secrets hidden; `keys(Class)`,
    the stored keys of a class; and everything of the package `keywright`. IPython is used where it is
    installed.

    Without --write a call that may write is refused before anything is sent. That protects from mistakes:
    the prompt is Python. For a guarantee connect as a user of `keywright acl --role reader`.

    Examples:
        keywright shell shop.schema:shop --url redis://localhost:6379/0
        keywright shell shop.schema:shop -c 'look(Order("17"))'
    """
    loaded, target = proved_model(model, prefix), server_url(url, embedded)
    part = one_part(loaded, target, database)
    with opened(target, part, prefix, read_only=not write) as db:
        names = _names(part, db)
        if command is not None:
            _run(command, names)
            return
        banner = _banner(part, db, write=write)
        if importlib.util.find_spec("IPython") is not None:
            _ipython(banner, names)
        else:
            _console(banner, names)


def _names(part: DatabasePart, db: Database) -> dict[str, Any]:
    """Return the names of the prompt. Those of the model hide those of the package."""

    def run(call: Call[Any], *more: Call[Any]) -> Any:
        """Run one call, or several in one batch."""
        return db.run(keywright.gather(call, *more)) if more else db.run(call)

    def look(key: Key, limit: int = LIMIT) -> None:
        """Print a key as `keywright get` does: decoded, secrets hidden, nothing renewed or upgraded."""
        found = db.run(inspect(key, limit))
        if found is None:
            echo(f"{key!r} does not exist.", err=True)
        else:
            echo_json(as_json(inspected(found)))

    def keys(kind: type[Key], limit: int = 20, **variables: object) -> list[Key]:
        """Return the first stored keys of a class, with some variables fixed."""
        found: list[Key] = []
        for key in db.scan(kind, **variables):
            found.append(key)
            if len(found) >= limit:
                break
        return found

    names: dict[str, Any] = {name: getattr(keywright, name) for name in keywright.__all__}
    names["keywright"] = keywright
    for space in part.model.spaces:
        names.update(_of_module(sys.modules.get(next(iter(space)).__module__) if space.keys else None, space))
        names.update({kind.__name__: kind for kind in (*space, *space.channels)})
    return {**names, "db": db, "run": run, "look": look, "keys": keys}


def _of_module(module: ModuleType | None, space: object) -> dict[str, Any]:
    """Return the public names of the module that declares a keyspace: relations, structs, the keyspace."""
    if module is None:
        return {}
    return {name: value for name, value in vars(module).items() if not name.startswith("_")}


def _banner(part: DatabasePart, db: Database, *, write: bool) -> str:
    server = db.server()
    number = "" if part.database is None else f", database {part.database}"
    leads = sorted({db.context.prefixes[space].decode() for space in part.model.spaces})
    prefixes = ", ".join(map(repr, leads)) if any(leads) else "none"
    mode = "reads and writes" if write else "reads only; --write allows calls that write"
    classes = ", ".join(sorted(kind.__name__ for space in part.model.spaces for kind in space))
    return "\n".join(
        [
            f"{part.model.name} on {db.address.shown}{number}: {server.product} {server.version}",
            f"prefix: {prefixes}. {mode[:1].upper()}{mode[1:]}.",
            f"classes: {_shortened(classes)}",
            "db, run(call), look(key), keys(Class); exit() leaves.",
        ]
    )


def _shortened(text: str, longest: int = 300) -> str:
    return text if len(text) <= longest else f"{text[:longest].rpartition(', ')[0]}, …"


def _run(source: str, names: dict[str, Any]) -> None:
    """Run statements, and print the value of the last one if it is an expression."""
    try:
        tree = ast.parse(source, "<command>")
    except SyntaxError as error:
        raise UsageError(f"-c is not Python: {error.msg}. Write statements, as in -c 'run(…)'.") from error
    last = tree.body.pop() if tree.body and isinstance(tree.body[-1], ast.Expr) else None
    exec(compile(tree, "<command>", "exec"), names)  # that is what -c asks for
    if isinstance(last, ast.Expr):
        value = eval(compile(ast.Expression(last.value), "<command>", "eval"), names)
        if value is not None:
            echo(repr(value))


class _Console(code.InteractiveConsole):
    """The prompt of Python. Errors of Keywright are one line, not a traceback."""

    def showtraceback(self) -> None:
        error = sys.exc_info()[1]
        if isinstance(error, KeywrightError):
            _brief(self, type(error), error)
        else:
            super().showtraceback()


def _console(banner: str, names: dict[str, Any]) -> None:
    with suppress(ImportError):  # not on every system
        import readline
        import rlcompleter

        readline.set_completer(rlcompleter.Completer(names).complete)
        readline.parse_and_bind("tab: complete")
    _Console(names).interact(banner, exitmsg="")


def _ipython(banner: str, names: dict[str, Any]) -> None:
    embed = importlib.import_module("IPython.terminal.embed")
    prompt = embed.InteractiveShellEmbed(banner1=f"{banner}\n", user_ns=names)
    prompt.set_custom_exc((KeywrightError,), _brief)
    prompt()


def _brief(_prompt: object, _kind: object, error: KeywrightError, *_: object, **__: object) -> None:
    echo(*f"{type(error).__name__}: {error}".split("\n"), err=True)
