"""A value that does not show itself."""

from __future__ import annotations

import hmac
from typing import Generic, NoReturn, TypeVar

__all__ = ["Secret"]

T = TypeVar("T")

_SHOWN = "Secret(…)"


class Secret(Generic[T]):
    """Holds a token, a password; `reveal()` is the only way to it.

    Printing, formatting and logging show `Secret(…)`; json, msgspec and pickle refuse it.
    """

    __slots__ = ("_hidden",)
    _hidden: T

    def __init__(self, value: T) -> None:
        object.__setattr__(self, "_hidden", value)

    def reveal(self) -> T:
        """Return the value."""
        return self._hidden

    def __repr__(self) -> str:
        return _SHOWN

    def __format__(self, spec: str) -> str:
        return format(_SHOWN, spec)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Secret):
            return NotImplemented
        mine, theirs = _comparable(self._hidden), _comparable(other._hidden)
        if isinstance(mine, bytes) and isinstance(theirs, bytes):
            return type(self._hidden) is type(other._hidden) and hmac.compare_digest(mine, theirs)
        return bool(mine == theirs)

    def __hash__(self) -> int:
        return hash((Secret, self._hidden))

    def __copy__(self) -> Secret[T]:
        return self

    def __deepcopy__(self, memo: object) -> Secret[T]:
        return self

    def __setattr__(self, name: str, value: object) -> NoReturn:
        raise AttributeError("a Secret does not change; make another")

    def __delattr__(self, name: str) -> NoReturn:
        raise AttributeError("a Secret does not change; make another")

    def __reduce_ex__(self, protocol: object) -> NoReturn:
        raise TypeError("a Secret is not pickled; reveal() it where it must travel")


def _comparable(hidden: object) -> object:
    """compare_digest takes only ASCII strings, so text is compared as bytes."""
    return hidden.encode("utf-8", "surrogatepass") if isinstance(hidden, str) else hidden
