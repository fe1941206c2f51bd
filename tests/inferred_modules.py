"""Inferred modules for tests: parsed, compared with what a declaration may hold, and only then run."""

from __future__ import annotations

import ast
import asyncio
import io
from collections.abc import Iterable

import keywright
from keywright import Keyspace, aconnect, check
from keywright.tools.infer import Inference, infer, inferred_model, names_in, survey

CALLS = {*keywright.__all__, "timedelta", "msgspec.field"}


def inferred_names(names: Iterable[bytes], *, show_ids: bool = False) -> Inference:
    """Infer from names as a file holds them."""
    return infer(names_in(io.BytesIO(b"".join(name + b"\n" for name in names))), show_ids=show_ids)


def inferred_server(url: str) -> Inference:
    async def run() -> Inference:
        async with aconnect(url) as db:
            found = await survey(db)
            return infer(found.sample, found.facts, origin="a server")

    return asyncio.run(run())


def declared_space(inference: Inference) -> Keyspace:
    """Return the keyspace that a module declares. Fail if it holds anything but declarations."""
    refuse_code(inference.text)
    return inferred_model(inference).spaces[0]


def refuse_code(text: str) -> None:
    tree = ast.parse(text)
    for node in tree.body:
        assert isinstance(node, ast.Import | ast.ImportFrom | ast.Assign | ast.ClassDef | ast.Expr), ast.dump(
            node
        )
        inside = node.body if isinstance(node, ast.ClassDef) else [node]
        for each in inside:
            assert isinstance(each, ast.AnnAssign | ast.Import | ast.ImportFrom | ast.Assign | ast.Expr)
            if isinstance(each, ast.Expr):
                assert isinstance(each.value, ast.Constant), ast.dump(each)
                assert isinstance(each.value.value, str)
    for found in ast.walk(tree):
        assert not isinstance(found, ast.Lambda | ast.Await | ast.JoinedStr | ast.FunctionDef)
        if isinstance(found, ast.Call):
            assert ast.unparse(found.func) in CALLS, ast.unparse(found)
        if isinstance(found, ast.Attribute):
            assert ast.unparse(found) in ("msgspec.Struct", "msgspec.field")


def unproved(space: Keyspace) -> list[str]:
    return [str(finding) for finding in check(space) if finding.severity == "error"]
