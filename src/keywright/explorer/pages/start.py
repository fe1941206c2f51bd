"""The first page: what the explorer shows, a card for each model, and where to go from here."""

from __future__ import annotations

from typing import Any, NamedTuple

from starlette.requests import Request
from starlette.responses import Response

from keywright.explorer.atlas import Sheet
from keywright.explorer.explorer import Explorer, explorer_of, page
from keywright.tools.model import Model

__all__ = ["start"]

FULLEST = 3


class Card(NamedTuple):
    """One model with its counts, and its templates with the most keys."""

    name: str
    description: str
    templates: int
    keys: int
    memory: int | None
    estimated: bool
    fullest: list[Sheet]


async def start(request: Request) -> Response:
    explorer = explorer_of(request)
    cards = [_card(explorer, model) for model in explorer.models]
    snapshot = explorer.surveyor.latest
    document = {
        "server": explorer.db.address.shown,
        "writable": explorer.settings.write,
        "models": [_card_document(card) for card in cards],
        "undeclared": snapshot.unknown_keys,
        "findings": explorer.auditing.total if explorer.auditing.tally is not None else None,
        "pages": {"map": "/map", "audit": "/audit", "changes": "/changes", "search": "/search?q="}
        | ({"tour": "/tour"} if explorer.tour is not None else {}),
    }
    return page(request, "start.html", document, cards=cards, total=sum(card.keys for card in cards))


def _card(explorer: Explorer, model: Model) -> Card:
    sheets = [
        sheet for kind, sheet in explorer.atlas.sheets.items() if kind.declaration.space in model.spaces
    ]
    counted = {sheet: explorer.surveyor.latest.of(sheet.kind) for sheet in sheets}
    stored = [sheet for sheet in sheets if counted[sheet].keys]
    return Card(
        model.name,
        model.spaces[0].description,
        len(sheets),
        sum(each.keys for each in counted.values()),
        sum(each.memory or 0 for each in counted.values()) or None,
        any(each.estimated for each in counted.values()),
        sorted(stored, key=lambda sheet: -counted[sheet].keys)[:FULLEST],
    )


def _card_document(card: Card) -> dict[str, Any]:
    return {
        "name": card.name,
        "description": card.description,
        "templates": card.templates,
        "keys": card.keys,
        "memory": card.memory,
        "estimated": card.estimated,
    }
