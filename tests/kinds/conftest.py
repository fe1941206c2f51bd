"""Databases for tests that run on one server and on a cluster."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest

from keywright import Database, connect

# No server that the tests install has JSON: docs/kinds.md says how to build the module.
collect_ignore = [] if os.environ.get("KEYWRIGHT_JSON_MODULE") else ["test_json_document_on_a_server.py"]


@pytest.fixture(params=["redis_url", pytest.param("cluster_url", marks=pytest.mark.cluster)])
def url(request: pytest.FixtureRequest) -> str:
    """An empty server, then an empty cluster."""
    address: str = request.getfixturevalue(request.param)
    return address


@pytest.fixture
def db(url: str) -> Iterator[Database]:
    with connect(url) as database:
        yield database
