"""Signing in and out of an explorer with a token."""

from __future__ import annotations

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from keywright.explorer.explorer import explorer_of, form_of, own_form, page
from keywright.tools.http import TokenVerdict

__all__ = ["login", "sign_in", "sign_out"]


async def login(request: Request) -> Response:
    access = explorer_of(request).access
    if not access.needs_token:
        return RedirectResponse("/", 303)
    return page(request, "login.html", problem=None, following=_following(request.query_params.get("next")))


async def sign_in(request: Request) -> Response:
    """Start a session for a browser that sends the token; the cookie does not contain the token."""
    access = explorer_of(request).access
    if access.token is None:
        return RedirectResponse("/", 303)
    form = await form_of(request)
    following = _following(form.get("next"))
    session = request.scope["state"]["session"]
    if not access.form_is_ours(session, form.get("mark", ""), request.headers):
        problem = "The form was not sent by this page."
        return page(request, "login.html", status=403, problem=problem, following=following)
    verdict = await access.token.check(form.get("token", "").encode())
    if verdict is TokenVerdict.BUSY:
        raise HTTPException(429, "Too many wrong tokens were sent. Try again in a few seconds.")
    if verdict is TokenVerdict.WRONG:
        return page(request, "login.html", status=403, problem="The token is wrong.", following=following)
    return _begun(request, following, access.sign_in())


async def sign_out(request: Request) -> Response:
    """End the session; its cookie opens nothing any more."""
    await own_form(request)
    access = explorer_of(request).access
    access.sign_out(request.scope["state"]["session"])
    return _begun(request, "/login", access.new_cookie())


def _following(asked: str | None) -> str:
    """Return the page of this explorer that a browser asked for before it signed in; the first page if none.

    An address of another host, as in //example.org or /\\example.org, is not followed.
    """
    if asked is None or not asked.startswith("/") or asked.startswith(("//", "/login", "/static/")):
        return "/"
    return asked if asked.isascii() and asked.isprintable() and "\\" not in asked else "/"


def _begun(request: Request, path: str, cookie: str) -> Response:
    answer = RedirectResponse(path, 303)
    answer.headers.append("Set-Cookie", explorer_of(request).access.cookie_header(request.scope, cookie))
    return answer
