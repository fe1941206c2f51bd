"""The keyspace of an inferred module, for tools that need one at once."""

from __future__ import annotations

import sys
from types import ModuleType

from keywright.errors import UsageError
from keywright.keyspace import Keyspace, check
from keywright.tools.infer.inference import Inference
from keywright.tools.model import Model

__all__ = ["inferred_model"]

_MODULE = "keywright_inferred"


def inferred_model(inference: Inference) -> Model:
    """Return the model that an inferred module declares. Raise UsageError if it is not proved.

    The module holds declarations only: texts of others are string literals in it.
    """
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
