"""The code of every page of the documentation does what the page shows."""

from __future__ import annotations

import re
import shutil
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from doc_pages import ROOT, Page, blocks_of, pieces, same
from keywright.errors import EngineError
from keywright.testing import RedisCluster, RedisServer
from keywright.testing.requirements import require
from new_valkey import new_binary

PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
CODE = [page for page in PAGES if blocks_of(page.read_text("utf-8"))]
MOST_THAT_DO_NOT_RUN = 12
SHIM = """#!/bin/sh
case " $* " in *" -p "* | *" -u "*) ;; *) set -- -p {port} "$@" ;; esac
exec {program} --no-raw "$@"
"""


class Servers:
    """The servers of all pages, started when a page names them, and emptied for each. All of one version."""

    def __init__(self, stack: ExitStack) -> None:
        self._stack = stack
        self._started: list[RedisServer] = []
        self._cluster: RedisCluster | None = None

    def port(self, number: int) -> int:
        """Return the port of the first or the second server, which is empty."""
        while len(self._started) <= number:
            self._started.append(self._stack.enter_context(RedisServer(binary=new_binary(), tcp=True)))
        self._started[number].call("FLUSHALL")
        return self._started[number].port

    def cluster_port(self) -> int:
        """Return the port of the first node of a cluster, which is empty."""
        if self._cluster is None:
            self._cluster = self._stack.enter_context(RedisCluster(binary=new_binary()))
        self._cluster.flush()
        return self._cluster.nodes[0].port

    def addresses(self, text: str) -> list[tuple[str, str]]:
        """Return the addresses that a page shows, with the real ones."""
        ports = {6379: self.port(0)}
        if "6380" in text:
            ports[6380] = self.port(1)
        if ":7000" in text or "-p 7000" in text:
            ports[7000] = self.cluster_port()
        return [
            ("redis://localhost", f"redis://127.0.0.1:{ports[6379]}"),
            *((f"port={shown}", f"port={real}") for shown, real in ports.items()),
            *((f"-p {shown}", f"-p {real}") for shown, real in ports.items()),
            *((f"localhost:{shown}", f"127.0.0.1:{real}") for shown, real in ports.items()),
        ]


@pytest.fixture(scope="module")
def servers() -> Iterator[Servers]:
    with ExitStack() as stack:
        yield Servers(stack)


def redis_cli() -> Path:
    """Return the client of the server. Raise EngineError if it is not installed."""
    program = shutil.which("redis-cli") or shutil.which("valkey-cli")
    if program is None:
        raise EngineError("redis-cli is not installed. Install Debian's package redis-tools.")
    return Path(program)


def add_redis_cli(folder: Path, port: int) -> None:
    require(redis_cli)
    shim = folder / ".programs" / "redis-cli"
    shim.parent.mkdir()
    shim.write_text(SHIM.format(port=port, program=redis_cli()))
    shim.chmod(0o755)


@pytest.mark.parametrize("page", CODE, ids=lambda page: str(page.relative_to(ROOT)))
def test_a_page_does_what_it_shows(page: Path, tmp_path: Path, servers: Servers) -> None:
    text = page.read_text("utf-8")
    if "redis-cli" in text:
        add_redis_cli(tmp_path, servers.port(0))
    Page(page, tmp_path, servers.addresses(text)).run()


def test_few_blocks_do_not_run_and_each_says_why() -> None:
    reasons = [
        (str(page.relative_to(ROOT)), block.reason)
        for page in PAGES
        for block in blocks_of(page.read_text("utf-8"))
        if block.reason
    ]
    assert len(reasons) <= MOST_THAT_DO_NOT_RUN, reasons
    assert [each for each in reasons if len(each[1].split()) < 3] == []


@pytest.fixture
def run(tmp_path: Path, servers: Servers) -> Callable[[str], None]:
    """Return a function that runs a page of this text."""

    def run(text: str) -> None:
        path = tmp_path / "page.md"
        path.write_text(text.replace("'''", "```"))
        Page(path, tmp_path, servers.addresses(text)).run()

    return run


@pytest.mark.parametrize(
    "text",
    [
        "'''python\na = 1\n'''\n'''python\nprint(a)\n'''\n'''text\n1\n'''\n",
        "'''python title=\"a.py\"\na = 1\n'''\n'''python title=\"a.py\"\nprint(a)\n'''\n'''text\n1\n'''\n",
        "'''text title=\"a\"\n1\n'''\n'''text title=\"a\" replace\n2\n'''\n'''console\n$ cat a\n2\n'''\n",
        "'''console\n$ echo a; echo b 1.2 c\na\nb … c\n$ false  # exits with 1\n'''\n",
        "'''console\n$ printf 'a\\nb\\nc\\n'\n...\nc\n$ export A=x\n$ echo $A\nx\n'''\n",
        "'''console\n$ echo x > a.txt\n'''\n'''text title=\"a.txt\" written\nx\n'''\n",
        "'''console\n$ python -c \"import redis; print(redis.from_url('redis://localhost').ping())\"\nTrue\n'''\n",
        "'''shell\nkeywright check shop:shop --format json   # a comment\n'''\n",
        "'''console\n$ keywright --version\nkeywright …\n$ pip install nothing-of-this-name\n'''\n",
        "'''python title=\"Not run here: it needs a Sentinel\"\n1/0\n'''\n",
    ],
)
def test_a_page_that_is_right_passes(text: str, run: Callable[[str], None]) -> None:
    run(text)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("'''python\n1/0\n'''\n", "ZeroDivisionError"),
        ("'''python\nprint(1)\n'''\n'''text\n2\n'''\n", "the program prints"),
        ("'''python title=\"a.py\"\nprint(1)\n'''\n'''text\n2\n'''\n", "the program prints"),
        ("'''console\n$ echo a\nb\n'''\n", "`echo a` prints"),
        ("'''console\n$ false\n'''\n", "exits with 1"),
        ("'''console\n$ keywright check nothing:here\n'''\n", "exits with 2"),
        ("'''console\necho a\n'''\n", "before the first command"),
        ("'''console\n$ echo x > a.txt\n'''\n'''text title=\"a.txt\" written\ny\n'''\n", "a.txt has"),
        ("'''shell\nkeywright check shop:shop --nonsense\n'''\n", "no option --nonsense"),
        ("'''shell\nkeywright nonsense\n'''\n", "no command 'nonsense'"),
        ("'''json\n{\n'''\n", "Expecting property name"),
        ("'''sh\necho\n'''\n", "is not a language"),
        ("'''\necho\n'''\n", "is not a language"),
        ("'''python title='a.py'\n'''\n", "not an info string"),
        ("'''python title=\"docs/kinds.md\"\nnonsense 17\n'''\n", "does not contain"),
    ],
)
def test_a_page_that_is_wrong_is_found(text: str, reason: str, run: Callable[[str], None]) -> None:
    with pytest.raises((AssertionError, ValueError), match=re.escape(reason)):
        run(text)


def test_output_is_compared_line_by_line() -> None:
    assert same("a … c\n...\nend", "a b c\nx\ny\nend\n")
    assert not same("a … c\nend", "a b c\nx\nend\n")
    assert list(pieces("$ a \\\n  b\n1\n\n2\n$ c\n")) == [("a b", "1\n\n2"), ("c", "")]
