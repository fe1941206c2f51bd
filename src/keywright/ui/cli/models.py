"""From a name on the command line to a model: a built-in one, or the user's own MODULE:ATTRIBUTE."""

from __future__ import annotations

from typing import Annotated

import typer

from keywright.errors import UsageError
from keywright.tools.loading import load_keyspace
from keywright.tools.model import Model

__all__ = ["BUILT_IN", "ModelName", "load_model"]

BUILT_IN = {
    "drc": "keywright.models.discord.drc.schema:drc,private",
    "spectacles": "keywright.models.discord.spectacles.schema:spectacles,private",
    "openmod": "keywright.models.openmod.schema:openmod,openmod_v1",
    "registry": "keywright.models.registry.schema:registry,legacy",
    "meetup": "keywright.models.meetup.schema:meetup",
}
"""Where the keyspaces of each shipped model are; the first is its public one. Imported when asked for."""

ModelName = Annotated[
    str,
    typer.Argument(
        metavar="MODEL",
        help=f"One of {', '.join(BUILT_IN)}; or MODULE:ATTRIBUTE, as in shop.schema:shop. Several keyspaces "
        "of a module are separated by commas. The current folder is searched too.",
        show_default=False,
    ),
]


def load_model(name: str) -> Model:
    """The model of that name; UsageError says what is not there and what is."""
    place = BUILT_IN.get(name, name)
    module, colon, attributes = place.partition(":")
    if not colon:
        raise UsageError(
            f"{name!r} names no model. Write MODULE:ATTRIBUTE, as in shop.schema:shop, "
            f"or one of {', '.join(BUILT_IN)}."
        )
    return Model(name, tuple(load_keyspace(f"{module}:{attribute}") for attribute in attributes.split(",")))
