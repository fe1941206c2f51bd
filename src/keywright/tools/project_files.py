"""The files that begin a project: a declaration that passes `keywright check`, settings, a CI workflow."""

from __future__ import annotations

import keyword
import re
import tomllib
from pathlib import Path
from typing import NamedTuple

from keywright.engine.address import parse_address
from keywright.errors import UsageError

__all__ = [
    "NewFile",
    "append_settings",
    "github_workflow",
    "is_new_name",
    "schema_module",
    "settings_table",
    "write_new",
]

_NAME = re.compile(r"[a-z][a-z0-9_]{0,40}")


class NewFile(NamedTuple):
    """A file that was to be written: `written` is False for one that exists, which stays as it is."""

    path: Path
    written: bool
    what: str


def is_new_name(name: str) -> bool:
    """Return whether a text can name a keyspace and the variable that holds it."""
    return bool(_NAME.fullmatch(name)) and not keyword.iskeyword(name)


def schema_module(name: str) -> str:
    """Return the module of a small keyspace, to be replaced by one's own keys."""
    return f'''"""The keys of {name}, one class for each. `keywright check` proves them."""

from __future__ import annotations

from datetime import datetime, timedelta

import msgspec

from keywright import Id, Keyspace, Record, Set, Value, expires_in, many_to_one

{name} = Keyspace("{name}", "What {name} keeps in Redis.", prefix="{name}")


class Details(msgspec.Struct):
    """The fields of an item, each a member of its hash."""

    title: str
    created: datetime


class Item(Record[Details], key="item:<item>", space={name}):
    """An item."""

    item: Id


class OwnerOfItem(Value[Id], key="item:<item>:owner", space={name}, part_of=Item):
    """The user who owns an item."""

    item: Id


class ItemsOfUser(Set[Id], key="user:<user>:items", space={name}):
    """The items of a user."""

    user: Id


owner = many_to_one(OwnerOfItem, inverse=ItemsOfUser)


class Session(Value[Id], key="session:<session>", space={name}, expiry=expires_in(timedelta(hours=1))):
    """The user of a session, for an hour."""

    session: Id
'''


def settings_table(model: str, url: str | None) -> str:
    """Return `[tool.keywright]` as TOML. Raise UsageError for a URL that has a password: files are shared."""
    lines = ["[tool.keywright]", f'model = "{model}"']
    if url is not None:
        if parse_address(url).settings.get("password"):
            raise UsageError(
                "the URL has a password, which must not be written to a file of the project. Leave out --url "
                "and set REDIS_URL."
            )
        lines.append(f'url = "{_escaped(url)}"')
    return "\n".join(lines) + "\n"


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"')


def write_new(path: Path, text: str, what: str) -> NewFile:
    """Write a file unless it exists. Raise UsageError if that fails."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("x", encoding="utf-8", newline="\n") as file:
            file.write(text)
    except FileExistsError:
        return NewFile(path, False, what)
    except OSError as error:
        raise UsageError(f"{path} cannot be written: {error.strerror}. Use another folder.") from error
    return NewFile(path, True, what)


def append_settings(path: Path, table: str) -> NewFile:
    """Append `[tool.keywright]` to a pyproject.toml, or make one. A table that is there stays as it is."""
    if not path.exists():
        return write_new(path, table, "settings")
    try:
        text = path.read_text("utf-8")
        if "keywright" in tomllib.loads(text).get("tool", {}):
            return NewFile(path, False, "settings")
        with path.open("a", encoding="utf-8", newline="\n") as file:
            file.write(("" if text.endswith("\n") or not text else "\n") + ("\n" if text else "") + table)
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise UsageError(f"{path} cannot be changed: {error}. Correct it, or use another folder.") from error
    return NewFile(path, True, "settings")


def github_workflow(model: str, lock: str) -> str:
    """Return a workflow of GitHub: the check, the lock file, and an audit whose findings become alerts."""
    return f"""# Made by `keywright init --ci github`; change it as you like.
name: keyspace

on:
  pull_request:
  push:
    branches: [main]
  schedule:
    - cron: "17 4 * * *"

permissions:
  contents: read

jobs:
  declaration:
    runs-on: ubuntu-latest
    steps:
      - uses: actions/checkout@v4
      - uses: actions/setup-python@v5
        with:
          python-version: "3.13"
      - run: pip install "keywright[cli]" -e .
      - run: keywright check {model}
      # Fails when stored data would become unreadable. To accept it, run this with --write --yes and commit.
      - run: keywright diff {model} --lock {lock}

  audit:
    if: github.event_name == 'schedule'
    runs-on: ubuntu-latest
    permissions:
      contents: read
      security-events: write
    steps:
      - uses: actions/checkout@v4
      - uses: actions/setup-python@v5
        with:
          python-version: "3.13"
      - run: pip install "keywright[cli]" -e .
      # The secret is the URL of a user with the rules of `keywright acl {model} --role auditor`.
      - run: keywright audit {model} --format sarif --output keywright.sarif
        env:
          REDIS_URL: ${{{{ secrets.KEYWRIGHT_REDIS_URL }}}}
      - uses: github/codeql-action/upload-sarif@v3
        if: always()
        with:
          sarif_file: keywright.sarif
"""
