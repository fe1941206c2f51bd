"""The guides: their tests pass, and they name everything. tests/test_pages.py runs their programs."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

import keywright
from doc_pages import blocks_of
from keywright import Alphabet, Codec, Key
from keywright import operations as module
from keywright.keyspace import alphabets, codecs
from lua_keys import problems

DOCS = Path(__file__).parent.parent / "docs"


class Guide:
    """The files of a page, in a folder."""

    def __init__(self, page: str, folder: Path) -> None:
        self.folder = folder
        self.files: dict[str, str] = {}
        for block in blocks_of((DOCS / page).read_text()):
            if block.title:
                self.files[block.title] = f"{self.files.get(block.title, '')}{block.text}\n\n"
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


def test_the_page_on_names_lists_every_alphabet() -> None:
    page = (DOCS / "names.md").read_text()
    abstract = {"Alphabet", "Verbatim", "TagText", "Snowflake"}
    declared = {
        name
        for name, each in vars(alphabets).items()
        if isinstance(each, type) and issubclass(each, Alphabet)
    }
    assert {name for name in declared - abstract if f"`{name}(" not in page} == {"Unsigned64"}


def test_the_page_on_kinds_lists_every_kind() -> None:
    page = (DOCS / "kinds.md").read_text()
    listed = set(re.findall(r"^\| `(\w+)", page, re.MULTILINE))
    exported = [getattr(keywright, name) for name in keywright.__all__]
    kinds = {each.__name__ for each in exported if isinstance(each, type) and issubclass(each, Key)}
    assert listed == kinds - {"Key"} | {"Channel"}


def test_the_program_of_the_page_on_the_catalogue_is_recognised(tmp_path: Path) -> None:
    page = Guide("catalogue.md", tmp_path)
    ran = page.python(
        "-c",
        "import potting; from keywright.tools import prove\n"
        "from keywright.tools.infer import NameSample, infer\n"
        "sample = NameSample(); sample.add(b'potting-machine-1'); sample.add(b'pots')\n"
        "print(prove(potting.potting).proved)\n"
        "print(*infer(sample, programs={'potting:program': potting.program}).coverage[:2], sep='\\n')",
    )
    assert ran.stdout.splitlines() == [
        "True",
        "2 of 2 keys, 100.00%, match 0 templates and 1 program",
        "2 keys are Potting, in the catalogue as potting:",
    ], ran.stderr
