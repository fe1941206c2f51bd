"""The versions of the servers that serve a test run, as the servers report them.

KEYWRIGHT_TEST_VERSIONS names those that the run wants, for example `valkey 9.1, rabbitmq 4.0`: a server of
another version then fails the test that starts it, so that a run cannot pass on another server than intended.
"""

from __future__ import annotations

import os
from collections import Counter

from keywright.errors import UsageError

__all__ = ["WANTED", "started_versions", "witness"]

WANTED = "KEYWRIGHT_TEST_VERSIONS"
_ALTERNATIVES = {"redis", "valkey"}  # a run has one of them

_started: Counter[str] = Counter()


def witness(product: str, version: str, *, chosen: bool = False) -> None:
    """Record the version of a started server. Raise UsageError if the run wants another one.

    A server is `chosen` if the test itself named its program: then it may have any version.
    """
    if not chosen and (wanted := _wanted(product)) and not _is(wanted, product, version):
        raise UsageError(
            f"the tests want {wanted}, but {product} {version} was started. Name the program of the wanted "
            f"server in KEYWRIGHT_SERVER or put it on PATH, or correct {WANTED}."
        )
    _started[f"{product} {version}{' by choice of the test' if chosen else ''}"] += 1


def started_versions() -> Counter[str]:
    """Return how many servers of each version this process started."""
    return _started.copy()


def _wanted(product: str) -> str | None:
    names = _ALTERNATIVES if product.lower() in _ALTERNATIVES else {product.lower()}
    for entry in os.environ.get(WANTED, "").split(","):
        if entry.strip().partition(" ")[0].lower() in names:
            return entry.strip()
    return None


def _is(wanted: str, product: str, version: str) -> bool:
    name, _, number = wanted.lower().partition(" ")
    return name == product.lower() and f"{version}.".startswith(f"{number.strip()}.")
