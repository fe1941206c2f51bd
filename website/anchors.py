"""Anchors of headings, spelt as GitHub spells them, so that one link is right in both places."""

from __future__ import annotations

import re
from collections.abc import Callable

__all__ = ["slug", "slugs"]


def slug(heading: str, _: str = "-") -> str:
    """Return the anchor of a heading, without a number for those that occur twice."""
    words = re.sub(r"<[^>]+>|[*`]", "", heading)
    return re.sub(r"[^\w\- ]", "", words.strip().lower()).replace(" ", "-")


def slugs() -> Callable[[str, str], str]:
    """Return what the generator calls with a heading and a separator. It pickles it: no lambda."""
    return slug
