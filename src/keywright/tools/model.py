"""Data models: the keyspaces that one team maintains together, the public one first."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import msgspec

from keywright.keyspace import Keyspace
from keywright.tools.describe.description import SpaceDescription, describe

if TYPE_CHECKING:
    from keywright.tools.docs.asyncapi import ProgramChannels
    from keywright.tools.migrate import ConversionRoute, Sweep

__all__ = ["CountedDescription", "Model", "ModelDescription"]


class CountedDescription(msgspec.Struct, frozen=True, omit_defaults=True):
    """What was counted in a dump, for a document of both."""

    dump: str
    """The file, and the moment of which it is."""
    names: int
    unknown: int = 0
    """The names that no template matches."""
    outside: int = 0
    """The names without the prefix of a keyspace."""


class ModelDescription(msgspec.Struct, frozen=True, omit_defaults=True):
    """All keyspaces of a model, as plain data."""

    name: str
    spaces: tuple[SpaceDescription, ...]
    counted: CountedDescription | None = None

    @property
    def description(self) -> str:
        return self.spaces[0].description


@dataclass(frozen=True)
class Model:
    """A named model, as the tools and the commands know it.

    A distribution publishes one with an entry point of the group `keywright.models`. The hooks cover
    features that a declaration cannot express; each is a function that imports its code when it is called.
    """

    name: str
    spaces: tuple[Keyspace, ...]
    sweep: Sweep | None = None
    """A migration that knows more about old data than the declaration; `keywright migrate --yes` runs it."""
    conversions: Mapping[str, Callable[[str | None, str | None], ConversionRoute]] = field(
        default_factory=dict
    )
    """From the name of another layout to the conversion into it, given both prefixes."""
    channels: Callable[[], ProgramChannels] | None = None
    """The message channels of its programs, for AsyncAPI."""

    def described(self) -> ModelDescription:
        """Return the description of all keyspaces, which documents are made from."""
        return ModelDescription(self.name, tuple(map(describe, self.spaces)))
