"""The reference of the command line: one page for each command, from its options, as `--help` shows them."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from typer.main import get_command

from keywright.cli import app
from keywright.cli.help import HelpText, help_text
from keywright.cli.params import notes_of, spelling, usage

__all__ = ["command_pages"]


def command_pages() -> dict[str, str]:
    """Return the pages of all commands, those of the systems too, by their place on the site."""
    program: Any = get_command(app)
    context = program.make_context("keywright", [], resilient_parsing=True)
    commands = {
        name: program.get_command(context, name) for name in sorted(set(program.list_commands(context)))
    }
    commands = {name: command for name, command in commands.items() if not command.hidden}
    pages = {
        f"reference/commands/{name}.md": "\n".join(_page(f"keywright {name}", command, 1))
        for name, command in commands.items()
    }
    lines = [
        "# Commands",
        "",
        *_prose(help_text(program.help)),
        *_parameters(program),
        "| command | purpose |",
        "|---|---|",
    ]
    lines += [f"| [`{name}`]({name}.md) | {_summary(command)} |" for name, command in commands.items()]
    return pages | {"reference/commands/README.md": "\n".join([*lines, ""])}


def _page(path: str, command: Any, level: int) -> Iterator[str]:
    text = help_text(command.help or "")
    yield f"{'#' * level} {path.removeprefix('keywright ')}"
    yield ""
    yield from _prose(text)
    yield f"```shell\n{usage(command, path)}\n```"
    yield ""
    if text.examples:
        yield "```shell"
        yield from text.examples
        yield "```"
        yield ""
    yield from _parameters(command)
    context = command.context_class(command, info_name=path)
    for name in getattr(command, "list_commands", lambda _: [])(context):
        yield from _page(f"{path} {name}", command.get_command(context, name), level + 1)


def _parameters(command: Any) -> Iterator[str]:
    """Yield the arguments and options as a list with their texts, choices, defaults and variables."""
    for each in command.params:
        if not getattr(each, "hidden", False):
            notes = notes_of(each).strip("[]")
            text = " ".join((each.help or "").split())
            yield f"`{spelling(each)}`"
            yield f":   {_escaped(text)}{f' *({_escaped(notes)})*' if notes else ''}"
            yield ""


def _summary(command: Any) -> str:
    return _escaped(next(iter(help_text(command.help or "").paragraphs), ""))


def _prose(text: HelpText) -> Iterator[str]:
    for paragraph in text.paragraphs:
        yield _escaped(paragraph)
        yield ""


def _escaped(text: str) -> str:
    """Return text in which nothing is taken for HTML or a table."""
    parts = re.split(r"(`[^`]*`)", text)
    return "".join(part if part.startswith("`") else re.sub(r"([<|*_\[\]])", r"\\\1", part) for part in parts)
