"""Access: the token, as a bearer token or as the password of basic authentication."""

from __future__ import annotations

import base64
import binascii

from starlette.datastructures import Headers
from starlette.exceptions import HTTPException

from keywright.tools.http import SharedToken, TokenVerdict, bearer_of

__all__ = ["require_token"]

CHALLENGE = 'Bearer realm="keywright registry", Basic realm="keywright registry"'
RETRY_SECONDS = "5"


async def require_token(token: SharedToken, headers: Headers) -> None:
    """Raise HTTPException unless a request has the token: 401, or 429 while many wrong ones are answered."""
    given = _given(headers)
    verdict = TokenVerdict.WRONG if given is None else await token.check(given)
    if verdict is TokenVerdict.BUSY:
        raise HTTPException(
            429, "too many wrong tokens were sent; try again later", {"Retry-After": RETRY_SECONDS}
        )
    if verdict is TokenVerdict.WRONG:
        challenge = {"WWW-Authenticate": CHALLENGE}
        raise HTTPException(401, "give the token, as bearer or as basic password", challenge)


def _given(headers: Headers) -> bytes | None:
    scheme, _, credentials = headers.get("Authorization", "").partition(" ")
    if scheme.lower() != "basic":
        return bearer_of(headers)
    try:
        return base64.b64decode(credentials.strip(), validate=True).partition(b":")[2]
    except (binascii.Error, ValueError):
        return None
