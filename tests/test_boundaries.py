"""What modules may know of each other beyond imports, which import-linter keeps: nothing private."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

import keywright

LIBRARY = Path(keywright.__file__).parent
ROOT = LIBRARY.parent.parent
SYSTEMS = sorted(ROOT.glob("systems/*/src/*"))

# Inside these packages private means private to the package; elsewhere to the module.
PACKAGES = (LIBRARY / "keyspace", LIBRARY / "engine")

# Part of the public interface of what they belong to, for all their underscore.
PUBLIC = {"_replace", "_asdict", "_fields", "_make", "_exit"}


def _sources(*roots: Path) -> list[Path]:
    return [path for root in roots for path in sorted(root.rglob("*.py"))]


def _is_private(name: str) -> bool:
    return (
        name.startswith("_") and not name.endswith("_") and not name.startswith("__") and name not in PUBLIC
    )


def _defined(tree: ast.AST) -> set[str]:
    """Names that the classes of a module define, in their bodies or on `self`."""
    names: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store) and _is_own(node.value):
            names.add(node.attr)
        elif isinstance(node, ast.ClassDef):
            for each in node.body:
                if isinstance(each, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
                    names.add(each.name)
                elif isinstance(each, ast.Assign | ast.AnnAssign):
                    names |= _assigned(each)
    return names


def _assigned(node: ast.Assign | ast.AnnAssign) -> set[str]:
    targets = node.targets if isinstance(node, ast.Assign) else [node.target]
    names = {target.id for target in targets if isinstance(target, ast.Name)}
    if "__slots__" in names and node.value is not None:
        names |= {str(each.value) for each in ast.walk(node.value) if isinstance(each, ast.Constant)}
    return names


def _is_own(value: ast.expr) -> bool:
    return (isinstance(value, ast.Name) and value.id in ("self", "cls", "_self")) or (
        isinstance(value, ast.Call) and isinstance(value.func, ast.Name) and value.func.id == "super"
    )


def _reads(tree: ast.AST) -> Iterator[tuple[int, str, str]]:
    """Every use of a private attribute of something else than self: line, attribute, source text."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and _is_private(node.attr) and not _is_own(node.value):
            yield node.lineno, node.attr, ast.unparse(node)
        elif (
            isinstance(node, ast.Call)
            and isinstance(node.func, ast.Name)
            and node.func.id in ("getattr", "setattr", "hasattr")
            and isinstance(name := node.args[1], ast.Constant)
            and _is_private(str(name.value))
            and not _is_own(node.args[0])
        ):
            yield node.lineno, str(name.value), ast.unparse(node)
        elif isinstance(node, ast.ImportFrom) and (node.module or "").startswith("keywright"):
            for alias in node.names:
                if _is_private(alias.name):
                    yield node.lineno, alias.name, f"from {node.module} import {alias.name}"


def _violations(*roots: Path) -> list[str]:
    trees = {path: ast.parse(path.read_text("utf-8")) for path in _sources(*roots)}
    shared = {
        package: {name for path, tree in trees.items() if package in path.parents for name in _defined(tree)}
        for package in PACKAGES
    }
    found = []
    for path, tree in trees.items():
        own = _defined(tree)
        for package, names in shared.items():
            own |= names if package in path.parents else set()
        found += [
            f"{path.relative_to(ROOT)}:{line}: `{text}` is private to another module. Use what is public "
            f"(`Order.declaration` of a key class, `db.nodes()` of a database), or publish it there."
            for line, name, text in _reads(tree)
            if name not in own
        ]
    return found


def test_nothing_private_of_another_module_is_read() -> None:
    violations = _violations(LIBRARY)
    assert not violations, "\n".join(["", *violations])


def test_the_pages_of_the_explorer_read_nothing_private() -> None:
    pages = sorted((LIBRARY / "explorer" / "templates").rglob("*.html"))
    assert pages
    found = [
        f"{page.name}: {each}" for page in pages for each in re.findall(r"\w+\._[a-z]\w*", page.read_text())
    ]
    assert found == []


@pytest.mark.parametrize(
    ("source", "wrong"),
    [
        ("def f(key): return key._values", ["key._values"]),
        ("def f(db): return getattr(db, '_topology', None)", ["getattr(db, '_topology', None)"]),
        ("from keywright.engine.database import _writes", ["from keywright.engine.database import _writes"]),
        ("class A:\n def f(self, x): return self._own + x._foreign", ["x._foreign"]),
        ("class A:\n def __init__(self): self._mine = 1\ndef f(a): return a._mine", []),
        ("class A:\n __slots__ = ('_mine',)\ndef f(a): return a._mine", []),
        ("def _values(): ...\ndef f(key): return key._values", ["key._values"]),
        ("def f(pair): return pair._replace(a=1)", []),
        ("class A(B):\n def f(self): return super()._declare()", []),
    ],
)
def test_only_what_the_module_itself_defines_counts_as_its_own(source: str, wrong: list[str]) -> None:
    tree = ast.parse(source)
    own = _defined(tree)
    assert [text for _, name, text in _reads(tree) if name not in own] == wrong


def test_the_label_of_a_commit_is_a_constant() -> None:
    """Observers see it: what names an entity goes into `subject`. Names of declarations are constants too."""
    found = []
    for path in _sources(LIBRARY, *SYSTEMS):
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if (
                isinstance(node, ast.Call)
                and isinstance(node.func, ast.Name)
                and node.func.id == "commit"
                and node.args
                and isinstance(label := node.args[0], ast.JoinedStr)
            ):
                values = [part.value for part in label.values if isinstance(part, ast.FormattedValue)]
                if not all(ast.unparse(each).endswith((".__name__", "invariant.name")) for each in values):
                    found.append(f"{path.relative_to(ROOT)}:{node.lineno}: {ast.unparse(label)}")
    assert found == []
