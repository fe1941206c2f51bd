"""Two unmodified client libraries work with the simulator."""

from __future__ import annotations

import importlib.util
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from .simulator_course import EXPECTED

_GUILDS = 12
_EVENTS = 2000
_SHARDS = 2


def _followed(script: str, library: str) -> Any:
    """Return what the library received; it runs in a process of its own, since it emits warnings."""
    if importlib.util.find_spec(library) is None:
        assert os.environ.get("CI") != "true", f"{library} is missing"
        pytest.skip(f"{library} is not installed")
    done = subprocess.run(
        [sys.executable, "-m", f"simulator.{script}", *map(str, (_SHARDS, _GUILDS, _EVENTS))],
        cwd=Path(__file__).parents[1],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-4000:]
    return json.loads(done.stdout.splitlines()[-1])


@pytest.mark.parametrize(
    ("script", "library", "compression"),
    [
        ("simulator_discord_py", "discord", ["zstd-stream"]),
        ("simulator_hikari", "hikari", ["zlib-stream"]),
    ],
)
def test_a_real_client_logs_in_follows_and_resumes(script: str, library: str, compression: list[str]) -> None:
    """Two shards: login, guilds, messages, a cut, requests to reconnect, then 2,000 events of every kind."""
    report = _followed(script, library)
    assert report["user"] == report["bot"]
    assert len(report["guilds"]) == _GUILDS
    assert report["guilds"] == report["expected_guilds"]
    assert report["members"] == [8] * _GUILDS
    assert report.get("chunked", report["members"]) == [8] * _GUILDS
    assert report["seen"] == EXPECTED
    assert (report["identifies"], report["resumes"], report["replayed"]) == (_SHARDS, _SHARDS, 3)
    assert report["paths"] == ["/resume"] * _SHARDS
    assert report["compression"] == compression
    assert report["failures"] == []
