"""A cache of pre-signed storage URLs that are still valid long enough to hand out."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from datetime import datetime, timedelta

import msgspec

from keywright import Call, expires_in
from keywright.operations import Steps, bound_context, procedure
from keywright_registry.schema import CachedUrl, SignedUrl

__all__ = ["UrlCache", "request_hash"]

SHORTEST_EXPIRY = timedelta(milliseconds=1)


class UrlCache(msgspec.Struct, frozen=True):
    """URLs by storage path and options. A returned URL is valid for at least `least_validity`."""

    least_validity: timedelta = timedelta(minutes=10)

    def get(self, path: str, options: Mapping[str, str] | None = None) -> Call[str | None]:
        """Return the cached URL or None."""
        stored = CachedUrl(request_hash(path, options or {})).get()
        return stored.map(lambda found: None if found is None else found.url)

    @procedure
    def set(
        self, path: str, url: str, valid_until: datetime, options: Mapping[str, str] | None = None
    ) -> Steps[bool]:
        """Cache a URL; return False, and send nothing, if its validity is too short."""
        context = yield bound_context()
        ttl = valid_until - context.now() - self.least_validity
        if ttl < SHORTEST_EXPIRY:
            return False
        key = CachedUrl(request_hash(path, options or {}))
        written: bool = yield key.set(SignedUrl(url), expiry=expires_in(ttl))
        return written


def request_hash(path: str, options: Mapping[str, str]) -> str:
    """Return the SHA-256 of the path followed by each option as `name:value`, sorted, without `expiry`.

    Parts have no separator, as in the registry: `a` with the option `b:c` has the same hash as `ab:c` alone.
    """
    parts = [f"{name}:{value}" for name, value in sorted(options.items()) if name != "expiry"]
    return hashlib.sha256("".join([path, *parts]).encode()).hexdigest()
