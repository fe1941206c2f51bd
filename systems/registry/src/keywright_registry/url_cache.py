"""Pre-signed URLs of the storage, kept as long as they are worth handing out."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from datetime import datetime, timedelta

import msgspec

from keywright import Call, expires_in
from keywright.operations import Steps, bound_context, procedure
from keywright_registry.schema import CachedUrl, SignedUrl

__all__ = ["UrlCache", "request_hash"]

SHORTEST = timedelta(milliseconds=1)


class UrlCache(msgspec.Struct, frozen=True):
    """URLs by storage path and options. One that is handed out is valid for `least_validity` more."""

    least_validity: timedelta = timedelta(minutes=10)

    def get(self, path: str, options: Mapping[str, str] | None = None) -> Call[str | None]:
        return CachedUrl(request_hash(path, options or {})).get().map(_url)

    @procedure
    def set(
        self, path: str, url: str, valid_until: datetime, options: Mapping[str, str] | None = None
    ) -> Steps[bool]:
        """Keep a URL; False, and nothing is sent, when it would not be worth handing out again."""
        key = CachedUrl(request_hash(path, options or {}))
        context = yield bound_context()
        lasting = valid_until - context.now() - self.least_validity
        if lasting < SHORTEST:
            return False
        written: bool = yield key.set(SignedUrl(url), expiry=expires_in(lasting))
        return written


def request_hash(path: str, options: Mapping[str, str]) -> str:
    """SHA-256 of the path and then each option as `name:value`, by name; `expiry` does not count.

    Nothing separates one from the next, as in the registry: `a` with `b:c` has the hash of `ab:c` alone.
    """
    parts = [f"{name}:{value}" for name, value in sorted(options.items()) if name != "expiry"]
    return hashlib.sha256("".join([path, *parts]).encode()).hexdigest()


def _url(found: SignedUrl | None) -> str | None:
    return None if found is None else found.url
