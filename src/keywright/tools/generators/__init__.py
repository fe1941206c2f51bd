"""Generators: files that other programs read, made from a model. `keywright generate` lists and runs them.

A distribution adds its own with an entry point of the group `keywright.generators` that names a `Generator`.
"""

from keywright.tools.generators.generator import Generation, Generator
from keywright.tools.generators.registry import generator_summaries, load_generator

__all__ = ["Generation", "Generator", "generator_summaries", "load_generator"]
