"""Rate limits as Discord has them: for each kind of request and top-level resource, and one for all."""

from __future__ import annotations

import hashlib
import re
import time
from typing import Any

from starlette.responses import JSONResponse, Response
from starlette.types import Scope

__all__ = ["Limits"]

_MAJOR = re.compile(r"/(channels|guilds)/(\d+)")
_ID = re.compile(r"\d{15,}")


class Limits:
    """At most so many requests of a bucket in so many seconds. Headers say what is left; more get 429."""

    def __init__(self, *, most: int = 1000, seconds: float = 1.0) -> None:
        self._usual = (most, seconds)
        self._of_routes: dict[str, tuple[int, float]] = {}
        self._used: dict[tuple[str, str], tuple[int, float]] = {}
        self._all_until = 0.0
        self.refused = 0
        """How many requests were answered with 429."""

    def limit(self, method: str, path: str, most: int, seconds: float) -> None:
        """Set the limit of requests with this method and a path of this form, which has {} for ids."""
        self._of_routes[f"{method} {path}"] = (most, seconds)

    def limit_all(self, seconds: float) -> None:
        """Refuse everything for so long, as after the global limit was exceeded."""
        self._all_until = time.monotonic() + seconds

    def before(self, scope: Scope) -> tuple[Response | None, dict[str, str]]:
        """Return the refusal of a request, if it is refused; else the headers to add to its answer."""
        left = self._all_until - time.monotonic()
        if left > 0:
            return self._refusal(left, "global", {"X-RateLimit-Global": "true"}), {}
        path = scope["path"]
        route = f"{scope['method']} {_ID.sub('{}', path.partition('/api/v10')[2])}"
        most, seconds = self._of_routes.get(route, self._usual)
        found = _MAJOR.search(path)
        key = (route, found[2] if found else "")
        used, until = self._used.get(key, (0, 0.0))
        if until <= time.monotonic():
            used, until = 0, time.monotonic() + seconds
        after = until - time.monotonic()
        headers = self._headers(route, most, max(0, most - used - 1), after)
        if used >= most:
            return self._refusal(after, "user", headers), {}
        self._used[key] = (used + 1, until)
        return None, headers

    def _headers(self, route: str, most: int, left: int, after: float) -> dict[str, str]:
        return {
            "X-RateLimit-Limit": str(most),
            "X-RateLimit-Remaining": str(left),
            "X-RateLimit-Reset": f"{time.time() + after:.3f}",
            "X-RateLimit-Reset-After": f"{after:.3f}",
            "X-RateLimit-Bucket": hashlib.md5(route.encode(), usedforsecurity=False).hexdigest(),
        }

    def _refusal(self, after: float, scope: str, headers: dict[str, Any]) -> Response:
        self.refused += 1
        body = {"message": "You are being rate limited.", "retry_after": after, "global": scope == "global"}
        headers = {**headers, "Retry-After": str(int(after) + 1), "X-RateLimit-Scope": scope}
        return JSONResponse(body, 429, headers)
