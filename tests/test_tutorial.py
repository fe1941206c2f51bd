"""The explorer of the tutorial, which serves until it is stopped. The test of pages runs the other steps."""

from __future__ import annotations

import os
import re
import shlex
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

PAGE = (Path(__file__).parents[1] / "docs" / "tutorial.md").read_text("utf-8")
FILE = re.compile(r'^```python title="(\w+\.py)"\n(.*?)^```$', re.MULTILINE | re.DOTALL)
Folder = tuple[Path, dict[str, str]]


@pytest.fixture
def shop(tmp_path: Path, redis_url: str) -> Folder:
    """Fill the server as the tutorial does. Return the folder of its files and the environment."""
    for name, program in FILE.findall(PAGE):
        (tmp_path / name).write_text(program)
    environment = {**os.environ, "REDIS_URL": redis_url}
    correction = re.search(r"^\$ (sed .* shop\.py)$", PAGE, re.MULTILINE)
    assert correction is not None
    for command in ([sys.executable, "old_shop.py"], shlex.split(correction[1])):
        subprocess.run(command, cwd=tmp_path, env=environment, check=True, timeout=60)
    return tmp_path, environment


@pytest.fixture
def explorer(shop: Folder) -> Iterator[subprocess.Popen[str]]:
    folder, environment = shop
    shown = re.search(r"^\$ keywright (explore .*)$", PAGE, re.MULTILINE)
    assert shown is not None
    words = [sys.executable, "-m", "keywright", *shlex.split(shown[1]), "--port", "0"]
    process = subprocess.Popen(words, cwd=folder, env=environment, stdout=subprocess.PIPE, text=True)
    try:
        yield process
    finally:
        process.kill()
        process.communicate()


def test_the_explorer_of_the_tutorial_shows_keys_and_follows_the_relation(
    explorer: subprocess.Popen[str],
) -> None:
    assert explorer.stdout is not None
    address = re.search(r"http://127\.0\.0\.1:\d+", explorer.stdout.readline())
    assert address is not None

    def page(name: str) -> str:
        found = httpx.get(f"{address[0]}/key", params={"name": name}, timeout=30)
        assert found.status_code == 200
        return found.text

    assert "12,50" in page("order:1007")
    customer = re.search(r"name=(customer(?::|%3A)\d+(?::|%3A)orders)", page("order:1010:customer"))
    assert customer is not None
    assert re.search(r"name=order(?::|%3A)1010(?::|%3A)customer", page(customer[1].replace("%3A", ":")))
    explorer.send_signal(signal.SIGTERM)
    assert explorer.wait(60) == 0
