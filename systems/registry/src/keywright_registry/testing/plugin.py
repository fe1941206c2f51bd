"""A private PostgreSQL as fixtures. Opt in with `pytest_plugins`."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from keywright.errors import EngineError, MissingDependencyError, dependencies_of
from keywright.testing import require

if TYPE_CHECKING:
    from keywright_registry.testing.postgres import PostgresServer

__all__ = ["database_url", "keywright_postgres", "postgres_url"]


@pytest.fixture(scope="session")
def keywright_postgres() -> Iterator[PostgresServer]:
    """One private PostgreSQL for the whole run, on a unix socket."""
    require(_find_postgres)
    from keywright_registry.testing.postgres import PostgresServer

    with PostgresServer() as server:
        yield server


@pytest.fixture
def postgres_url(keywright_postgres: PostgresServer) -> Iterator[str]:
    """Return the URL of an empty database, on a server that is restarted if an earlier test stopped it."""
    keywright_postgres.resume()
    keywright_postgres.start()
    name = keywright_postgres.make_database()
    yield keywright_postgres.url_of(name)
    keywright_postgres.resume()
    keywright_postgres.start()
    keywright_postgres.remove_database(name)


@pytest.fixture(params=["postgresql", "sqlite"])
def database_url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """Return the URL of an empty metadata database, once for each kind."""
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path}/registry.db"
    url: str = request.getfixturevalue("postgres_url")
    return url


def _find_postgres() -> Path:
    try:
        with dependencies_of("a PostgreSQL server", install="keywright-registry[postgresql]"):
            from keywright_registry.testing.postgres import find_postgres
    except MissingDependencyError as error:
        raise EngineError(str(error)) from error
    return find_postgres()
