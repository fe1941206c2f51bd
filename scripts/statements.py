"""Write docs/coverage.md of every system from its statements.toml.

    python scripts/statements.py

A statement is one sentence of the document that the system implements, in our own words, with the keys and
the tests that fulfil it, and the reason where the system differs deliberately.
"""

from __future__ import annotations

import ast
import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

__all__ = ["Document", "Statement", "documents", "is_test", "page", "sources"]

ROOT = Path(__file__).parents[1]
HEAD = """# Coverage of the source {documents}

Every statement of the {documents} that this system implements, the keys and the tests that fulfil it, and
deliberate differences. Generated from [statements.toml](statements.toml) by `python scripts/statements.py`.
A test fails when a statement has no entry, or names a key or a test that does not exist.
"""


@dataclass(frozen=True)
class Statement:
    """One statement of a source document."""

    id: str
    says: str
    keys: tuple[str, ...]
    tests: tuple[str, ...]
    difference: str


@dataclass(frozen=True)
class Document:
    """A source document: its statements have ids from `prefix`1 to `prefix``count`."""

    title: str
    prefix: str
    count: int
    statements: tuple[Statement, ...]


def sources() -> list[Path]:
    """Return the statements.toml of every system that has one."""
    return sorted(ROOT.glob("systems/*/docs/statements.toml"))


def documents(source: Path) -> list[Document]:
    """Read a statements.toml. Unknown names are a TypeError."""
    return [_document(given) for given in tomllib.loads(source.read_text())["document"]]


def _document(given: dict[str, Any]) -> Document:
    statements = tuple(
        Statement(
            **{
                "difference": "",
                **each,
                "keys": tuple(each.get("keys", ())),
                "tests": tuple(each.get("tests", ())),
            }
        )
        for each in given.pop("statement")
    )
    return Document(statements=statements, **given)


def is_test(name: str) -> bool:
    """Return whether `path::function` or `path::Class::function` is a test of this project."""
    path, *steps = name.split("::")
    if not (ROOT / path).is_file():
        return False
    body: list[ast.stmt] = ast.parse((ROOT / path).read_text()).body
    for step in steps:
        named = [
            each
            for each in body
            if isinstance(each, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef) and each.name == step
        ]
        if not named:
            return False
        body = named[0].body
    return bool(steps) and steps[-1].startswith("test_")


def page(found: list[Document]) -> str:
    """Return coverage.md."""
    parts = [HEAD.format(documents="document" if len(found) == 1 else "documents")]
    for document in found:
        differing = sum(bool(each.difference) for each in document.statements)
        parts.append(
            f"\n## {document.title}\n\n{document.count} statements, {differing} of them with a deliberate "
            "difference.\n\n| | Statement | Fulfilled by |\n| --- | --- | --- |\n"
        )
        parts.extend(_row(each) for each in document.statements)
    return "".join(parts)


def _row(statement: Statement) -> str:
    by = [f"`{key}`" for key in statement.keys]
    by += [f"[{name.rpartition('::')[2]}](../../../{name.partition('::')[0]})" for name in statement.tests]
    says = statement.says
    if statement.difference:
        says += f"<br>**Difference.** {statement.difference}"
    cells = (cell.replace("|", "\\|") for cell in (statement.id, says, "<br>".join(by)))
    return f"| {' | '.join(cells)} |\n"


if __name__ == "__main__":
    for each in sources():
        (each.parent / "coverage.md").write_text(page(documents(each)))
