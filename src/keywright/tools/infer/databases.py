"""A module of several keyspaces: one for each database of a server."""

from __future__ import annotations

import ast
from collections.abc import Sequence

from keywright.tools.infer.inference import Inference

__all__ = ["joined_inference"]


def joined_inference(found: Sequence[Inference], origin: str = "a server") -> Inference:
    """Return one module with the keyspaces of several databases of a server or a dump, in their order."""
    return Inference(
        _joined([each.text for each in found], origin),
        [key for each in found for key in each.keys],
        sum(each.names for each in found),
        sum(each.matched for each in found),
        sum(each.too_long for each in found),
        sum(each.sampled for each in found),
        all(each.is_exact for each in found),
        tuple(link for each in found for link in each.links),
        tuple(program for each in found for program in each.programs),
    )


def _joined(texts: list[str], origin: str) -> str:
    """Return one module with the imports of all of them first."""
    imports: dict[str, set[str]] = {}
    bodies = []
    for text in texts:
        statements = ast.parse(text).body
        for node in statements:
            if isinstance(node, ast.ImportFrom) and node.module:
                imports.setdefault(node.module, set()).update(ast.unparse(alias) for alias in node.names)
            elif isinstance(node, ast.Import):
                imports.update({alias.name: set() for alias in node.names})
        first = next(
            node for node in statements if not isinstance(node, ast.Expr | ast.Import | ast.ImportFrom)
        )
        bodies.append("\n".join(text.split("\n")[first.lineno - 1 :]).rstrip())
    heading = f'"""Keyspaces that `keywright infer` wrote from {origin}. Review what is marked `guess`."""'
    own = imports.pop("keywright")
    plain = sorted(name for name, names in imports.items() if not names)
    standard = [
        f"from {module} import {', '.join(sorted(names))}"
        for module, names in sorted(imports.items())
        if names
    ]
    blocks = [
        "\n".join(standard),
        "\n".join(f"import {name}" for name in plain),
        "\n".join(["from keywright import (", *(f"    {name}," for name in sorted(own)), ")"]),
    ]
    head = "\n\n".join([heading, *filter(None, blocks)])
    return "\n\n".join([head, "\n\n\n".join(bodies)]) + "\n"
