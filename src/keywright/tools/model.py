"""A data model: the keyspaces that one team keeps together, the first of them its public one."""

from __future__ import annotations

from typing import NamedTuple

import msgspec

from keywright.keyspace import Keyspace
from keywright.keyspace.description import SpaceDescription, describe

__all__ = ["Model", "ModelDescription"]


class ModelDescription(msgspec.Struct, frozen=True, omit_defaults=True):
    """All keyspaces of a model, as plain data."""

    name: str
    spaces: tuple[SpaceDescription, ...]

    @property
    def description(self) -> str:
        return self.spaces[0].description


class Model(NamedTuple):
    """A model by the name it was asked for."""

    name: str
    spaces: tuple[Keyspace, ...]

    def described(self) -> ModelDescription:
        return ModelDescription(self.name, tuple(map(describe, self.spaces)))
