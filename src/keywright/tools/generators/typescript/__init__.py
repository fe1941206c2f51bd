"""TypeScript from schema files: a module with every key, for the package of `clients/typescript`."""

from keywright.tools.generators.generator import Generator
from keywright.tools.generators.typescript.module import typescript
from keywright.tools.generators.typescript.scripts import runtime_scripts

__all__ = ["GENERATOR", "runtime_scripts", "typescript"]

GENERATOR = Generator(
    "typescript",
    "a TypeScript module with the keys, values and relations, for the package of clients/typescript",
    lambda generation: typescript(generation.schema),
)
