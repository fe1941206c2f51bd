"""The keyspace of an inferred module, for tools that need one at once."""

from __future__ import annotations

import ast
import sys
from types import ModuleType

import keywright
from keywright.errors import UsageError
from keywright.keyspace import Keyspace, check
from keywright.tools.infer.document import DocumentInference
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
_LINKS = frozenset(("refers", "one_to_one", "many_to_one", "many_to_many", "index"))
_ID_TYPES = frozenset(("int", "str", "UUID"))
_LAMBDA = (
    *(ast.Lambda, ast.arguments, ast.arg, ast.Name, ast.Constant, ast.List, ast.Tuple, ast.GeneratorExp),
    ast.Slice,
    *(ast.comprehension, ast.Subscript, ast.Compare, ast.IsNot, ast.BoolOp, ast.Or, ast.expr_context),
)
_ATTRIBUTES = frozenset({"msgspec.Struct", "msgspec.field"})


def inferred_model(inference: Inference | DocumentInference) -> Model:
    """Return the model that an inferred module declares, with its programs. Raise UsageError if unproved.

    Texts of others are string literals in the module. It is run only if it holds nothing but declarations.
    """
    require_declarations(inference.text)
    module = ModuleType(_MODULE)
    sys.modules[_MODULE] = module  # the classes look their annotations up there
    try:
        # Without the __future__ of this module: hints are evaluated now, since the names are gone later.
        code = compile(inference.text, f"{_MODULE}.py", "exec", dont_inherit=True)
        exec(code, vars(module))
    finally:
        del sys.modules[_MODULE]
    spaces = tuple(value for value in vars(module).values() if isinstance(value, Keyspace))
    unproved = [str(finding) for finding in check(*spaces) if finding.severity == "error"]
    if unproved:
        raise UsageError(f"the inferred declaration is not proved: {unproved[0]}. Name a MODEL instead.")
    programs = inference.programs if isinstance(inference, Inference) else ()
    recognised = (each for found in programs for each in found.program.spaces)
    return Model(spaces[0].name if len(spaces) == 1 else "inferred", (*spaces, *recognised))


def require_declarations(text: str) -> None:
    """Raise UsageError if a module has more than imports, assignments, classes and links of these.

    It calls names of `keywright` only. The functions of references read attributes, items and members of what
    they get, and call nothing but the types of ids.
    """
    tree = ast.parse(text)
    lambdas = [node for node in ast.walk(tree) if isinstance(node, ast.Lambda)]
    inside = {id(node) for each in lambdas for node in ast.walk(each)}
    for node in ast.walk(tree):
        known = isinstance(node, (ast.Module, *_STATEMENTS, *_EXPRESSIONS))
        if id(node) in inside:
            known = _is_of_a_reference(node)
        elif isinstance(node, ast.Call):
            known = ast.unparse(node.func) in _CALLED
        elif isinstance(node, ast.Attribute):
            known = ast.unparse(node) in _ATTRIBUTES
        elif isinstance(node, ast.Expr):
            known = isinstance(node.value, ast.Constant) or (
                isinstance(node.value, ast.Call) and ast.unparse(node.value.func) in _LINKS
            )
        if not known:
            raise UsageError(
                f"line {getattr(node, 'lineno', 0)} of the inferred module is not a declaration "
                f"({type(node).__name__}), so it is not run. Report this with the names that lead to it."
            )


def _is_of_a_reference(node: ast.AST) -> bool:
    """Return whether a node may be part of the function of a reference."""
    if isinstance(node, ast.Call):
        return ast.unparse(node.func) in _ID_TYPES and len(node.args) == 1 and not node.keywords
    if isinstance(node, ast.Attribute):
        return not node.attr.startswith("_")
    return isinstance(node, _LAMBDA)
