"""One compiled Node project with the modules of all installed models, for the whole run."""

from __future__ import annotations

import pytest

import shelf
from keywright.testing import RedisServer
from typescript_project import HERE, NodeProject, models


@pytest.fixture(scope="session")
def project(tmp_path_factory: pytest.TempPathFactory) -> NodeProject:
    """Provide the project, compiled once."""
    made = NodeProject(tmp_path_factory.mktemp("typescript") / "project")
    made.add_runtime()
    for model in (*models().values(), shelf.model):
        made.add_model(model)
    made.add(*sorted((HERE / "typescript" / "programs").glob("*.ts")))
    made.compile()
    return made


@pytest.fixture
def tcp_url(keywright_server: RedisServer, redis_url: str) -> str:
    """Return a URL of the empty server that clients without unix sockets in URLs take."""
    del redis_url
    return keywright_server.tcp_url
