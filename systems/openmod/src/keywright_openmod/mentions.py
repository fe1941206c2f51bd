"""What the keys of Open Mod mention, for tools that follow it. Copies expire, so nothing is required."""

from __future__ import annotations

from keywright import refers
from keywright_openmod import schema
from keywright_openmod.shapes import thing_of

refers(
    schema.TrackingSet,
    schema.Cache,
    lambda _, things: (thing for thing, _ in things),
    name="copies",
    required=False,
)
refers(
    schema.TrackingSet,
    schema.ModActions,
    lambda _, things: ((thing, None) for thing, _ in things),
    name="actions",
    required=False,
)
refers(
    schema.ModActions,
    schema.Extract,
    lambda _, posts: (post for post, _ in posts),
    name="extracts",
    required=False,
)
refers(
    schema.Extract,
    schema.Cache,
    lambda _, found: [thing_of(found)],
    name="what was moderated",
    required=False,
)
refers(
    schema.Extract,
    schema.TrackingSet,
    lambda _, found: [(found.target, None)],
    name="whom it concerns",
    required=False,
)
