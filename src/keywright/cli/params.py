"""The parameters of a command in words: how each is written, its choices, its default."""

from __future__ import annotations

from enum import Enum
from pathlib import Path
from typing import Any, get_args

__all__ = [
    "choices_of",
    "is_option",
    "metavar_of",
    "notes_of",
    "number_of",
    "spelling",
    "takes_value",
    "usage",
]

_INLINE = 20
"""Choices of at most this many characters stand beside the option itself."""


def is_option(param: Any) -> bool:
    return bool(param.param_type_name == "option")


def takes_value(param: Any) -> bool:
    return not (is_option(param) and (param.is_flag or param.count))


def choices_of(param: Any) -> list[str]:
    """Return the values that a parameter accepts; none if it accepts more than a list of them."""
    choices = param.type_descriptor.choices or ()
    return [str(each.value if isinstance(each, Enum) else each) for each in choices]


def number_of(param: Any) -> type[int | float] | None:
    """Return int or float for a parameter that is a number."""
    annotation = param.type_descriptor.annotation
    kinds = (annotation, *get_args(annotation))
    return next((kind for kind in (int, float) if kind in kinds), None)


def metavar_of(param: Any) -> str:
    """Return how the value of a parameter is called: as it was declared, else by its name and type."""
    if param.metavar:
        return str(param.metavar).strip("[].…")
    choices = choices_of(param)
    if choices and len("|".join(choices)) <= _INLINE:
        return "|".join(choices)
    annotation = param.type_descriptor.annotation
    if Path in (annotation, *get_args(annotation)):
        return "FILE"
    if number_of(param) is not None:
        return "N"
    longest = [name for name in param.opts if name.startswith("--")] or param.opts
    word = longest[0].lstrip("-") if is_option(param) else param.name
    return str(word).replace("_", "-").rpartition("-")[2].upper()


def spelling(param: Any) -> str:
    """Return the parameter as it is written on the command line."""
    if not is_option(param):
        return metavar_of(param)
    names = ", ".join(sorted(param.opts, key=lambda name: name.startswith("--")))
    if param.secondary_opts:
        names += f"/{param.secondary_opts[0]}"
    return f"{names} {metavar_of(param)}" if takes_value(param) else names


def usage(command: Any, path: str) -> str:
    """Return the usage of a command on one line."""
    if hasattr(command, "sections"):
        return f"{path} [OPTIONS] COMMAND"
    words = [path, "[OPTIONS]"]
    for param in command.params:
        if not is_option(param):
            word = f"{metavar_of(param)}…" if param.nargs == -1 else metavar_of(param)
            words.append(word if param.required else f"[{word}]")
        elif param.required:
            words.append(f"{param.opts[0]} {metavar_of(param)}")
    return " ".join(words)


def notes_of(param: Any) -> str:
    """Return what follows the help of a parameter: choices, default, variable; empty if there is nothing."""
    notes = []
    choices = choices_of(param)
    if choices and "|".join(choices) not in metavar_of(param):
        notes.append(f"one of: {', '.join(choices)}")
    default = _default_of(param)
    if default:
        notes.append(f"default: {default}")
    variables = param.envvar
    if variables:
        notes.append(f"env: {variables if isinstance(variables, str) else ', '.join(variables)}")
    if is_option(param) and param.required:
        notes.append("required")
    if is_option(param) and param.multiple:
        notes.append("repeatable")
    return f"[{'; '.join(notes)}]" if notes else ""


def _default_of(param: Any) -> str:
    default = param.default
    if isinstance(param.show_default, str):
        return str(param.show_default)
    if not param.show_default or default is None or callable(default):
        return ""
    if isinstance(default, bool):
        return str((param.opts if default else param.secondary_opts)[0]) if param.secondary_opts else ""
    if isinstance(default, Enum):
        return str(default.value)
    if isinstance(default, list | tuple):
        return ", ".join(map(str, default))
    return f"{default:g}" if isinstance(default, float) else str(default)
