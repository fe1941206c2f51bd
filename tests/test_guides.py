"""The guides: the files of a page form a program that runs, prints the output of the page, and passes."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

import keywright
from keywright import Alphabet, Codec, Key
from keywright import operations as module
from keywright.keyspace import alphabets, codecs
from keywright.testing import RedisServer
from lua_keys import problems

DOCS = Path(__file__).parent.parent / "docs"
BLOCK = re.compile(r'^```(\w+)(?: title="([^"]+)")?\n(.*?)^```$', re.MULTILINE | re.DOTALL)


class Guide:
    """A page whose blocks name the file that they are part of; blocks of text are the output."""

    def __init__(self, page: str, folder: Path) -> None:
        self.folder = folder
        self.files: dict[str, str] = {}
        self.output = ""
        for language, title, content in BLOCK.findall((DOCS / page).read_text()):
            if title:
                self.files[title] = f"{self.files.get(title, '')}{content}\n\n"
            elif language == "text":
                self.output += content
            else:
                raise AssertionError(f"a block of {language} in {page} has no title, so no test runs it")
        for name, content in self.files.items():
            path = folder / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(content)
            if path.suffix == ".py" and path.parent != folder:
                (path.parent / "__init__.py").touch()

    def python(self, *arguments: str, url: str = "") -> subprocess.CompletedProcess[str]:
        # A pytest that this starts must not take itself for a worker of the pytest that runs this test.
        outer = ("PYTEST_", "SLIPCOVER_")
        environment = {name: value for name, value in os.environ.items() if not name.startswith(outer)}
        command = [sys.executable, *arguments]
        return subprocess.run(
            command,
            cwd=self.folder,
            env={**environment, "REDIS_URL": url},
            capture_output=True,
            text=True,
            timeout=300,
            check=False,
        )


@pytest.fixture
def operations(tmp_path: Path) -> Guide:
    return Guide("operations.md", tmp_path)


def test_the_program_of_the_operations_guide_prints_the_output_of_the_page(
    operations: Guide, redis_url: str, keywright_server: RedisServer
) -> None:
    done = operations.python("demo.py", url=keywright_server.url)
    assert done.returncode == 0, done.stderr
    assert done.stdout == operations.output


@pytest.mark.cluster
def test_the_tests_of_the_operations_guide_pass(operations: Guide) -> None:
    done = operations.python("-m", "pytest", "-q", "-p", "no:cacheprovider", "test_theatre.py")
    assert done.returncode == 0, done.stdout + done.stderr


def test_the_script_of_the_operations_guide_reaches_only_its_keys(operations: Guide) -> None:
    sources = [text for name, text in operations.files.items() if name.endswith(".lua")]
    assert [problems(source) for source in sources] == [[]]


def test_the_operations_guide_names_everything_that_the_module_exports() -> None:
    named = set(re.findall(r"`(\w+)", (DOCS / "operations.md").read_text()))
    assert set(module.__all__) - named == set()


def test_the_program_of_the_page_on_names_prints_its_output(tmp_path: Path) -> None:
    page = Guide("names.md", tmp_path)
    ran = page.python("queues.py")
    assert ran.stdout == page.output, ran.stderr


def test_the_program_of_the_page_on_values_prints_its_output(
    tmp_path: Path, redis_url: str, keywright_server: RedisServer
) -> None:
    page = Guide("values.md", tmp_path)
    ran = page.python("rentals.py", url=keywright_server.url)
    assert ran.stdout == page.output, ran.stderr


def test_the_program_of_the_page_on_expiry_prints_its_output(
    tmp_path: Path, redis_url: str, keywright_server: RedisServer
) -> None:
    page = Guide("expiry.md", tmp_path)
    ran = page.python("limits.py", url=keywright_server.url)
    assert ran.stdout == page.output, ran.stderr


def test_the_tests_of_the_page_on_values_pass(tmp_path: Path) -> None:
    page = Guide("values.md", tmp_path)
    done = page.python("-m", "pytest", "-q", "-p", "no:cacheprovider", "test_positions.py")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "2 passed" in done.stdout


def test_the_codec_of_the_operations_guide_keeps_the_contract(operations: Guide) -> None:
    program = (
        "from keywright.testing import assert_codec; from theatre.prices import Euros; assert_codec(Euros())"
    )
    done = operations.python("-c", program)
    assert done.returncode == 0, done.stderr


def test_the_page_on_values_names_every_codec() -> None:
    page = (DOCS / "values.md").read_text()
    abstract = {"Codec", "Compressed"}
    declared = {
        name for name, each in vars(codecs).items() if isinstance(each, type) and issubclass(each, Codec)
    }
    assert {name for name in declared - abstract if f"`{name}" not in page} == set()


def test_the_programs_of_the_page_on_clients_print_its_output(
    tmp_path: Path, redis_url: str, keywright_server: RedisServer
) -> None:
    page = Guide("clients.md", tmp_path)
    names = [name for name in page.files if "/" not in name]  # tests/examples runs the others
    programs = [page.python(name, url=keywright_server.tcp_url) for name in names]
    assert "".join(ran.stdout for ran in programs) == page.output, programs


def test_the_page_on_names_lists_every_alphabet() -> None:
    page = (DOCS / "names.md").read_text()
    abstract = {"Alphabet", "Verbatim", "TagText", "Snowflake"}
    declared = {
        name
        for name, each in vars(alphabets).items()
        if isinstance(each, type) and issubclass(each, Alphabet)
    }
    assert {name for name in declared - abstract if f"`{name}(" not in page} == {"Unsigned64"}


def test_the_programs_of_the_page_on_kinds_print_its_output(tmp_path: Path, redis_url: str) -> None:
    page = Guide("kinds.md", tmp_path)
    done = [page.python(name, url=redis_url) for name in page.files]
    assert ("".join(each.stderr for each in done), "".join(each.stdout for each in done)) == ("", page.output)


def test_the_page_on_kinds_lists_every_kind() -> None:
    page = (DOCS / "kinds.md").read_text()
    listed = set(re.findall(r"^\| `(\w+)", page, re.MULTILINE))
    exported = [getattr(keywright, name) for name in keywright.__all__]
    kinds = {each.__name__ for each in exported if isinstance(each, type) and issubclass(each, Key)}
    assert listed == kinds - {"Key"}


def test_the_module_and_the_output_of_the_page_on_infer_are_what_it_prints(tmp_path: Path) -> None:
    page = Guide("infer.md", tmp_path)
    ran = page.python("-m", "keywright", "infer", "--names", "names.txt")
    assert ran.stdout == f"{page.files['expected.py'].rstrip()}\n", ran.stderr
    assert ran.stderr == page.output
