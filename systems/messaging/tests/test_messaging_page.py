"""The code of the messaging page runs as pasted."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

PAGE = Path(__file__).parents[1] / "docs/messaging.md"


def test_the_code_of_the_messaging_page_runs_as_pasted(tmp_path: Path) -> None:
    fenced = PAGE.read_text().split("```")[1::2]
    code = [block.partition("\n")[2] for block in fenced if block.startswith("python\n")]
    script = tmp_path / "pasted.py"
    script.write_text("\n".join(code))
    done = subprocess.run([sys.executable, script], capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == [
        "hello, world",
        "Answer(members=5)",
        "given up: Discard: nothing to greet",
        "['hi']",
    ]
