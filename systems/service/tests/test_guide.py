"""The service of the guide works when pasted, as the guide says; and the README names every module."""

from __future__ import annotations

import ast
import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx
import pytest

import keywright_service
from keywright.testing import RedisServer, wait_until

HERE = Path(__file__).parents[1]
BLOCKS = re.findall(
    r"^```python\n(.*?)^```$", (HERE / "docs" / "guide.md").read_text(), re.MULTILINE | re.DOTALL
)


class PastedService:
    """The guide's service as a process."""

    def __init__(self, child: subprocess.Popen[bytes], log: Path) -> None:
        self.child = child
        self._log = log
        self.url = self.logged(r"listening on (http://\S+)")[1]

    def logged(self, pattern: str) -> re.Match[str]:
        def found() -> re.Match[str] | None:
            assert self.child.poll() is None, self._log.read_text()
            return re.search(pattern, self._log.read_text())

        return wait_until(found, f"a line like {pattern!r}")

    def visit(self, page: str) -> httpx.Response:
        return httpx.post(f"{self.url}/visit/{page}", timeout=30)

    def health(self) -> httpx.Response:
        return httpx.get(f"{self.url}/health", timeout=30)


@contextmanager
def pasted(folder: Path, redis_url: str, number: int = 1) -> Iterator[PastedService]:
    script, log = folder / "visits.py", folder / f"{number}.log"
    script.write_text(BLOCKS[0])
    (folder / "visits.toml").write_text('report_every = "100ms"\n[http]\naddress = ":0"\n')
    with log.open("wb") as output:
        child = subprocess.Popen(
            [sys.executable, script, folder / "visits.toml"],
            env={**os.environ, "REDIS_URL": redis_url},
            stdout=output,
            stderr=output,
        )
    try:
        yield PastedService(child, log)
    finally:
        child.kill()
        child.wait()


def test_it_counts_reports_and_ends_cleanly(tmp_path: Path, redis_url: str) -> None:
    with pasted(tmp_path, redis_url) as service:
        assert service.visit("home").json() == {"visits": 1}
        assert service.visit("home").json() == {"visits": 2}
        service.logged("the most visited page is home: 2 visits")
        shown = service.health()
        assert (shown.status_code, shown.json()) == (200, {"ok": True, "failing": []})
        assert "visits_total 2.0" in httpx.get(f"{service.url}/metrics").text
        service.child.send_signal(signal.SIGTERM)
        assert service.child.wait(30) == 0


def test_of_two_processes_both_count_and_one_reports_at_a_time(tmp_path: Path, redis_url: str) -> None:
    with pasted(tmp_path, redis_url) as one, pasted(tmp_path, redis_url, 2) as other:
        one.visit("home")
        assert other.visit("home").json() == {"visits": 2}


def test_it_recovers_from_an_outage_of_redis(
    tmp_path: Path, redis_url: str, keywright_server: RedisServer
) -> None:
    with pasted(tmp_path, redis_url) as service:
        keywright_server.stop()
        refused = service.visit("home")
        assert refused.status_code == 503
        assert "try again later" in refused.json()["error"]
        wait_until(lambda: service.health().status_code == 503, "health that reports the outage")
        assert service.health().json() == {"ok": False, "failing": ["report"]}
        keywright_server.start()
        wait_until(lambda: service.visit("home").status_code == 200, "visits that are counted again")
        wait_until(lambda: service.health().status_code == 200, "health after the outage")


def test_a_setting_that_is_misspelt_is_named(tmp_path: Path) -> None:
    (tmp_path / "visits.py").write_text(BLOCKS[0])
    (tmp_path / "wrong.toml").write_text("report_evry = '1m'")
    done = subprocess.run(
        [sys.executable, "visits.py", "wrong.toml"], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert "report_evry: is not a setting. The nearest is report_every" in done.stderr


@pytest.mark.parametrize("block", BLOCKS[1:])
def test_the_other_examples_can_be_imported(block: str) -> None:
    exec(compile(ast.parse(block), "guide.md", "exec"), {})


def test_the_readme_names_every_module() -> None:
    source = Path(keywright_service.__file__).parent
    modules = {path.stem for path in source.iterdir() if path.suffix == ".py" or path.is_dir()}
    named = set(re.findall(r"^\| `(\w+)` \|", (HERE / "README.md").read_text(), re.MULTILINE))
    assert named == {module for module in modules if not module.startswith("__")}
    assert set(re.findall(r"^`(\w+)` ", keywright_service.__doc__ or "", re.MULTILINE)) == named
