"""The first sentence of a command, read from its source: importing every command would make help slow."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from importlib.machinery import ModuleSpec
from importlib.util import find_spec
from pathlib import Path

__all__ = ["first_sentence", "summary_of"]


def first_sentence(text: str) -> str:
    """Return the first sentence of a docstring as one line."""
    paragraph = " ".join(text.strip().partition("\n\n")[0].split())
    return re.split(r"(?<=\.) (?=[A-Z`])", paragraph, maxsplit=1)[0]


def summary_of(module: str, attribute: str) -> str | None:
    """Return the summary of a function, or of a `typer.Typer(help=…)`; None if its source does not say."""
    source = _source(module)
    if source is None:
        return None
    try:
        nodes = ast.parse(source.read_bytes()).body
    except (OSError, SyntaxError, ValueError):
        return None
    found = next(_texts(nodes, attribute), None)
    return first_sentence(found) if found else None


def _source(module: str) -> Path | None:
    """Return the file of a module without importing its packages, as `find_spec` of a submodule does."""
    top, *rest = module.split(".")
    try:
        spec: ModuleSpec | None = find_spec(top)
    except (ImportError, ValueError):
        return None
    if spec is None:
        return None
    if not rest:
        return Path(spec.origin) if spec.origin else None
    for folder in spec.submodule_search_locations or ():
        path = Path(folder, *rest)
        for file in (path.with_name(f"{path.name}.py"), path / "__init__.py"):
            if file.is_file():
                return file
    return None


def _texts(nodes: list[ast.stmt], attribute: str) -> Iterator[str | None]:
    for node in nodes:
        if isinstance(node, ast.FunctionDef) and node.name == attribute:
            yield ast.get_docstring(node)
        if not isinstance(node, ast.Assign) or not isinstance(node.value, ast.Call):
            continue
        if any(isinstance(target, ast.Name) and target.id == attribute for target in node.targets):
            for keyword in node.value.keywords:
                if keyword.arg == "help" and isinstance(keyword.value, ast.Constant):
                    yield str(keyword.value.value)
