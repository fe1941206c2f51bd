"""The explorer as a process: opens the database, listens, and stops on SIGINT or SIGTERM."""

from __future__ import annotations

import signal
from collections.abc import Callable, Sequence

from keywright.engine import Retry, Settings, aconnect
from keywright.explorer.app import create_app
from keywright.explorer.settings import ExplorerSettings
from keywright.keyspace import Binding, Keyspace
from keywright.tools.http import UvicornServer, listening, on_signals, url_of

__all__ = ["serve"]

# A person waits for the page: a quick error page is better than a late reply.
PATIENCE = Settings(timeout_seconds=5.0, retry=Retry(attempts=3, within_seconds=5.0))
SHUTDOWN_SECONDS = 2


async def serve(
    spaces: Sequence[Keyspace],
    settings: ExplorerSettings | None = None,
    *,
    url: str | None = None,
    bindings: Sequence[Binding] = (),
    on_listening: Callable[[str], None] | None = None,
) -> None:
    """Serve the explorer until SIGINT or SIGTERM; `on_listening` gets the address once pages can be opened.

    `url` defaults to REDIS_URL, else an embedded server. Raise UsageError if the address is not available,
    EngineError if Redis cannot be reached at the start; a later outage is retried.
    """
    settings = settings or ExplorerSettings()
    settings.check()
    with listening(settings.host, settings.port, remedy="Choose another --port.") as bound:
        async with aconnect(url, *bindings, settings=PATIENCE) as db:
            server = UvicornServer(
                create_app(db, spaces, settings),
                lifespan=True,
                proxy_headers=False,
                grace_seconds=SHUTDOWN_SECONDS,
                on_started=lambda: on_listening(url_of(bound)) if on_listening else None,
            )
            with on_signals(
                lambda _: server.stop(), lambda number: server.stop(at_once=number is signal.SIGINT)
            ):
                await server.serve([bound])
