"""The pages of the registry: code runs as pasted, the generated document is current."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from invoking import Invoke

DOCS = Path(__file__).parents[1] / "docs"


def test_the_code_of_the_registry_page_runs_as_pasted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("REDIS_URL", raising=False)
    page = (DOCS / "guide.md").read_text().partition("## The service")[0]
    blocks = [block.removeprefix("python\n") for block in page.split("```")[1::2]]
    script = tmp_path / "pasted.py"
    script.write_text("\n".join(blocks))
    done = subprocess.run([sys.executable, script], capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == [
        "None",
        "acme/site/api 500",
        "Flushed(batches=1, known=0, pulls=3, pushes=0)",
        "hits: 500",
        "{}",
        "0x16b374d848",
        "199",
        "acme/site False",
    ]


def test_the_generated_document_is_current(invoke: Invoke) -> None:
    done = invoke("docs", "registry", "--check", str(DOCS / "model.md"))
    assert done.exit_code == 0, done.stderr
