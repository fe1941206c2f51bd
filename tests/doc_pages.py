"""Pages of the documentation as programs: their blocks of code, run in order in a folder of their own.

CONTRIBUTING.md has the rules of blocks.
"""

from __future__ import annotations

import json
import os
import re
import shlex
import subprocess
import sys
import tomllib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from invoking import invoke_keywright

__all__ = ["Block", "Page", "blocks_of", "pieces", "same"]

ROOT = Path(__file__).parents[1]
FENCE = re.compile(
    r"^(?P<fence>```+|~~~+)(?P<info>[^\n]*)\n(?P<text>.*?)^(?P=fence) *$", re.MULTILINE | re.DOTALL
)
INFO = re.compile(r'(?P<language>\w*)(?: title="(?P<title>[^"]+)")?(?: (?P<mode>replace|written))?')
NOT_RUN = "Not run here: "
DATA: dict[str, Callable[[str], object]] = {"json": json.loads, "toml": tomllib.loads, "yaml": yaml.safe_load}
FREE = {"diff", "dockerfile", "html", "ini", "lua", "markdown", "mermaid", "nginx"}
ELSEWHERE = ["pip", "uv", "uvx", "npm", "docker", "git", "make", "brew", "apt", "apt-get", "source"]
"""Programs that install something, or build on a machine of the reader."""
SECONDS = 120
# It runs code that comes in by lines, as a prompt would, and returns what each piece prints.
PROMPT = """
import contextlib, io, json, sys, traceback, types
sys.modules["__main__"] = typed = types.ModuleType("__main__")
replies = sys.stdout
for line in sys.stdin:
    name, printed = json.loads(line), io.StringIO()
    with contextlib.redirect_stdout(printed), contextlib.redirect_stderr(printed):
        try:
            exec(compile(open(name, encoding="utf-8").read(), name, "exec"), typed.__dict__)
            failed = False
        except BaseException:
            traceback.print_exc()
            failed = True
    print(json.dumps([failed, printed.getvalue()]), file=replies, flush=True)
"""


@dataclass(frozen=True)
class Block:
    """A fenced block. `mode` is `replace` or `written`, see CONTRIBUTING.md."""

    language: str
    title: str
    mode: str
    text: str
    line: int

    @property
    def reason(self) -> str:
        """Return why the block is not run, or an empty string."""
        return self.title.removeprefix(NOT_RUN) if self.title.startswith(NOT_RUN) else ""


def blocks_of(text: str) -> list[Block]:
    """Return the blocks of a page. Raise ValueError for an info string that is not understood."""
    found = []
    for each in FENCE.finditer(text):
        line = text.count("\n", 0, each.start()) + 1
        info = INFO.fullmatch(each["info"].strip())
        if info is None:
            raise ValueError(f"line {line}: {each['info']!r} is not an info string of a block")
        found.append(Block(info["language"], info["title"] or "", info["mode"] or "", each["text"], line))
    return found


def pieces(console: str) -> Iterator[tuple[str, str]]:
    """Yield the commands of a console block, each with the output that follows it."""
    command = ""
    output: list[str] = []
    lines = iter(console.splitlines())
    for line in lines:
        if line.startswith("$ "):
            if command:
                yield command, "\n".join(output)
            command, output = line[2:], []
            while command.endswith("\\"):
                command = f"{command[:-1].rstrip()} {next(lines).strip()}"
        elif not command:
            raise ValueError(f"output {line!r} before the first command: write `$ ` before commands")
        else:
            output.append(line)
    if command:
        yield command, "\n".join(output)


def same(shown: str, printed: str) -> bool:
    """Return whether a program printed what the page shows; `…` and a line `...` stand for anything."""
    parts = []
    for line in shown.strip("\n").splitlines():
        if line.strip() == "...":
            parts.append(r"(?:[^\n]*\n)*?")
        else:
            parts.append("[^\n]*".join(map(re.escape, line.rstrip().split("…"))) + "\n")
    lines = (line.rstrip() for line in printed.strip("\n").splitlines())
    return re.fullmatch("".join(parts), "".join(f"{line}\n" for line in lines)) is not None


@dataclass
class Page:
    """A page that runs in a folder. `addresses` has the real address for each that pages show."""

    path: Path
    folder: Path
    addresses: Sequence[tuple[str, str]]
    variables: dict[str, str] = field(default_factory=dict)
    begun: set[str] = field(default_factory=set)
    prompt: subprocess.Popen[str] | None = None
    printed: str = ""
    expected: dict[str, str] = field(default_factory=dict)

    def run(self) -> None:
        """Run all blocks in order. Raise AssertionError for the first that does not do what it shows."""
        blocks = blocks_of(self.path.read_text("utf-8"))
        before = None
        try:
            for number, block in enumerate(blocks):
                grows = before is not None and before.title in {each.title for each in blocks[number:]}
                try:
                    self._block(block, before, grows=grows)
                except (AssertionError, ValueError) as error:
                    raise AssertionError(f"{self.path}:{block.line}: {error}") from None
                before = block
        finally:
            if self.prompt is not None:
                self.prompt.kill()
                self.prompt.communicate()

    def _block(self, block: Block, before: Block | None, *, grows: bool) -> None:
        if block.reason or (block.language in FREE and not block.title):
            return
        if block.title:
            self._file(block)
        elif block.language == "python":
            self.printed = self._prompted(block)
        elif block.language == "text":
            self._expect(block, before, grows=grows)
        elif block.language == "console":
            self._console(block.text)
        elif block.language == "shell":
            self._synopsis(block.text)
        elif block.language in DATA:
            DATA[block.language](block.text)
        elif block.language == "typescript":
            pass  # tests/typescript/test_checker.py compiles it
        else:
            raise AssertionError(f"{block.language!r} is not a language of blocks: see CONTRIBUTING.md")

    def _file(self, block: Block) -> None:
        path = self.folder / block.title
        if "/" in block.title and (ROOT / block.title).is_file():
            whole = (ROOT / block.title).read_text("utf-8")
            assert block.text.strip("\n") in whole, f"{block.title} of the repository does not contain this"
        elif block.mode == "written":
            assert path.is_file(), f"no command above wrote {block.title}"
            written = self._shown(path.read_text("utf-8"))
            assert same(block.text, written), f"{block.title} has\n{written}"
        else:
            again = block.title in self.begun and block.mode != "replace"
            kept = f"{path.read_text('utf-8')}\n\n" if again else ""
            self.begun.add(block.title)
            if not again:
                self.expected.pop(block.title, None)
            self._make(path, kept + self._real(block.text))

    def _make(self, path: Path, text: str) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, "utf-8")
        if path.suffix == ".py" and path.parent != self.folder:
            (path.parent / "__init__.py").touch()

    def _expect(self, block: Block, before: Block | None, *, grows: bool) -> None:
        """Compare the output of a program, of one that grows over several blocks once it is complete."""
        if before is None or before.language != "python" or before.reason or before.mode == "written":
            return
        shown = self.expected[before.title] = self.expected.get(before.title, "") + block.text
        if not before.title:
            shown, printed = block.text, self.printed
        elif grows:
            return
        else:
            code, printed = self._shell(f"python {before.title}")
            assert code == 0, printed
        assert same(shown, printed), f"the program prints\n{printed}"

    def _prompted(self, block: Block) -> str:
        """Run a block in the program of the page, and return what it printed."""
        if self.prompt is None:
            self.prompt = subprocess.Popen(
                [sys.executable, "-c", PROMPT],
                cwd=self.folder,
                env=self._environment(),
                text=True,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
            )
        name = f"line_{block.line}_of_the_page.py"
        self._make(self.folder / name, self._real(block.text))
        assert self.prompt.stdin is not None
        assert self.prompt.stdout is not None
        print(json.dumps(name), file=self.prompt.stdin, flush=True)
        failed, printed = json.loads(self.prompt.stdout.readline() or '[true, "it ended the program"]')
        assert not failed, printed
        return self._shown(printed)

    def _console(self, text: str) -> None:
        for typed, output in pieces(text):
            command, wanted = _exit_code(typed)
            words = shlex.split(command, comments=True)
            if words[0] == "export":
                name, _, value = self._real(words[1]).partition("=")
                self.variables[name] = value
                continue
            if words[0] in ELSEWHERE or (words[:2] == ["python", "-m"] and words[2] in ("pip", "venv")):
                continue
            if words[0] == "keywright" and not re.search(r"[|&;<>$*`]", re.sub(r"'[^']*'", "", command)):
                code, printed = self._keywright(words[1:])
            else:
                code, printed = self._shell(command)
            assert code == wanted, f"`{command}` exits with {code}\n{printed}"
            assert not output or same(output, printed), f"`{command}` prints\n{printed}"

    def _keywright(self, arguments: list[str]) -> tuple[int, str]:
        """Run a command in this process, as the installed program would in the folder of the page."""
        known, path, here = set(sys.modules), list(sys.path), Path.cwd()
        outer = dict(os.environ)
        os.environ.clear()
        os.environ.update(self._environment())
        os.chdir(self.folder)
        try:
            done = invoke_keywright(*map(self._real, arguments))
        finally:
            os.chdir(here)
            os.environ.clear()
            os.environ.update(outer)
            sys.path[:] = path
            for name in sys.modules.keys() - known:
                if str(self.folder) in str(getattr(sys.modules[name], "__file__", "")):
                    del sys.modules[name]
        if done.exception is not None and not isinstance(done.exception, SystemExit):
            raise done.exception
        return done.exit_code, self._shown(done.output)

    def _shell(self, command: str) -> tuple[int, str]:
        done = subprocess.run(
            ["sh", "-c", self._real(command)],
            cwd=self.folder,
            env=self._environment(),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=SECONDS,
            check=False,
        )
        return done.returncode, self._shown(done.stdout)

    def _synopsis(self, text: str) -> None:
        for line in text.replace("\\\n", " ").splitlines():
            words = re.sub(r"(?:^|\s)#.*", "", line).split()
            if "keywright" in words:
                _require_options(words[words.index("keywright") + 1 :])

    def _environment(self) -> dict[str, str]:
        # A pytest that a page starts must not take itself for a worker of the pytest that runs this.
        outer = ("PYTEST_", "SLIPCOVER_", "KEYWRIGHT_", "REDIS_URL", "COV")
        kept = {name: value for name, value in os.environ.items() if not name.startswith(outer)}
        programs = f"{self.folder / '.programs'}{os.pathsep}{Path(sys.executable).parent}"
        return {
            **kept,
            "PATH": f"{programs}{os.pathsep}{kept.get('PATH', '')}",
            "PYTHONPATH": f"{ROOT}{os.pathsep}{kept.get('PYTHONPATH', '')}",  # the examples of a checkout
            "PYTHONDONTWRITEBYTECODE": "1",
            "COLUMNS": "100",
            "NO_COLOR": "1",
            "REDIS_URL": self._real("redis://localhost:6379"),
            **self.variables,
        }

    def _real(self, text: str) -> str:
        for shown, real in self.addresses:
            text = re.sub(rf"{re.escape(shown)}(?![\w:.])", real, text)
        return text

    def _shown(self, text: str) -> str:
        for shown, real in reversed(self.addresses):
            text = text.replace(real, shown)
        return text.replace(str(self.folder), "~")


def _exit_code(command: str) -> tuple[str, int]:
    found = re.search(r"  # exits with (\d+)$", command)
    return (command[: found.start()], int(found[1])) if found else (command, 0)


def _require_options(words: list[str]) -> None:
    """Raise AssertionError for a command or an option of `keywright` that does not exist."""
    from typer.main import get_command

    from keywright.cli import app

    command: Any = get_command(app)
    context = command.make_context("keywright", [], resilient_parsing=True)
    names: set[str] = set()
    for word in words:
        if word in ("|", ">", "&&", ";"):
            break
        if word.startswith("-"):
            option = word.partition("=")[0]
            names |= {name for each in command.params for name in [*each.opts, *each.secondary_opts]}
            assert option in {*names, "--help", "-h"}, f"`{command.name}` has no option {option}"
        elif hasattr(command, "get_command"):
            inner = command.get_command(context, word)
            assert inner is not None, f"there is no command {word!r}"
            command = inner
