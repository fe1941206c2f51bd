"""A private server for each project, the workload that fills it, and what five audits reported meanwhile."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
import redis

pytest.register_assert_rewrite("foreign.audits", "foreign.conformance", "foreign.projects")

from foreign.audits import Report, five_audits  # noqa: E402
from foreign.projects import Project, workload  # noqa: E402
from keywright.testing import RedisServer, require  # noqa: E402


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Run the repair test of a project with each of its faults."""
    if "fault" in metafunc.fixturenames:
        metafunc.parametrize("fault", metafunc.module.FAULTS, ids=str)


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
def reports(project: Project, server: RedisServer, tmp_path_factory: pytest.TempPathFactory) -> list[Report]:
    """Run the project, audit it five times meanwhile, and stop it. Its data stays for the other tests."""
    with workload(project, server, tmp_path_factory.mktemp(project.name)) as load:
        load.wait_ready()
        found = five_audits(project.model, server, load)
        load.stop()
    return found
