"""One step of a plan, as it is kept in a file."""

from __future__ import annotations

import msgspec

__all__ = ["Step"]


class Step(msgspec.Struct, frozen=True, omit_defaults=True):
    """One repair: an action on a key, and the finding that it is based on.

    `seen` is the fingerprint of the key's content, for steps that remove it: a key that changed is left.
    A step that an invariant decides has the invariant's name as `link`, and describes its effect in `does`;
    it `removes` if data is lost, and is `contested` if another step contradicts it.
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
        return self.removes or self.action in ("remove-key", "remove-entry", "settle")
