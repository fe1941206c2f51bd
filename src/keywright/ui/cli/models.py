"""From a name on the command line to a model: a built-in one, or the user's own MODULE:ATTRIBUTE."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Annotated

import typer

from keywright.errors import UsageError
from keywright.keyspace import Binding, Keyring, Keyspace
from keywright.tools.loading import load_keyspace
from keywright.tools.model import Model

__all__ = ["BUILT_IN", "ModelName", "bindings_of", "load_model"]

BUILT_IN = {
    "drc": ("keywright.models.discord.drc.schema:drc,private",),
    "spectacles": ("keywright.models.discord.spectacles.schema:spectacles,private",),
    "openmod": (
        "keywright.models.openmod.schema:openmod,openmod_v1",
        "keywright.services.openmod.schema:openmod_service,openmod_local",
    ),
    "registry": (
        "keywright.models.registry.schema:registry,legacy",
        "keywright.services.registry.schema:notifications",
    ),
    "meetup": ("keywright.models.meetup.schema:meetup",),
}
"""Where the keyspaces of each shipped model are, its services' own included. Imported when asked for.

The first is its public one.
"""

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
    if name not in BUILT_IN and ":" not in name:
        raise UsageError(
            f"{name!r} names no model. Write MODULE:ATTRIBUTE, as in shop.schema:shop, "
            f"or one of {', '.join(BUILT_IN)}."
        )
    places = BUILT_IN.get(name, (name,))
    return Model(name, tuple(space for place in places for space in _keyspaces(place)))


def bindings_of(spaces: Iterable[Keyspace], prefix: str | None) -> list[Binding]:
    """Keyspaces as the command line names them, with the keyring of the environment."""
    keyring = Keyring.from_env_if_set()
    return [space.bind(prefix=prefix, keyring=keyring) for space in spaces]


def _keyspaces(place: str) -> Iterator[Keyspace]:
    module, _, attributes = place.partition(":")
    for attribute in attributes.split(","):
        yield load_keyspace(f"{module}:{attribute}")
