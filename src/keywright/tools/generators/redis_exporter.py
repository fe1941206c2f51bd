"""The key groups of a model for redis_exporter."""

from __future__ import annotations

import csv
import io

from keywright.tools.generators.generator import Generation, Generator
from keywright.tools.generators.key_groups import key_groups

__all__ = ["GENERATOR"]


def _generate(generation: Generation) -> str:
    line = io.StringIO()
    patterns = dict.fromkeys(group.pattern for group in key_groups(generation.model))
    csv.writer(line, lineterminator="").writerow(patterns)
    return f"REDIS_EXPORTER_CHECK_KEY_GROUPS={line.getvalue()}\n"


GENERATOR = Generator(
    "redis-exporter",
    "the key groups of redis_exporter (--check-key-groups), as a file of environment variables",
    _generate,
)
