"""The keys that refer to a key, found page by page."""

from __future__ import annotations

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response

from keywright.explorer.atlas import key_url, query_of, quoted
from keywright.explorer.backlinks import Cursor
from keywright.explorer.explorer import Here, explorer_of, page
from keywright.explorer.json_pages import exact

__all__ = ["backlinks"]

LONGEST_NAME = 64 * 1024


async def backlinks(request: Request) -> Response:
    """Return some keys that refer to a key: as a page, or as part of one."""
    explorer = explorer_of(request)
    asked = query_of(request.scope["query_string"])
    name = asked.get("name", b"")
    key = explorer.atlas.key_of(name) if 0 < len(name) <= LONGEST_NAME else None
    if key is None:
        raise HTTPException(404, "No template matches this name. Use /key/backlinks?name=…")
    found = await explorer.backlinks.find(key, Cursor.parse(asked.get("cursor", b"").decode("latin-1")))
    context = explorer.db.context
    more = found.more and f"/key/backlinks?name={quoted(name)}&cursor={found.more}"
    sources = explorer.backlinks.sources(type(key))
    total = sum(explorer.surveyor.latest.of(kind).keys for kind in sources)
    document = {
        "name": exact(name),
        "from": [kind.__name__ for kind in sources],
        "looked_at": found.looked,
        "about": total,
        "too_large": found.skipped,
        "links": [
            {
                "reference": link.reference,
                "template": type(link.key).__name__,
                "name": exact(context.name(link.key)),
                "url": key_url(context.name(link.key)),
            }
            for link in found.links
        ],
        "next": more,
    }
    sheet = explorer.atlas.sheets[type(key)]
    part = "hx-request" in request.headers
    return page(
        request,
        "backlinks.html" if part else "backlinks_page.html",
        document,
        here=Here(sheet.space.name, sheet.about.name),
        name=name,
        sheet=sheet,
        links=[
            (
                link,
                context.name(link.key),
                " ".join(text for _, text in explorer.atlas.variables(link.key)),
            )
            for link in found.links
        ],
        sources=sources,
        total=total,
        found=found,
        more=more,
    )
