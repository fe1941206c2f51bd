"""What keys hold, roughly: enough to say whether two groups of names hold the same."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from keywright.tools.infer.patterns import Observation
from keywright.tools.infer.values import json_documents, rough_form

__all__ = ["content_of", "fields_of", "members_of"]

MOST_READ = 20


def content_of(observations: Sequence[Observation]) -> object:
    """Return the type of keys and the form of their values; None if nothing is known of them."""
    facts = [each.facts for each in observations[:MOST_READ] if each.facts is not None]
    if not facts:
        return None
    kinds = {each.redis_type for each in facts}
    if len(kinds) > 1:
        return "several"
    kind = kinds.pop()
    if kind == "hash":
        return kind, tuple(sorted(fields_of(observations))[:12])
    if kind in ("string", "list"):
        return kind, rough_form([value for each in facts for value in each.values])
    return kind


def fields_of(observations: Sequence[Observation]) -> set[bytes]:
    """Return the fields that all hashes have."""
    facts = [each.facts for each in observations[:MOST_READ] if each.facts is not None]
    if not facts or any(each.redis_type != "hash" or not each.fields for each in facts):
        return set()
    return set.intersection(*(set(each.fields[0]) for each in facts))


def members_of(observations: Sequence[Observation]) -> tuple[str, frozenset[object]] | None:
    """Return the type of keys that hold fields or JSON objects, and the members that all have; else None."""
    facts = [each.facts for each in observations[:MOST_READ] if each.facts is not None]
    kinds = {each.redis_type for each in facts}
    found: list[Any] = [fields for each in facts for fields in each.fields]
    found = found or json_documents([value for each in facts for value in each.values]) or []
    if not found or len(kinds) != 1 or not all(isinstance(each, dict) for each in found):
        return None
    members = frozenset[object].intersection(*(frozenset(each) for each in found))
    return (kinds.pop(), members) if members else None
