"""The document of a model and a dump: what the dump has of each key, beside what is declared."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import msgspec

from keywright.tools.databases import DatabasePart
from keywright.tools.describe.description import KeyDescription, SpaceDescription, StoredDescription, describe
from keywright.tools.model import CountedDescription, ModelDescription
from keywright.tools.stats import Count, Snapshot

__all__ = ["CountedPart", "described_with_counts"]


class CountedPart(NamedTuple):
    """One database of a dump: the keyspaces in it, and what was counted."""

    part: DatabasePart
    snapshot: Snapshot


def described_with_counts(name: str, dump: str, parts: Sequence[CountedPart]) -> ModelDescription:
    """Return the description of a model, with the counts of all its keys. `dump` names the file."""
    spaces: list[SpaceDescription] = []
    for part, snapshot in parts:
        counts = iter(snapshot.counts)  # in the order of the model
        for space in map(describe, part.model.spaces):
            keys = tuple(map(_with_count, space.keys, counts))
            spaces.append(msgspec.structs.replace(space, keys=keys))
    snapshots = [snapshot for _, snapshot in parts]
    counted = CountedDescription(
        dump,
        sum(each.names for each in snapshots),
        sum(each.unknown for each in snapshots),
        sum(each.outside for each in snapshots),
    )
    return ModelDescription(name, tuple(spaces), counted)


def _with_count(key: KeyDescription, count: Count) -> KeyDescription:
    stored = StoredDescription(count.keys, count.bytes, count.expiring)
    return msgspec.structs.replace(key, stored=stored)
