"""What the service needs to act as an account; apart from the connection, which needs asyncpraw."""

from __future__ import annotations

import msgspec

from keywright import Secret

__all__ = ["Credentials"]


class Credentials(msgspec.Struct, frozen=True, kw_only=True):
    """Of a script app and its account, or a refresh token in place of name and password."""

    client_id: str
    client_secret: Secret[str]
    username: str = ""
    password: Secret[str] | None = None
    refresh_token: Secret[str] | None = None
    user_agent: str = "keywright-openmod"
    url: str = "https://www.reddit.com"
    oauth_url: str = "https://oauth.reddit.com"
    timeout_seconds: float = 16.0
