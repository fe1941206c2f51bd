"""From sampled names, and what is known of them, to the module that declares them."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import NamedTuple

from keywright.errors import UsageError
from keywright.tools.infer.facts import Facts
from keywright.tools.infer.module import RESERVED, KeyDeclaration, key_declarations, module_text
from keywright.tools.infer.names import NameSample
from keywright.tools.infer.structs import Structs
from keywright.tools.infer.templates import declared_templates
from keywright.tools.infer.tree import Observation, patterns_of

__all__ = ["Inference", "infer"]

_SPACE_NAME = re.compile(r"[a-z][a-z0-9_]{0,40}")


class Inference(NamedTuple):
    """The module, and how many of the names its templates have."""

    text: str
    keys: list[KeyDeclaration]
    names: int
    matched: int
    too_long: int
    sampled: int
    is_exact: bool

    @property
    def coverage(self) -> list[str]:
        """Lines for people: what is matched, what remains and why."""
        share = self.matched / self.names if self.names else 1.0
        about = "" if self.is_exact else f" (estimated from a sample of {self.sampled:,})"
        classes = f"{len(self.keys)} template{'' if len(self.keys) == 1 else 's'}"
        lines = [f"{self.matched:,} of {self.names:,} keys, {share:.2%}, match {classes}{about}"]
        rest = self.names - self.matched - self.too_long
        if rest > 0:
            lines.append(f"{rest:,} keys have no structure that repeats: the fallback template has them")
        if self.too_long:
            lines.append(f"{self.too_long:,} keys were not looked at: their names are too long")
        doubts = sum(len(key.doubts) for key in self.keys)
        if doubts:
            lines.append(f"{doubts:,} guesses to review: look for `# guess:`")
        return lines


def infer(
    sample: NameSample,
    facts: Mapping[bytes, Facts] | None = None,
    *,
    space: str = "inferred",
    origin: str = "a list of names",
    show_ids: bool = False,
) -> Inference:
    """Write the declaration of sampled names. Raise UsageError if there are none."""
    if not _SPACE_NAME.fullmatch(space) or space in RESERVED:
        raise UsageError(f"--space must be a lower-case identifier, got {space!r}. Write for example shop.")
    known = facts or {}
    observations = [Observation(name, weight, known.get(name)) for name, weight in sample]
    if not observations:
        raise UsageError("there are no names to infer from. Give a database or a file that has keys.")
    declared, rest = declared_templates(patterns_of(observations), observations)
    structs = Structs({*RESERVED, space})
    keys = key_declarations(declared, structs)
    remaining = round(sum(each.weight for each in rest)) + sample.too_long
    text = module_text(space, keys, structs, origin=origin, total=sample.count, rest=rest, show_ids=show_ids)
    return Inference(
        text,
        keys,
        sample.count,
        sample.count - remaining,
        sample.too_long,
        len(observations),
        sample.is_complete,
    )
