"""Access: the token, as a bearer token or as the password of basic authentication."""

from __future__ import annotations

import base64
import binascii
import hmac

from keywright import Secret

__all__ = ["CHALLENGE", "is_allowed"]

CHALLENGE = 'Bearer realm="keywright registry", Basic realm="keywright registry"'


def is_allowed(token: Secret[str] | None, authorization: str) -> bool:
    """Return whether an Authorization header has the token; always True if none is required."""
    if token is None:
        return True
    scheme, _, credentials = authorization.partition(" ")
    given = _given(scheme.lower(), credentials.strip())
    # Compared even where nothing was given, and in constant time: the delay of an answer reveals nothing.
    return hmac.compare_digest(given, token.reveal().encode())


def _given(scheme: str, credentials: str) -> bytes:
    if scheme == "bearer":
        return credentials.encode("latin-1", "replace")  # as the bytes of the header were read
    if scheme == "basic":
        try:
            return base64.b64decode(credentials, validate=True).partition(b":")[2]
        except (binascii.Error, ValueError):
            return b""
    return b""
