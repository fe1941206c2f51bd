"""Loading a keyspace by `MODULE:ATTRIBUTE`. Importing a module runs it: name only modules you trust."""

from __future__ import annotations

import sys
from importlib import import_module
from pathlib import Path
from types import ModuleType

from keywright.errors import KeywrightError, UsageError, did_you_mean
from keywright.keyspace import Keyspace

__all__ = ["keyspaces_of", "load_keyspace"]


def load_keyspace(name: str) -> Keyspace:
    """Return the keyspace of that name. Raise UsageError with the possible names if it does not exist."""
    module_name, colon, attribute = name.partition(":")
    if not (module_name and colon and attribute):
        raise UsageError(
            f"{name!r} does not name a keyspace. Write MODULE:ATTRIBUTE, as in shop.schema:shop."
        )
    module = _imported(module_name)
    found = getattr(module, attribute, None)
    if isinstance(found, Keyspace):
        return found
    what = "has nothing of that name" if found is None else f"holds a {type(found).__name__} there"
    near = did_you_mean(attribute, _keyspaces_in(module))
    remedy = _remedy(module_name, module)
    raise UsageError(f"{name!r} does not name a keyspace: the module {what}.{near} {remedy}")


def keyspaces_of(module: str) -> list[str]:
    """Return the names of the keyspaces in a module, which is imported. Raise UsageError if that fails."""
    return _keyspaces_in(_imported(module))


def _imported(name: str) -> ModuleType:
    here = str(Path.cwd())
    if here not in sys.path:
        # Last, so that no file here stands in for an installed module. It stays: a module may import its
        # neighbours later than at its own import.
        sys.path.append(here)
    try:
        return import_module(name)
    except KeywrightError:
        raise
    except ModuleNotFoundError as error:
        if error.name and (name == error.name or name.startswith(f"{error.name}.")):
            raise UsageError(
                f"there is no module {name!r}. Install it, or run this in the folder that holds it."
            ) from error
        raise UsageError(f"{name!r} imports {error.name!r}, which is not installed here.") from error
    except Exception as error:
        raise UsageError(
            f"{name!r} cannot be imported: {type(error).__name__}: {error}. Run it with python to see where."
        ) from error


def _keyspaces_in(module: ModuleType) -> list[str]:
    return sorted(attribute for attribute, value in vars(module).items() if isinstance(value, Keyspace))


def _remedy(name: str, module: ModuleType) -> str:
    here = _keyspaces_in(module)
    listing = " or ".join(f"{name}:{attribute}" for attribute in here)
    return f"Use {listing}." if here else "It declares no keyspace at all."
