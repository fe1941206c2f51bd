"""Additions to a declaration that exists: templates for the names that it does not have."""

from __future__ import annotations

import importlib.util
import os
import shutil
from collections.abc import Mapping
from pathlib import Path
from types import ModuleType
from typing import NamedTuple

from keywright.errors import KeywrightError, UsageError
from keywright.keyspace import Key, Keyspace
from keywright.tools.infer.facts import Facts
from keywright.tools.infer.module import RESERVED, addition_text, key_declarations
from keywright.tools.infer.names import NameSample
from keywright.tools.infer.structs import Structs
from keywright.tools.infer.templates import declared_templates, known_templates
from keywright.tools.infer.tree import Observation, patterns_of

__all__ = ["Addition", "added_to", "append_to", "module_at"]


class Addition(NamedTuple):
    """The text to append, empty if nothing is new, and how many names have a template now."""

    text: str
    names: int
    known: int
    added: int
    outside: int
    templates: int

    @property
    def coverage(self) -> list[str]:
        """Lines for people: what was matched, what is new, what remains and why."""
        lines = [f"{self.known:,} of {self.names:,} keys were declared; {self.templates} new templates"]
        if self.added:
            lines.append(f"{self.added:,} keys match the new templates")
        if self.outside:
            lines.append(f"{self.outside:,} keys are outside the prefix of the keyspace")
        rest = self.names - self.known - self.added - self.outside
        if rest > 0:
            lines.append(
                f"{rest:,} keys have no structure that repeats, or too long names: they stay undeclared"
            )
        return lines


def module_at(path: Path) -> ModuleType:
    """Import a module from its file, which runs it. Raise UsageError if that fails."""
    made = importlib.util.spec_from_file_location(path.stem, path)
    if not path.is_file() or made is None or made.loader is None:
        raise UsageError(f"{path} is not a Python module. Name the file that --output wrote.")
    module = importlib.util.module_from_spec(made)
    try:
        made.loader.exec_module(module)
    except KeywrightError:
        raise
    except Exception as error:
        raise UsageError(
            f"{path} cannot be imported: {type(error).__name__}: {error}. Correct it."
        ) from error
    return module


def added_to(
    module: ModuleType, sample: NameSample, facts: Mapping[bytes, Facts], *, show_ids: bool = False
) -> Addition:
    """Return the declarations that a module lacks. Raise UsageError if it does not have one keyspace."""
    variable, space = _keyspace(module)
    lead = space.bind().lead
    classes = {name: kind for name, kind in vars(module).items() if _is_key(kind, space)}
    templates = [kind for kind in space if not kind.declaration.fallback]
    if unnamed := [kind.__name__ for kind in templates if kind not in classes.values()]:
        raise UsageError(
            f"{unnamed[0]} is not a class of the module itself. Update the module that declares it."
        )
    observations, known, outside = [], 0.0, 0.0
    for name, weight in sample:
        if not name.startswith(lead):
            outside += weight
        elif any(kind.declaration.template.parse(name[len(lead) :]) is not None for kind in templates):
            known += weight
        else:
            observations.append(Observation(name[len(lead) :], weight, facts.get(name)))
    by_name = {name: kind for name, kind in classes.items() if not kind.declaration.fallback}
    declared, _ = declared_templates(patterns_of(observations), observations, known_templates(by_name))
    structs = Structs({*RESERVED, *vars(module)})
    keys = key_declarations(declared, structs)
    text = addition_text(
        variable, keys, structs, total=sample.count, imported=vars(module), show_ids=show_ids
    )
    added = round(sum(each.weight for each in declared))
    return Addition(text if keys else "", sample.count, round(known), added, round(outside), len(keys))


def append_to(path: Path, text: str) -> None:
    """Append to a file by replacing it: if the process dies before, the file is as it was."""
    new = path.with_name(f".{path.name}.new")
    try:
        new.write_bytes(path.read_bytes() + text.encode())
        shutil.copymode(path, new)
        os.replace(new, path)
    except OSError as error:
        raise UsageError(f"{path} cannot be written: {error.strerror}. Name another file.") from error


def _keyspace(module: ModuleType) -> tuple[str, Keyspace]:
    found = [(name, value) for name, value in vars(module).items() if isinstance(value, Keyspace)]
    if len(found) != 1:
        listing = ", ".join(name for name, _ in found) or "none"
        raise UsageError(f"--update needs a module with one keyspace; {module.__name__} has {listing}.")
    return found[0]


def _is_key(value: object, space: Keyspace) -> bool:
    return isinstance(value, type) and issubclass(value, Key) and value in space.keys
