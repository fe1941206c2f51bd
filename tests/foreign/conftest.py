"""A private server for each project, the workload that fills it, and what audits reported meanwhile."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import redis

pytest.register_assert_rewrite("foreign.audits", "foreign.conformance", "foreign.projects")

from foreign.audits import Figures, Report, audits_during_load  # noqa: E402
from foreign.projects import AT_LENGTH, BRIEF, Project, workload  # noqa: E402
from keywright.testing import RedisServer, require  # noqa: E402

collect_ignore = [] if os.environ.get("KEYWRIGHT_JSON_MODULE") else ["test_json_documents.py"]
FIGURES = pytest.StashKey[list[Figures]]()


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Leave the programs of .venv-foreign to `make foreign`."""
    return True if collection_path.name == "apart" and not config.getoption("--at-length") else None


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    """Print the figures of each project."""
    if config.getoption("--at-length"):
        for figures in config.stash.get(FIGURES, []):
            terminalreporter.write_line(figures.text)


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Run the repair test of a project with each of its faults, or with one if it is to be brief."""
    if "fault" in metafunc.fixturenames:
        brief = metafunc.module.PROJECT.length is BRIEF and not metafunc.config.getoption("--at-length")
        metafunc.parametrize("fault", metafunc.module.FAULTS[: 1 if brief else None], ids=str)


@pytest.fixture(scope="module")
def project(request: pytest.FixtureRequest) -> Project:
    """Return the project of a test file."""
    found: Project = request.module.PROJECT
    require(found.find)
    return found


@pytest.fixture(scope="module")
def server() -> Iterator[RedisServer]:
    with RedisServer(tcp=True) as server:
        yield server


@pytest.fixture(scope="module")
def client(server: RedisServer) -> Iterator[Any]:
    with redis.Redis.from_url(server.url) as client:
        yield client


@pytest.fixture(scope="module")
def reports(
    project: Project,
    server: RedisServer,
    pytestconfig: pytest.Config,
    tmp_path_factory: pytest.TempPathFactory,
) -> list[Report]:
    """Run the project, audit it several times meanwhile, and stop it. Its data stays for the other tests."""
    started = time.monotonic()
    length = AT_LENGTH if pytestconfig.getoption("--at-length") else project.length
    with workload(project, server, tmp_path_factory.mktemp(project.name)) as load:
        load.wait_ready()
        found = audits_during_load(project.model, server, load, length)
        load.stop()
    figures = Figures(project.name, found, time.monotonic() - started)
    pytestconfig.stash.setdefault(FIGURES, []).append(figures)
    return found
