"""Arguments that name a model, and the bindings of a model for one invocation."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Annotated

import typer

from keywright.keyspace import Binding, Keyring, Keyspace

__all__ = ["MODEL_HELP", "ModelName", "bindings_of"]

MODEL_HELP = (
    "An installed model by name, or MODULE:ATTRIBUTE, as in shop.schema:shop; several are separated by "
    "commas. The current folder is searched too."
)

ModelName = Annotated[str, typer.Argument(metavar="MODEL", help=MODEL_HELP, show_default=False)]


def bindings_of(spaces: Iterable[Keyspace], prefix: str | None) -> list[Binding]:
    """Bind keyspaces to the prefix of the command line and the keyring of the environment."""
    keyring = Keyring.from_env_if_set()
    return [space.bind(prefix=prefix, keyring=keyring) for space in spaces]
