"""Capabilities of a server, found by asking it for commands rather than by its version."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from keywright.engine.nodes import INFO, Batch, info_fields
from keywright.engine.replies import reading_a_reply
from keywright.errors import CapabilityError, KeywrightError, ServerRefusedError
from keywright.keyspace.misuse import explained
from keywright.keyspace.wires import Effect, Operation, Wire

COMMAND = Operation("capabilities", b"COMMAND", Effect.READ)

# The feature, the command that shows it, and where it arrived.
FEATURES = {
    "getdel": (b"GETDEL", "Redis 6.2"),
    "autoclaim": (b"XAUTOCLAIM", "Redis 6.2"),
    "functions": (b"FCALL", "Redis 7.0"),
    "sharded pub/sub": (b"SPUBLISH", "Redis 7.0"),
    "expire time": (b"PEXPIRETIME", "Redis 7.0"),
    "field expiry": (b"HPEXPIRE", "Redis 7.4 or Valkey 9"),
    "field get and delete": (b"HGETDEL", "Redis 8.0"),
    "set many with expiry": (b"MSETEX", "Redis 8.4 or Valkey 9.1"),
}


class Server(NamedTuple):
    """A server as it describes itself."""

    product: str
    version: str
    mode: str
    features: frozenset[str]
    role: str = ""

    @explained
    def can(self, feature: str) -> bool:
        """Return whether the server has a feature."""
        return feature in self.features

    @explained
    def require(self, feature: str) -> None:
        """Raise CapabilityError if the feature is missing."""
        if feature not in self.features:
            raise CapabilityError(feature, f"{self.product} {self.version}", FEATURES[feature][1])


def probe_call() -> Batch:
    """Return a call that asks for INFO and for each feature's command, in one batch."""
    commands = [verb for verb, _ in FEATURES.values()]
    return Batch(
        [Wire((b"INFO",), b"", INFO, None), Wire((b"COMMAND", b"INFO", *commands), b"", COMMAND, None)]
    )


@reading_a_reply("INFO")
def read_probe(answers: Any) -> Server:
    if isinstance(answers, KeywrightError):
        raise answers
    info, commands = answers
    if isinstance(info, KeywrightError):
        # A user who may not run INFO still gets a working database, of unknown make.
        if not isinstance(info, ServerRefusedError) or not info.reply.startswith("NOPERM"):
            raise info
        facts: dict[str, str] = {}
    else:
        facts = info_fields(info)
    known = [] if isinstance(commands, KeywrightError) else commands
    features = {name for name, entry in zip(FEATURES, known, strict=False) if entry}
    mode = facts.get("redis_mode") or facts.get("server_mode", "standalone")  # Valkey has the second only
    return Server(*product_of(facts), mode, frozenset(features), facts.get("role", ""))


def product_of(facts: Mapping[str, str]) -> tuple[str, str]:
    """Return the name and the version of the server that gave these fields of INFO."""
    if "valkey_version" in facts:  # its redis_version is that of the Redis it is compatible with
        return "Valkey", facts["valkey_version"]
    return "Redis", facts.get("redis_version", "unknown")
