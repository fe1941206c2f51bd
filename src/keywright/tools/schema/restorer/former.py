"""Former keys of upgrades, of which a schema has the template only."""

from __future__ import annotations

import re
import types
from collections.abc import Callable
from typing import Annotated, Any

from keywright.errors import UsageError
from keywright.keyspace import Key, Keyspace, kinds
from keywright.keyspace.alphabets import Plain

__all__ = ["former_key"]

_VARIABLE = re.compile(r"(?<!\\)<([A-Za-z_][A-Za-z0-9_]*)>")


def former_key(full_template: str | None, lead: str, space: Keyspace) -> Callable[[Any], Key]:
    """Return a function that gives some key of the former template; it raises if that is not known."""
    if full_template is None:
        return _unknown
    names = _VARIABLE.findall(full_template)
    body = {"__annotations__": {name: Annotated[str, Plain()] for name in names}, "__module__": __name__}
    before = Keyspace(f"{space.name} before", "Names of older versions.")
    options = {"key": full_template.removeprefix(lead), "space": before}
    kind: Any = types.new_class("Former", (kinds.Value[bytes],), options, lambda found: found.update(body))
    return lambda _: kind(*("a" for _ in names))


def _unknown(_: Any) -> Key:
    raise UsageError("the former name is computed by a function of the program. Use its declaration.")
