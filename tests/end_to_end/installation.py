"""An installation of everything, and its services as processes that a test starts, kills and stops."""

from __future__ import annotations

import json
import subprocess
import urllib.error
import urllib.request
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from environments import Environment
from keywright.testing import wait_until
from service_processes import ServiceProcess, launched

__all__ = ["SYSTEMS", "Installation", "answer", "wait_ready"]

SYSTEMS = ("service", "messaging", "discord", "openmod", "registry", "meetup")
READY_SECONDS = 60


@dataclass(frozen=True)
class Installation:
    """The command `keywright` of an environment that has the wheels, away from the checkout."""

    environment: Environment

    def run(self, *arguments: str, **variables: str) -> subprocess.CompletedProcess[str]:
        """Run a command to its end, which must be exit code 0."""
        done = self.environment.keywright(*arguments, **variables)
        assert done.returncode == 0, done.stdout + done.stderr
        return done

    @contextmanager
    def service(
        self, *arguments: str, log: Path, variables: Mapping[str, str] | None = None
    ) -> Iterator[ServiceProcess]:
        """Start a command that runs until it is stopped. It does not outlive the block."""
        program = (str(self.environment.folder / "bin" / "keywright"),)
        with launched(*arguments, variables=variables or {}, log=log, program=program) as process:
            yield process


def answer(url: str) -> tuple[int, Any]:
    """Return the status and the JSON of a page; status 0 if nobody listens."""
    try:
        with urllib.request.urlopen(url, timeout=5) as response:
            return response.status, json.load(response)
    except urllib.error.HTTPError as refused:
        return refused.code, json.loads(refused.read() or b"null")
    except OSError:
        return 0, None


def wait_ready(url: str) -> None:
    """Wait until a page, such as /ready, answers 200."""
    wait_until(lambda: answer(url)[0] == 200, f"{url} answers 200", seconds=READY_SECONDS)
