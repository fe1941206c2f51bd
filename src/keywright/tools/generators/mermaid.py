"""The diagram of a model in Mermaid."""

from __future__ import annotations

from keywright.tools.diagram.entities import schema_of
from keywright.tools.docs.mermaid import mermaid
from keywright.tools.generators.generator import Generation, Generator

__all__ = ["GENERATOR"]


def _generate(generation: Generation) -> str:
    return mermaid(schema_of(generation.described.spaces)) + "\n"


GENERATOR = Generator("mermaid", "an entity-relationship diagram of the keys, in Mermaid", _generate)
