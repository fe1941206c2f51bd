"""The anchors of a document: where a key, a relation or a line of the diagram is described."""

from __future__ import annotations

from keywright.tools.describe.description import LinkDescription, SpaceDescription
from keywright.tools.diagram.entities import Tie

__all__ = ["key_anchor", "link_anchor", "tie_anchor"]


def key_anchor(space: SpaceDescription, key: str) -> str:
    return f"{space.name}-{key}"


def link_anchor(space: SpaceDescription, link: LinkDescription) -> str:
    return f"{space.name}-relation-{link.forward}-{link.inverse}"


def tie_anchor(tie: Tie) -> str:
    """Return the anchor of the relation, or of the key that refers to another."""
    if tie.link is not None:
        return link_anchor(tie.space, tie.link)
    return key_anchor(tie.space, tie.source.partition("@")[0])
