"""Pages as JSON: which requests get it, and how names, values and keys are written in it.

Every page has a document with the same facts. Names are exact: text if they are UTF-8, else `{"base64": …}`.
"""

from __future__ import annotations

import base64
from collections.abc import Mapping
from typing import Any

import msgspec
from starlette.responses import Response

__all__ = ["JsonName", "exact", "json_page", "prefers_json"]

JsonName = str | dict[str, str]


def prefers_json(accept: str) -> bool:
    """Return whether an Accept header ranks JSON above HTML; without a header, HTML is sent."""
    ranks: dict[str, float] = {}
    for part in accept.lower().split(","):
        kind, *parameters = (piece.strip() for piece in part.split(";"))
        ranks.setdefault(kind, _quality(parameters))
    return ranks.get("application/json", 0.0) > ranks.get("text/html", 0.0)


def _quality(parameters: list[str]) -> float:
    for parameter in parameters:
        name, _, value = parameter.partition("=")
        if name == "q":
            try:
                return min(1.0, max(0.0, float(value)))
            except ValueError:
                return 0.0
    return 1.0


def exact(name: bytes) -> JsonName:
    """Return a name as JSON data, without a loss."""
    try:
        return name.decode()
    except UnicodeDecodeError:
        return {"base64": base64.b64encode(name).decode()}


def json_page(document: Mapping[str, Any], status: int = 200) -> Response:
    body = msgspec.json.format(msgspec.json.encode(document), indent=2)
    return Response(body, status, media_type="application/json", headers={"Vary": "Accept"})
