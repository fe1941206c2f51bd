"""Label selectors of PromQL."""

from __future__ import annotations

import json
import re

__all__ = ["matching", "selector"]


def selector(*, instance: str = "$instance", key_group: str | list[str] | None = None) -> str:
    """Return the matchers of a dashboard: its servers, and some key groups."""
    matchers = [f'instance=~"{instance}"']
    if isinstance(key_group, str):
        matchers.append(f"key_group={json.dumps(key_group, ensure_ascii=False)}")
    elif key_group is not None:
        matchers.append(matching("key_group", key_group))
    return ", ".join(matchers)


def matching(label: str, values: list[str], *, negated: bool = False) -> str:
    """Return the matcher of a label with any of some values, or with none of them."""
    expression = "|".join(map(_quoted, values))
    return f"{label}{'!' if negated else '='}~{json.dumps(expression, ensure_ascii=False)}"


def _quoted(text: str) -> str:
    """Return a text as RE2 reads it literally."""
    return re.sub(r"([\\.+*?()|\[\]{}^$])", r"\\\1", text)
