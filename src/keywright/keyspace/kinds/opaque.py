"""Opaque: a key whose content no tool reads, such as one of a module's type."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any, ClassVar, Unpack

from keywright.errors import DeclarationError
from keywright.keyspace.codecs import Codec
from keywright.keyspace.key import Key, KeyOptions


class Opaque(Key):
    """A key of a type that Keywright does not read. `redis_type=` is its name as TYPE prints it.

    The commands of the type are those of its module. Names, type, expiry and memory are checked and shown;
    the key can be deleted, renamed, dumped and restored.
    """

    kind: ClassVar[str] = "opaque"

    def __init_subclass__(cls, *, redis_type: str | None = None, **options: Unpack[KeyOptions]) -> None:
        if redis_type is not None:
            if not isinstance(redis_type, str) or not re.fullmatch(r"[!-~]{1,64}", redis_type):
                raise DeclarationError(
                    cls.__name__,
                    f"{redis_type!r} is not the name of a type",
                    "Write what TYPE prints, such as 'ReJSON-RL'.",
                )
            cls.redis_type = redis_type
        if "key" in options and cls.redis_type == "none":
            raise DeclarationError(
                cls.__name__,
                "does not say its type",
                "Add redis_type= with what TYPE prints, as 'ReJSON-RL'.",
            )
        super().__init_subclass__(**options)

    @classmethod
    def _declare(cls) -> Iterable[Codec[Any]]:
        return ()
