"""The schema file itself."""

from __future__ import annotations

from keywright.tools.generators.generator import Generation, Generator
from keywright.tools.schema.text import schema_text

__all__ = ["GENERATOR"]


def _generate(generation: Generation) -> str:
    return schema_text(generation.schema)


GENERATOR = Generator("schema", "the schema file of the model, for programs in every language", _generate)
