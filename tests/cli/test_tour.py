"""`keywright tour` shows every step, ends, and leaves nothing behind."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from keywright import check
from keywright.cli.tour import meetup

PROGRAM = Path(sys.executable).parent / "keywright"


def test_the_tour_shows_every_step_and_leaves_no_server_and_no_folder(
    tmp_path: Path, keywright_server: object
) -> None:
    process = subprocess.Popen(
        [PROGRAM, "tour"],
        cwd=tmp_path,
        # An address where nothing listens: a tour that used it would fail.
        env={**os.environ, "REDIS_URL": "redis://127.0.0.1:1"},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    shown, errors = process.communicate(timeout=60)
    assert (process.returncode, errors) == (0, "")
    for step in ("1. Declare", "2. Check", "3. Run", "4. Relate", "5. Err", "6. Scan"):
        assert step in shown
    assert "sends  HGETALL meetup_event:abc" in shown
    assert "TakenError" in shown
    assert "meetup_event:abc:event_series" in shown
    assert list(tmp_path.iterdir()) == []
    assert list(Path("/tmp").glob(f"keywright-{process.pid}-*")) == []
    assert _servers_of(process.pid) == []


def test_the_sample_of_the_tour_is_sound() -> None:
    assert [finding for finding in check(meetup) if finding.severity == "error"] == []


def _servers_of(pid: int) -> list[int]:
    """Return the processes that name the tour's run folder, as a server that outlived it would."""
    marked = f"keywright-{pid}-".encode()
    left = []
    for entry in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            if marked in entry.read_bytes():
                left.append(int(entry.parent.name))
        except OSError:  # it ended meanwhile
            continue
    return left
