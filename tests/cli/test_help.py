"""The help of every command, of this and of all other distributions, at 80 columns."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from typing import Any

import pytest
import typer
from typer.main import get_command

from invoking import Invoke
from keywright.cli import app
from keywright.cli.help import help_text

ROOT: Any = get_command(app)
JARGON = re.compile(
    r"<(?:str|int|float|bool|path|list|text)\b|\b(?:TEXT|INTEGER|FLOAT|PATH_TYPE)\b|\[OPTIONS\].*\.\.\.|x[<>]=|"
    r"\[\[|\brange>"
)
CONNECTORS = {"|", ">", "<", "&&"}


def _commands(
    command: Any, ctx: typer.Context, path: tuple[str, ...]
) -> Iterator[tuple[tuple[str, ...], Any]]:
    yield path, command
    for name in command.list_commands(ctx) if hasattr(command, "list_commands") else ():
        below = command.get_command(ctx, name)
        yield from _commands(below, typer.Context(below, info_name=name, parent=ctx), (*path, name))


COMMANDS = dict(_commands(ROOT, typer.Context(ROOT, info_name="keywright"), ()))


@pytest.mark.parametrize("path", COMMANDS, ids=lambda path: " ".join(path) or "keywright")
def test_help_fits_80_columns_with_whole_sentences(
    invoke: Invoke, monkeypatch: pytest.MonkeyPatch, path: tuple[str, ...]
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    done = invoke(*path, "--help")
    lines = done.stdout.splitlines()
    assert done.exit_code == 0
    assert [line for line in lines if len(line) > 80] == []
    assert [line for line in lines if "..." in line or (line.endswith("…") and "Usage:" not in line)] == []
    assert [line for line in lines if JARGON.search(line)] == []
    flat = " ".join(done.stdout.split())
    for param in COMMANDS[path].params:
        words = " ".join((param.help or "").split())
        assert words, f"{param.name} has no help"
        assert words in flat, f"the help of {param.name} is cut"
        assert words.endswith((".", "?")), f"the help of {param.name} is not a sentence: {words}"
    for paragraph in help_text(COMMANDS[path].help).paragraphs:
        assert paragraph in flat


@pytest.mark.parametrize(
    "path", [path for path, each in COMMANDS.items() if not hasattr(each, "list_commands")]
)
def test_every_command_has_an_example_whose_options_exist(path: tuple[str, ...]) -> None:
    examples = help_text(COMMANDS[path].help).examples
    own = [words for line in examples if (words := _words(line, path)) is not None]
    assert own, f"{' '.join(path)} has no example"
    for line in examples:
        assert len(f"  {line}") <= 80
    params = {name: param for param in COMMANDS[path].params for name in (*param.opts, *param.secondary_opts)}
    for words in own:
        _parse(words, params)


def _words(line: str, path: tuple[str, ...]) -> list[str] | None:
    """Return the arguments of an example, or None if it is of another program."""
    lexer = shlex.shlex(line.replace("$(", " ").replace(')"', ""), posix=True, punctuation_chars="|<>&")
    lexer.whitespace_split, lexer.commenters = True, ""
    words = list(lexer) if line.count('"$(') == 0 else line.partition("$(")[2].rstrip(')"').split()
    head = ["keywright", *path]
    for start in range(len(words)):
        if words[start : start + len(head)] == head:
            rest = words[start + len(head) :]
            end = next((place for place, word in enumerate(rest) if word in CONNECTORS), len(rest))
            return rest[:end]
    return None


def _parse(words: list[str], params: dict[str, Any]) -> None:
    expected = [param for param in params.values() if param.param_type_name == "argument"]
    arguments, waiting = 0, iter(words)
    for word in waiting:
        if not word.startswith("-") or word == "-":
            arguments += 1
            continue
        param = params[word.partition("=")[0]]
        if not param.is_flag and "=" not in word:
            assert next(waiting, None) is not None, f"{word} has no value"
    assert arguments >= sum(param.required for param in expected)
    assert arguments <= len(expected) or any(param.nargs == -1 for param in expected)
    given = {params[word].name for word in words if word in params}
    required = {
        param.name for param in params.values() if param.param_type_name == "option" and param.required
    }
    assert required <= given


def test_help_uses_the_width_that_there_is(invoke: Invoke, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "120")
    lines = invoke("audit", "--help").stdout.splitlines()
    assert 100 < max(map(len, lines)) <= 120


def test_help_imports_no_command() -> None:
    import subprocess
    import sys

    script = (
        "import sys; from keywright.cli import app\n"
        "try: app(['--help'])\n"
        "except SystemExit: pass\n"
        "heavy = {'keywright.keyspace', 'keywright.engine', 'redis', 'msgspec', 'rich'} & set(sys.modules)\n"
        "sys.exit(str(heavy) if heavy else 0)"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    assert "Systems:" in done.stdout
