"""A hold on a string: the stored value names the holder, and the server's expiry ends it.

Owns the scripts that compare before they write. The kind decides on the stored stamp: a lease stores the bare
token, a claim prefixes it.
"""

from __future__ import annotations

import secrets
from datetime import timedelta

from keywright.errors import UsageError
from keywright.keyspace.call import Call
from keywright.keyspace.key import Key
from keywright.keyspace.script import Script
from keywright.keyspace.wires import Effect

# Each is idempotent, so it is retried when its reply is lost.
ACQUIRE = Script("keywright.keyspace", "acquire", Effect.REPEATABLE)
EXTEND = Script("keywright.keyspace", "extend", Effect.REPEATABLE)
RELEASE = Script("keywright.keyspace", "release", Effect.REPEATABLE)

MILLISECOND = timedelta(milliseconds=1)


def new_token() -> str:
    """Return a unique token: 16 random bytes, unpadded URL-safe base64."""
    return secrets.token_urlsafe(16)


def acquire(key: Key, stamp: bytes, hold: timedelta) -> Call[bool]:
    """Take a key for a time. Return False if another holder has it."""
    return ACQUIRE.call([key], (stamp, hold_ms(hold)), bool)


def extend(key: Key, stamp: bytes, hold: timedelta) -> Call[bool]:
    """Hold a key for longer. Return False if it is not held with this stamp."""
    return EXTEND.call([key], (stamp, hold_ms(hold)), bool)


def release(key: Key, stamp: bytes) -> Call[bool]:
    """Give a key back. Return False if it is not held with this stamp."""
    return RELEASE.call([key], (stamp,), bool)


def hold_ms(hold: timedelta) -> int:
    milliseconds = round(hold / MILLISECOND)
    if milliseconds < 1:
        raise UsageError(f"hold must be at least 1 ms, got {hold}. Pass a longer timedelta.")
    return milliseconds


def token_bytes(token: str) -> bytes:
    if not token:
        raise UsageError("the token is empty. Make one with new_token().")
    return token.encode()
