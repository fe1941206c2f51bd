"""JSON and YAML as generators write them: indented, in the order given, the same every time."""

from __future__ import annotations

import json
from typing import Any

import msgspec

__all__ = ["as_json", "as_yaml"]


def as_json(document: Any) -> str:
    """Return a document as JSON."""
    return msgspec.json.format(msgspec.json.encode(document), indent=2).decode() + "\n"


def as_yaml(value: Any) -> str:
    """Return a document of objects, arrays and scalars as YAML: texts are quoted as in JSON."""
    return "\n".join(_lines(value, 0)) + "\n"


def _lines(value: Any, depth: int) -> list[str]:
    pad = "  " * depth
    lines: list[str] = []
    if isinstance(value, dict):
        for name, each in value.items():
            lines += _entry(f"{pad}{name}:", each, depth)
        return lines
    for each in value:
        inner = _lines(each, depth + 1) if isinstance(each, dict | list) else [f"{pad}  {_scalar(each)}"]
        lines += [f"{pad}- {inner[0].lstrip()}", *inner[1:]]
    return lines


def _entry(head: str, value: Any, depth: int) -> list[str]:
    if isinstance(value, dict | list) and value:
        return [head, *_lines(value, depth + 1)]
    return [f"{head} {_scalar(value)}"]


def _scalar(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)
