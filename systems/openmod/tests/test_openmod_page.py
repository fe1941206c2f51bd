"""The documentation page's code works when pasted."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from keywright_openmod.shapes import LinkAction

PAGE = Path(__file__).parents[3] / "docs/openmod.md"


def test_the_code_of_the_openmod_page_runs_as_pasted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("REDIS_URL", raising=False)
    fenced = PAGE.read_text().split("```")[1::2]
    blocks = [block.partition("\n")[2] for block in fenced if block.startswith("python\n")]
    script = tmp_path / "pasted.py"
    script.write_text("\n".join(blocks))
    done = subprocess.run([sys.executable, script], capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == [
        "r/cats_log: u/Mod removed a post from r/cats",
        "recorded  t3_x0",
        "duplicate  None",
        f"LinkExtract(type={LinkAction.REMOVE_LINK!r}, actor='t2_mod', target='t2_ann', link='t3_1')",
        "recorded False",
        "Batch(active=0, erased=0, troubles=(), more=False)",
    ]
