"""What stops a command, in one voice: `error: subject problem. Remedy.`, and the exit code."""

from __future__ import annotations

import re
import time
import traceback
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import typer

from keywright.cli.command import CLICK_ERROR
from keywright.cli.json_errors import as_json_line, wants_json
from keywright.cli.output import echo, echo_error
from keywright.cli.params import choices_of, is_option, metavar_of, number_of, spelling, usage
from keywright.cli.terminal import manner
from keywright.errors import KeywrightError, did_you_mean

__all__ = ["Ending", "exit_codes"]

INTERRUPTED = 130


class Ending:
    """How a command ended."""

    def __init__(self) -> None:
        self.code = 0
        self._started = time.monotonic()

    @property
    def seconds(self) -> float:
        return time.monotonic() - self._started


@contextmanager
def exit_codes(arguments: Sequence[str]) -> Iterator[Ending]:
    """Print an error that is raised within the block, as JSON if that is asked for; keep its exit code."""
    ending = Ending()
    try:
        yield ending
        ending.code = ending.code or 0
    except typer.Abort:
        echo_error("interrupted.")
        ending.code = INTERRUPTED
    except KeywrightError as error:
        if manner.debug:
            echo(*"".join(traceback.format_exception(error)).split("\n"), err=True)
        elif wants_json(arguments):
            echo(as_json_line(error), err=True)
        else:
            echo_error(*str(error).split("\n"))
        ending.code = error.exit_code
    except CLICK_ERROR as error:
        _print_misuse(error)
        ending.code = error.exit_code


def _print_misuse(error: Any) -> None:
    ctx: Any = getattr(error, "ctx", None)
    if type(error).__name__ == "NoArgsIsHelpError":
        echo(*ctx.get_help().split("\n"), err=True)
        return
    echo_error(_message(error, ctx))
    if ctx is not None:
        echo(f"Try '{ctx.command_path} --help'.", err=True)


def _message(error: Any, ctx: Any) -> str:
    kind = type(error).__name__
    if kind == "MissingParameter":
        return _missing(error.param, ctx)
    if kind == "BadParameter" and error.param is not None:
        return _refused(error)
    if kind == "NoSuchOption":
        known = [
            name for param in ctx.command.get_params(ctx) for name in (*param.opts, *param.secondary_opts)
        ]
        return f"{error.option_name} is not an option of {ctx.command_path}.{_suggested(error, known)}"
    if kind == "BadOptionUsage":
        param = next((each for each in ctx.command.get_params(ctx) if error.option_name in each.opts), None)
        if param is not None and "requires" in error.message:
            return f"{error.option_name} has no value. Write {spelling(param)}."
        return f"{error.option_name} has a value, and takes none. Leave it out."
    extra = re.fullmatch(r"Got unexpected extra argument(?:s|\(s\))? \((.*)\)", error.message)
    if extra is not None:
        return f"{extra[1]!r} is too much. Usage: {usage(ctx.command, ctx.command_path)}"
    return str(error.format_message())


def _suggested(error: Any, known: list[str]) -> str:
    options = [name for name in known if name.startswith("--")]
    return did_you_mean(error.option_name, options).replace("'", "")


def _missing(param: Any, ctx: Any) -> str:
    if is_option(param):
        return f"{param.opts[0]} is missing. Add {spelling(param)}."
    return f"{metavar_of(param)} is missing. Usage: {usage(ctx.command, ctx.command_path)}"


def _refused(error: Any) -> str:
    param, found = error.param, _input(error)
    label = param.opts[-1] if is_option(param) else metavar_of(param)
    got = "" if found is None else f", got {found!r}"
    choices = choices_of(param)
    if choices:
        near = "" if found is None else did_you_mean(found, choices)
        return f"{label} must be one of {', '.join(choices)}{got}.{near}"
    number = number_of(param)
    if number is not None:
        noun = "a whole number" if number is int else "a number"
        return f"{label} must be {noun}{_range(param)}{got}."
    return f"{label} is not valid: {error.message.removeprefix('Value error, ').rstrip('.')}."


def _input(error: Any) -> str | None:
    """Return what was given, from the validation error of which this one is made."""
    cause = error.__cause__
    errors = cause.errors() if hasattr(cause, "errors") else []
    return str(errors[0]["input"]) if errors and "input" in errors[0] else None


def _range(param: Any) -> str:
    info = param.type_descriptor.parameter_info
    if info.min is not None and info.max is not None:
        return f" from {info.min:g} to {info.max:g}" if info.max < 1 << 32 else ""
    if info.min is not None:
        return f" of at least {info.min:g}"
    return "" if info.max is None else f" of at most {info.max:g}"
