"""What may stand for a parameter on the command line, for completion: by its choices, else by its metavar."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

from keywright.cli.params import choices_of, metavar_of
from keywright.errors import KeywrightError
from keywright.tools.installed import model_names, program_names

__all__ = ["FILES", "Candidate", "command_candidates", "value_candidates"]


class Candidate(NamedTuple):
    """A word, and what it means."""

    value: str
    help: str = ""


FILES = Candidate("")
"""Asks the shell for names of files."""


def command_candidates(group: Any, ctx: Any, last: str) -> list[Candidate]:
    return [
        Candidate(name, summary)
        for commands in group.sections(ctx).values()
        for name, summary in commands
        if name.startswith(last)
    ]


def value_candidates(param: Any, last: str, arguments: Sequence[str]) -> list[Candidate]:
    """Return what may stand for a parameter. `arguments` are those before it: the first may be a model."""
    choices = choices_of(param)
    if choices:
        return [Candidate(each) for each in choices if each.startswith(last)]
    source = _SOURCES.get(metavar_of(param))
    if source is not None:
        return list(source(last, arguments))
    found = param.shell_complete(None, last)  # of a command that completes its values itself
    return [Candidate(str(each.value)) for each in found if each.type == "plain"]


def _models(last: str, arguments: Sequence[str]) -> Iterable[Candidate]:
    """Complete the last of several names; MODULE:ATTRIBUTE by the keyspaces of the module."""
    others, comma, name = last.rpartition(",")
    if ":" in name:
        found = [Candidate(each) for each in _keyspaces(name.partition(":")[0])]
    else:
        found = [Candidate(each, "installed model") for each in model_names()]
        found += [Candidate(each, "program of the catalogue") for each in program_names()]
    for each in found:
        if each.value.startswith(name):
            yield each._replace(value=f"{others}{comma}{each.value}")


def _keyspaces(module: str) -> list[str]:
    from keywright.tools.loader import keyspaces_of

    try:
        return [f"{module}:{name}" for name in keyspaces_of(module)]
    except KeywrightError:
        return []


def _templates(last: str, arguments: Sequence[str]) -> Iterable[Candidate]:
    """Complete a template of the model that is given before it."""
    from keywright.tools.plugins import load_model

    try:
        spaces = load_model(arguments[0]).spaces if arguments else ()
    except KeywrightError:
        return
    for space in spaces:
        for kind in space:
            template = kind.declaration.template.source
            if template.startswith(last):
                yield Candidate(template, (kind.__doc__ or "").partition("\n")[0])


def _budgets(last: str, arguments: Sequence[str]) -> Iterable[Candidate]:
    for each in _templates(last, arguments):
        yield each._replace(value=f"{each.value}=")


def _codes(last: str, arguments: Sequence[str]) -> Iterable[Candidate]:
    codes = importlib.import_module("keywright.tools.audit.findings").CODES
    for code, kind in codes.items():
        if code.startswith(last.upper()):
            yield Candidate(code, kind.title)


def _code_lists(last: str, arguments: Sequence[str]) -> Iterable[Candidate]:
    """Complete the last of several codes or words."""
    others, comma, name = last.rpartition(",")
    findings = importlib.import_module("keywright.tools.audit.findings")
    for each in (*_codes(name, arguments), *(Candidate(word) for word in findings.words())):
        if each.value.startswith((name, name.upper())):
            yield each._replace(value=f"{others}{comma}{each.value}")


def _files(last: str, arguments: Sequence[str]) -> Iterable[Candidate]:
    return [FILES]


_SOURCES: dict[str, Callable[[str, Sequence[str]], Iterable[Candidate]]] = {
    "BUDGET": _budgets,
    "CODE": _codes,
    "CODES": _code_lists,
    "DIR": _files,
    "FILE": _files,
    "KEY": _templates,
    "MODEL": _models,
    "NEW": _models,
    "OLD": _models,
    "TEMPLATE": _templates,
}
