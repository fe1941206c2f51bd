"""Signatures of functions and heads of classes, as they are written, in lines of at most 88 columns."""

from __future__ import annotations

from typing import Any

__all__ = ["class_head", "signature"]

WIDTH = 88
_STARS = {"variadic positional": "*", "variadic keyword": "**"}


def signature(name: str, function: Any) -> str:
    """Return `def name(…) -> …`, without `self`."""
    result = f" -> {function.returns}" if function.returns is not None else ""
    head = "async def" if "async" in function.labels else "def"
    return _fitted(f"{head} {name}", _parameters(function), result)


def class_head(name: str, each: Any) -> str:
    """Return `class Name(Base)`, and how it is constructed."""
    bases = [str(base) for base in each.bases if not str(base).startswith("Generic[")]
    head = f"class {name}({', '.join(bases)})" if bases else f"class {name}"
    own = each.members.get("__init__") or each.members.get("__new__")
    if own is None or own.is_alias or not own.is_function:
        return head
    return f"{head}\n{_fitted(name, _parameters(own), '')}"


def _parameters(function: Any) -> list[str]:
    shown: list[str] = []
    kinds: list[str] = []
    for each in function.parameters:
        kind = each.kind.value if each.kind else ""
        if each.name in ("self", "cls") and not shown:
            continue
        if kind == "keyword-only" and not {"keyword-only", "variadic positional"} & set(kinds):
            shown.append("*")
        if kinds and kinds[-1] == "positional-only" != kind:
            shown.append("/")
        kinds.append(kind)
        hint = f": {each.annotation}" if each.annotation is not None else ""
        equals = " = " if hint else "="
        default = f"{equals}{each.default}" if each.default is not None and kind not in _STARS else ""
        shown.append(f"{_STARS.get(kind, '')}{each.name}{hint}{default}")
    if kinds and kinds[-1] == "positional-only":
        shown.append("/")
    return shown


def _fitted(head: str, parameters: list[str], tail: str) -> str:
    line = f"{head}({', '.join(parameters)}){tail}"
    if len(line) <= WIDTH:
        return line
    return "\n".join([f"{head}(", *(f"    {each}," for each in parameters), f"){tail}"])
