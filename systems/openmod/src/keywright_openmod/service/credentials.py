"""The credentials of the service, in a module that does not import asyncpraw."""

from __future__ import annotations

import msgspec

from keywright import Secret

__all__ = ["Credentials"]


class Credentials(msgspec.Struct, frozen=True, kw_only=True):
    """A script app with the name and password of its account, or with a refresh token."""

    client_id: str
    client_secret: Secret[str]
    username: str = ""
    password: Secret[str] | None = None
    refresh_token: Secret[str] | None = None
    user_agent: str = "keywright-openmod"
    url: str = "https://www.reddit.com"
    oauth_url: str = "https://oauth.reddit.com"
    timeout_seconds: float = 16.0
