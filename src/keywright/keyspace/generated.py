"""Functions that are made of source, where a class decides what they do and they are called in bulk."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

__all__ = ["function"]


def function(
    argument: str, lines: Iterable[str], scope: dict[str, Any], plainly: Callable[[Any], Any]
) -> Callable[[Any], Any]:
    """Return the function with this body. Where it raises, `plainly`, which does the same, reports why."""
    body = "\n        ".join(lines)
    source = (
        f"def quickly({argument}):\n    try:\n        {body}\n    except Exception:\n        pass\n"
        f"    return plainly({argument})\n"
    )
    # With the name of a module, so that what it raises is not blamed on a function of the caller.
    names = {**scope, "plainly": plainly, "__name__": __name__}
    exec(source, names)
    made: Callable[[Any], Any] = names["quickly"]
    return made
