"""Names that resemble a missing one: keys of the survey's sample, and templates. Nothing is read."""

from __future__ import annotations

import re
from collections.abc import Sequence
from difflib import SequenceMatcher

from keywright.explorer.atlas import Atlas, Sheet
from keywright.explorer.survey import Snapshot

__all__ = ["near_keys", "near_template"]

MOST = 6
COMPARED = 60
LEAST_LIKE = 0.6
LONGEST = 300


def near_keys(survey: Snapshot, name: bytes, sheet: Sheet | None) -> list[bytes]:
    """Return sampled names of a template, or of none, that are like a name; the most similar first."""
    wanted = name[:LONGEST]
    sampled = survey.of(sheet.kind).names if sheet is not None else survey.unknown

    def shared(other: bytes) -> int:
        return _common(wanted, other) + _common(wanted[::-1], other[::-1]) - abs(len(wanted) - len(other))

    # Only names with the longest common start and end are compared in full.
    candidates = sorted((each for each in sampled if len(each) <= LONGEST and each != name), key=shared)
    ratios = [
        (SequenceMatcher(None, wanted, each, autojunk=False).ratio(), each) for each in candidates[-COMPARED:]
    ]
    return [each for ratio, each in sorted(ratios, key=lambda pair: -pair[0]) if ratio >= LEAST_LIKE][:MOST]


def _common(one: Sequence[int], other: Sequence[int]) -> int:
    return next(
        (at for at, (a, b) in enumerate(zip(one, other, strict=False)) if a != b), min(len(one), len(other))
    )


def near_template(atlas: Atlas, name: bytes) -> Sheet | None:
    """Return the template whose literal parts resemble a name most."""
    text = name[:LONGEST].decode("utf-8", "replace")
    wanted = [part for part in text.split(":") if part]

    def likeness(sheet: Sheet) -> float:
        literals = [re.sub("<[^<>]*>", "", part) for part in sheet.source.split(":")]
        ratio = SequenceMatcher(None, ":".join(literals), text, autojunk=False).ratio()
        return ratio + sum(part in wanted for part in literals if part) - abs(len(literals) - len(wanted)) / 4

    ranked = sorted(atlas.sheets.values(), key=likeness, reverse=True)
    return ranked[0] if ranked and likeness(ranked[0]) > 1 else None
