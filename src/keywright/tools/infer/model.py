"""The keyspace of an inferred module, for tools that need one at once."""

from __future__ import annotations

import ast
import sys
from types import ModuleType

import keywright
from keywright.errors import UsageError
from keywright.keyspace import Keyspace, check
from keywright.tools.infer.inference import Inference
from keywright.tools.model import Model

__all__ = ["inferred_model", "require_declarations"]

_MODULE = "keywright_inferred"
_STATEMENTS = (ast.Import, ast.ImportFrom, ast.Assign, ast.AnnAssign, ast.ClassDef, ast.Expr)
_EXPRESSIONS = (
    *(
        ast.Attribute,
        ast.BinOp,
        ast.Call,
        ast.Constant,
        ast.Dict,
        ast.List,
        ast.Name,
        ast.Subscript,
        ast.Tuple,
    ),
    *(ast.UnaryOp, ast.keyword, ast.alias, ast.expr_context, ast.operator, ast.unaryop),
)
_CALLED = frozenset({*keywright.__all__, "timedelta", "msgspec.field"})
_ATTRIBUTES = frozenset({"msgspec.Struct", "msgspec.field"})


def inferred_model(inference: Inference) -> Model:
    """Return the model that an inferred module declares. Raise UsageError if it is not proved.

    Texts of others are string literals in the module. It is run only if it holds nothing but declarations.
    """
    require_declarations(inference.text)
    module = ModuleType(_MODULE)
    sys.modules[_MODULE] = module  # the classes look their annotations up there
    try:
        exec(compile(inference.text, f"{_MODULE}.py", "exec"), vars(module))
    finally:
        del sys.modules[_MODULE]
    space = next(value for value in vars(module).values() if isinstance(value, Keyspace))
    unproved = [str(finding) for finding in check(space) if finding.severity == "error"]
    if unproved:
        raise UsageError(f"the inferred declaration is not proved: {unproved[0]}. Name a MODEL instead.")
    return Model(space.name, (space,))


def require_declarations(text: str) -> None:
    """Raise UsageError if a module has more than imports, assignments and classes, or calls other things."""
    tree = ast.parse(text)
    for node in ast.walk(tree):
        known = isinstance(node, (ast.Module, *_STATEMENTS, *_EXPRESSIONS))
        if isinstance(node, ast.Call):
            known = ast.unparse(node.func) in _CALLED
        elif isinstance(node, ast.Attribute):
            known = ast.unparse(node) in _ATTRIBUTES
        elif isinstance(node, ast.Expr):
            known = isinstance(node.value, ast.Constant)
        if not known:
            raise UsageError(
                f"line {getattr(node, 'lineno', 0)} of the inferred module is not a declaration "
                f"({type(node).__name__}), so it is not run. Report this with the names that lead to it."
            )
