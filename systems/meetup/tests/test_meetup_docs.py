"""The code of the guide runs as pasted."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

PAGE = Path(__file__).parents[1] / "docs/guide.md"


def test_the_code_of_the_page_runs_as_pasted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("REDIS_URL", raising=False)
    fenced = PAGE.read_text().split("```")[1::2]
    code = [block.partition("\n")[2] for block in fenced if block.startswith("python\n")]
    script = tmp_path / "pasted.py"
    script.write_text(code[0])
    done = subprocess.run([sys.executable, script], capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == [
        "['e1']",
        "1",
        "Finished(kept=True, existing=5)",
        "[90071992547409931] [90071992547409931]",
        "{5}",
        "1",
    ]
