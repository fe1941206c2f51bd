"""Models and commands of installed distributions, found by their entry points.

A distribution publishes a model in the group `keywright.models`, as a `Keyspace` or a `Model`, and a command
or a group of commands in `keywright.commands`, as a function or a `typer.Typer`. The group
`keywright.catalogue` has programs of others, each a `Program`: models by name, and not part of the installed
models that a command without a MODEL takes together.
"""

from __future__ import annotations

from importlib.metadata import EntryPoint
from typing import Any

from keywright.errors import KeywrightError, UsageError, did_you_mean, missing_dependency
from keywright.keyspace import Keyspace
from keywright.tools.installed import (
    CATALOGUE,
    COMMANDS,
    MODELS,
    command_names,
    entries,
    install_hint,
    model_names,
    program_names,
)
from keywright.tools.loader import load_keyspace
from keywright.tools.model import Model
from keywright.tools.program import Program

__all__ = [
    "command_names",
    "distribution_of",
    "install_hint",
    "load_catalogue",
    "load_command",
    "load_model",
    "model_names",
    "program_names",
]


def load_catalogue() -> dict[str, Program]:
    """Return all programs of the catalogue by where each is declared, as MODULE:ATTRIBUTE."""
    return {entries(CATALOGUE)[name].value: _program(name) for name in program_names()}


def _program(name: str) -> Program:
    found = _loaded(entries(CATALOGUE)[name])
    if not isinstance(found, Program):
        what = f"a {type(found).__name__}, not a Program"
        raise UsageError(f"the entry point {name!r} of {CATALOGUE} is {what}.")
    if found.name != name:
        what = f"the program {found.name!r}"
        raise UsageError(f"the entry point {name!r} of {CATALOGUE} is {what}. Give both one name.")
    return found


def distribution_of(command: str) -> str:
    """Return the name of the distribution that adds a command; the library itself adds the others."""
    entry = entries(COMMANDS).get(command)
    return _distribution(entry) if entry is not None else "keywright[cli]"


def load_command(name: str) -> Any:
    """Return the function or the typer application behind a command's entry point."""
    return _loaded(entries(COMMANDS)[name])


def load_model(names: str) -> Model:
    """Return the model of that name; several, separated by commas, are joined into one.

    A name is that of an installed model, of a program of the catalogue, or MODULE:ATTRIBUTE. After the
    latter, a plain word is another attribute of the same module. Raise UsageError if one
    of them names nothing.
    """
    found: list[Model] = []
    module = ""
    for name in filter(None, (part.strip() for part in names.split(","))):
        if ":" in name:
            module = name.partition(":")[0]
            found.append(_of_keyspace(load_keyspace(name)))
        elif name in entries(MODELS):
            module = ""
            found.append(_installed(name))
        elif name in entries(CATALOGUE):
            module = ""
            found.append(_program(name).model)
        elif module:
            found.append(_of_keyspace(load_keyspace(f"{module}:{name}")))
        else:
            raise UsageError(_unknown(name))
    if len(found) == 1:
        return Model(names, found[0].spaces, found[0].sweep, found[0].conversions, found[0].channels)
    if not found:
        raise UsageError(f"{names!r} does not name a model. {_choices()}")
    spaces = dict.fromkeys(space for model in found for space in model.spaces)
    # A replaced keyspace follows, so that its names are those of the present one in any order of the names.
    return Model(names, tuple(sorted(spaces, key=lambda space: space.replaced_by is not None)))


def _of_keyspace(space: Keyspace) -> Model:
    return Model(space.name, (space,))


def _installed(name: str) -> Model:
    found = _loaded(entries(MODELS)[name])
    if isinstance(found, Model):
        return found
    if isinstance(found, Keyspace):
        return _of_keyspace(found)
    raise UsageError(f"the entry point {name!r} of {MODELS} is a {type(found).__name__}, not a model.")


def _loaded(entry: EntryPoint) -> Any:
    package = _distribution(entry)
    try:
        return entry.load()
    except KeywrightError:
        raise
    except Exception as error:
        missing = missing_dependency(error, repr(entry.name), package)
        raise missing or UsageError(
            f"{entry.name!r} of {package} cannot be loaded: {type(error).__name__}: {error}. "
            f"Upgrade or uninstall {package}."
        ) from error


def _distribution(entry: EntryPoint) -> str:
    return entry.dist.name if entry.dist is not None else entry.module


def _unknown(name: str) -> str:
    hint = install_hint(name)
    if hint is not None:
        return f"the model {name!r} is not installed. Install it with: {hint}"
    near = did_you_mean(name, [*model_names(), *program_names()])
    return f"{name!r} does not name a model.{near} {_choices()}"


def _choices() -> str:
    installed = ", ".join(model_names()) or "none is installed"
    programs = ", ".join(program_names())
    known = f"{installed}; in the catalogue: {programs}" if programs else installed
    return f"Write MODULE:ATTRIBUTE, as in shop.schema:shop, or the name of an installed model ({known})."
