"""The module of an inferred model, to download."""

from __future__ import annotations

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response

from keywright.explorer.explorer import explorer_of

__all__ = ["saved_declaration"]

FILE = "schema.py"


async def saved_declaration(request: Request) -> Response:
    """Return the module as a file. It has no ids and no values. Respond with 404 if a model was named."""
    text = explorer_of(request).declaration
    if text is None:
        raise HTTPException(404, "The model was named, not inferred: its module exists already.")
    headers = {"Content-Disposition": f'attachment; filename="{FILE}"'}
    return Response(text, media_type="text/x-python", headers=headers)
