"""The explorer over the chosen models and the keys of their services."""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import Sequence

from keywright import Binding
from keywright.explorer import ExplorerSettings, serve
from keywright_demo import names
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
    """Return the bindings under which the samples of these models are stored."""
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
    }
    return [binding for model in models for binding in of_model[model]]


def main(port: str, *models: str) -> None:
    bindings = bindings_of(models)
    asyncio.run(
        serve(
            [binding.space for binding in bindings],
            ExplorerSettings(port=int(port), rest_seconds=REST_SECONDS),
            url=os.environ["REDIS_URL"],
            bindings=bindings,
            on_listening=lambda address: print(f"exploring at {address}"),
        )
    )


if __name__ == "__main__":
    main(*sys.argv[1:])
