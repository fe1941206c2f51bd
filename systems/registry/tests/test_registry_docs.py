"""The code of the registry's page runs as pasted."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

PAGE = Path(__file__).parents[3] / "docs/registry.md"


def test_the_code_of_the_registry_page_runs_as_pasted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("REDIS_URL", raising=False)
    page = PAGE.read_text().partition("## The service")[0]
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
