"""Engines that close with the test."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import Any

import pytest

from engines import Asyncio, Blocking, Engine
from keywright import Observer, Settings

OpenEngine = Callable[..., Engine]


@pytest.fixture(params=[Blocking, Asyncio], ids=["blocking", "asyncio"])
def open_engine(request: pytest.FixtureRequest) -> Iterator[OpenEngine]:
    """Opens databases with `settings`, `observers` and options, once for each engine."""
    with ExitStack() as opened:

        def opening(
            url: str, settings: Settings | None = None, *observers: Observer, **options: Any
        ) -> Engine:
            engine: Engine = request.param(url, settings, observers, **options)
            opened.callback(engine.close)
            return engine

        yield opening
