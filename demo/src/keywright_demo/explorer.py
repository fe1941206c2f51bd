"""The explorer over the chosen models and the keys of their services; on throw-away data with a tour."""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import Sequence

from keywright import Binding, connect
from keywright.explorer import ExplorerSettings, Tour, serve
from keywright.tools import Model
from keywright_demo import bookshop, names
from keywright_discord.drc import schema as drc
from keywright_discord.gateway.schema import gateway
from keywright_discord.spectacles import schema as spectacles
from keywright_meetup.schema import meetup
from keywright_messaging.redis_streams.schema import streams
from keywright_openmod.service.schema import bind as bind_openmod
from keywright_registry import schema as registry

__all__ = ["bindings_of"]

REST_SECONDS = 3.0
"""Between two surveys: short, because the samples are small and grow."""


def bindings_of(models: Sequence[str]) -> list[Binding]:
    """Return the bindings under which the samples of these models, or of the tour, are stored."""
    return [binding for bound in _bound(models).values() for binding in bound]


def _bound(models: Sequence[str]) -> dict[str, list[Binding]]:
    of_model: dict[str, list[Binding]] = {
        "drc": [
            *drc.bind(names.DISCORD),
            gateway.bind(prefix=names.GATEWAY),
            streams.bind(prefix=names.STREAMS),
        ],
        "spectacles": list(spectacles.bind(names.SPECTACLES)),
        "registry": [registry.registry.bind(), registry.notifications.bind()],
        "openmod": bind_openmod(names.OPENMOD),
        "meetup": [meetup.bind(prefix=names.MEETUP)],
        "bookshop": [bookshop.bind()],
    }
    return {model: of_model[model] for model in models}


def main(port: str, mode: str, *models: str) -> None:
    """Serve the explorer. With a tour it may write, so the server must hold samples only."""
    url, tour = os.environ["REDIS_URL"], None
    if mode == "with-tour":
        tour = Tour(bookshop.bookshop, bookshop.fill)
        models = (*models, "bookshop")
        with connect(url, bookshop.bind()) as db:
            bookshop.fill(db)
    asyncio.run(
        serve(
            [Model(name, tuple(each.space for each in bound)) for name, bound in _bound(models).items()],
            ExplorerSettings(
                port=int(port),
                rest_seconds=REST_SECONDS,
                write=tour is not None,
                tour=tour,
                show_unknown=tour is not None,
            ),
            url=url,
            bindings=bindings_of(models),
            on_listening=lambda address: print(f"exploring at {address}"),
        )
    )


if __name__ == "__main__":
    main(*sys.argv[1:])
