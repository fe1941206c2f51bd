"""One step of a plan, as it is kept in a file."""

from __future__ import annotations

import msgspec

__all__ = ["Step"]


class Step(msgspec.Struct, frozen=True, omit_defaults=True):
    """One repair: what to do to which key, and what it rests on.

    `seen` is the fingerprint of what the key held, for steps that remove it: a key that changed is left.
    A step that an invariant decides has the invariant's name as `link`, and says what it `does`; it
    `removes` where something is lost, and is `contested` where another step contradicts it.
    """

    action: str
    code: str
    template: str
    name: bytes
    reason: str
    member: bytes | None = None
    other: bytes | None = None
    field: bytes | None = None
    link: str = ""
    seen: str = ""
    does: str = ""
    removes: bool = False
    contested: bool = False

    @property
    def loses_data(self) -> bool:
        return self.removes or self.action in ("remove-key", "remove-entry")
