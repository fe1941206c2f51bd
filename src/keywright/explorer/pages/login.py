"""The login page, for an explorer with a token."""

from __future__ import annotations

import asyncio

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from keywright.explorer.access import cookie_header
from keywright.explorer.explorer import explorer_of, form_of, page

__all__ = ["login", "sign_in"]

AFTER_REFUSAL_SECONDS = 0.3


async def login(request: Request) -> Response:
    access = explorer_of(request).access
    if not access.needs_token:
        return RedirectResponse("/", 303)
    return page(request, "login.html", refused=False)


async def sign_in(request: Request) -> Response:
    """Start a session for a browser that sends the token; the cookie does not contain the token."""
    access = explorer_of(request).access
    form = await form_of(request)
    session = request.scope["state"]["session"]
    ours = access.form_is_ours(session, form.get("mark", ""), request.headers)
    if not ours or not access.accepts(form.get("token", "")):
        await asyncio.sleep(AFTER_REFUSAL_SECONDS)  # slow down guessing
        return page(request, "login.html", status=403, refused=True)
    answer = RedirectResponse("/", 303)
    cookie = access.cookie(signed_in=True)
    answer.headers.append("Set-Cookie", cookie_header(request.scope, cookie))
    return answer
