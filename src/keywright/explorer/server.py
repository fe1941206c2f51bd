"""The explorer as a process: opens the database, listens, and stops on SIGINT or SIGTERM."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Sequence
from contextlib import AsyncExitStack

from keywright.engine import Retry, Settings, aconnect
from keywright.engine.address import parse_address
from keywright.errors import UsageError
from keywright.explorer.app import create_server_app
from keywright.explorer.settings import ExplorerSettings
from keywright.keyspace import Binding, Keyspace
from keywright.tools.databases import parts_of
from keywright.tools.http import UvicornServer, listening, on_signals, url_of
from keywright.tools.model import Model

__all__ = ["serve"]

# A person waits for the page: a quick error page is better than a late reply.
PATIENCE = Settings(timeout_seconds=5.0, retry=Retry(attempts=3, within_seconds=5.0))
SHUTDOWN_SECONDS = 2


async def serve(
    shown: Sequence[Keyspace | Model],
    settings: ExplorerSettings | None = None,
    *,
    url: str | None = None,
    bindings: Sequence[Binding] = (),
    database: int | None = None,
    declaration: str | None = None,
    beside: Sequence[tuple[str, Sequence[Binding]]] = (),
    on_listening: Callable[[str], None] | None = None,
) -> None:
    """Serve the explorer until SIGINT or SIGTERM; `on_listening` gets the address once pages can be opened.

    `url` defaults to REDIS_URL, else an embedded server. Raise UsageError if the address is not available,
    EngineError if Redis cannot be reached at the start; a later outage is retried. Keyspaces of several
    databases are shown one database at a time, unless `database` or the URL names one. `declaration` is the
    module of an inferred model, which visitors may download. `beside` has the URL and the bindings of each
    database to compare with.
    """
    settings = settings or ExplorerSettings()
    settings.check()
    with listening(settings.host, settings.port, remedy="Choose another --port.") as bound:
        async with AsyncExitStack() as opened:
            models = [each if isinstance(each, Model) else Model(each.name, (each,)) for each in shown]
            spaces = tuple(dict.fromkeys(space for model in models for space in model.spaces))
            parts = parts_of(Model("explorer", spaces), _named(url) if database is None else database)
            if beside and len(parts) > 1:
                raise UsageError("--beside compares with one database. Choose it with --database.")
            databases = []
            for part in parts:
                bound_here = [each for each in bindings if each.space in part.model.spaces]
                db = await opened.enter_async_context(_opened(url, part.database, bound_here))
                databases.append((db, _within(models, part.model.spaces)))
            others = [
                await opened.enter_async_context(aconnect(other, *its_bindings, settings=PATIENCE))
                for other, its_bindings in beside
            ]
            server = UvicornServer(
                create_server_app(databases, settings, declaration=declaration, beside=others),
                lifespan=True,
                proxy_headers=False,
                grace_seconds=SHUTDOWN_SECONDS,
                on_started=lambda: on_listening(url_of(bound)) if on_listening else None,
            )
            with on_signals(
                lambda _: server.stop(), lambda number: server.stop(at_once=number is signal.SIGINT)
            ):
                await server.serve([bound])


def _named(url: str | None) -> int | None:
    url = url or os.environ.get("REDIS_URL")
    return parse_address(url).database if url else None


def _opened(url: str | None, database: int | None, bindings: Sequence[Binding]) -> aconnect:
    if database is None:
        return aconnect(url, *bindings, settings=PATIENCE)
    return aconnect(url, *bindings, settings=PATIENCE, db=database)


def _within(models: Sequence[Model], spaces: Sequence[Keyspace]) -> list[Model]:
    """Return the models with these of their keyspaces only."""
    found = [Model(model.name, tuple(each for each in model.spaces if each in spaces)) for model in models]
    return [model for model in found if model.spaces]
