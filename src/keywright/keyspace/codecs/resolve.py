"""From a type hint to the codec that writes it."""

from __future__ import annotations

import enum
import functools
import sys
import types
import typing
from collections.abc import Callable
from datetime import date, datetime, timedelta
from decimal import Decimal
from typing import Annotated, Any, Literal, NewType, Union, get_args, get_origin, is_typeddict
from uuid import UUID

import msgspec

from keywright.errors import UsageError
from keywright.keyspace.alphabets import Alphabet, Day, PlainDecimal, Uuid
from keywright.keyspace.codecs.choices import Boolean, EnumOf, LiteralOf
from keywright.keyspace.codecs.compression import Compressed
from keywright.keyspace.codecs.confidential import Sealed, SecretOf
from keywright.keyspace.codecs.contract import Codec
from keywright.keyspace.codecs.empty import EmptyAsNone
from keywright.keyspace.codecs.models import has_fields
from keywright.keyspace.codecs.numeric import Float, Int64
from keywright.keyspace.codecs.secret import Secret
from keywright.keyspace.codecs.structured import Json, MessagePack, unwritable
from keywright.keyspace.codecs.text import IdOf, Raw, Text
from keywright.keyspace.codecs.times import Duration, Rfc3339

__all__ = ["codec_of", "without_none"]

_SCALARS: dict[object, type[Codec[Any]]] = {
    str: Text,
    int: Int64,
    bool: Boolean,
    float: Float,
    bytes: Raw,
    datetime: Rfc3339,
    timedelta: Duration,
}
_WRITTEN_AS_IN_NAMES: dict[object, Alphabet[Any]] = {UUID: Uuid(), date: Day(), Decimal: PlainDecimal()}
_CONTAINERS = (dict, list, tuple)
_AROUND_A_CODEC = (SecretOf, Sealed, Compressed, EmptyAsNone)
_AROUND_A_TYPE = (Json, MessagePack, EnumOf)


def codec_of(hint: Any) -> Codec[Any]:
    """Return the codec of a type hint. Raise TypeError if it has none.

    In `Annotated` a codec, a codec class or a partial of one says how to write the type, and an alphabet says
    that it is an id. Several codecs apply from left to right, each around the one before:
    `Annotated[Order, MessagePack, Zstd, Sealed]` is packed, then compressed, then sealed.
    """
    origin = get_origin(hint)
    if origin is Annotated:
        return _annotated(hint.__origin__, hint.__metadata__)
    if origin is Secret:
        return SecretOf(codec_of(get_args(hint)[0]))
    if origin is Literal:
        return LiteralOf(*get_args(hint))
    if isinstance(hint, NewType):
        return codec_of(hint.__supertype__)
    if sys.version_info >= (3, 12) and isinstance(hint, typing.TypeAliasType):
        return codec_of(hint.__value__)
    if hint in _SCALARS:
        return _SCALARS[hint]()
    if hint in _WRITTEN_AS_IN_NAMES:
        return IdOf(_WRITTEN_AS_IN_NAMES[hint])
    if isinstance(hint, type) and issubclass(hint, enum.Enum):
        return EnumOf(hint)
    if _is_structured(hint):
        return Json(hint)
    raise TypeError(_no_codec(hint))


def _annotated(hint: Any, metadata: tuple[object, ...]) -> Codec[Any]:
    for mark in metadata:
        _refuse_misplaced(mark, hint)
    alphabets = [mark for mark in metadata if isinstance(mark, Alphabet)]
    markers = [mark for mark in metadata if isinstance(mark, Codec) or _codec_class(mark)]
    if EmptyAsNone in markers:
        hint = without_none(hint)
    if markers and not _goes_around(markers[0]):
        # A codec says how the value is written; an alphabet next to it is for key names.
        codec = _first(markers.pop(0), hint)
    elif alphabets:
        codec = _first(IdOf(alphabets[-1]), hint)
    else:
        codec = codec_of(hint)
    for marker in markers:
        codec = _around(marker, codec)
    return codec


def without_none(hint: Any) -> Any:
    """Return a hint without its arm None."""
    arms = get_args(hint) if get_origin(hint) in (Union, types.UnionType) else (hint,)
    rest = tuple(arm for arm in arms if arm is not type(None))
    if len(rest) == len(arms):
        return hint
    return rest[0] if len(rest) == 1 else Union[rest]  # noqa: UP007  # built at run time


def _refuse_misplaced(mark: object, hint: Any) -> None:
    if isinstance(mark, msgspec.Meta):
        raise TypeError(f"msgspec.Meta on {_shown(hint)} would not be checked: put it on a field of a Struct")
    if isinstance(mark, type) and issubclass(mark, Alphabet):
        raise TypeError(f"{mark.__name__} is a class. Write {mark.__name__}() inside Annotated")


def _first(marker: Any, hint: Any) -> Codec[Any]:
    if get_origin(hint) is Secret:
        return _secretive(_first(marker, get_args(hint)[0]))
    if isinstance(marker, Codec):
        return marker
    made = _codec_class(marker)
    make: Callable[..., Codec[Any]] = marker
    return make(hint) if made is not None and issubclass(made, _AROUND_A_TYPE) else make()


def _secretive(codec: Codec[Any]) -> Codec[Any]:
    return codec if get_origin(codec.python_type) is Secret else SecretOf(codec)


def _around(marker: Any, inner: Codec[Any]) -> Codec[Any]:
    if not _goes_around(marker):
        raise TypeError(
            f"{_shown(marker)} cannot be applied to what {inner!r} writes. "
            f"Put it first; only SecretOf, Sealed, EmptyAsNone and compressions go around another codec."
        )
    make: Callable[[Codec[Any]], Codec[Any]] = marker
    return make(inner)


def _goes_around(marker: object) -> bool:
    made = _codec_class(marker)
    return made is not None and issubclass(made, _AROUND_A_CODEC)


def _codec_class(marker: object) -> type[Codec[Any]] | None:
    made = marker.func if isinstance(marker, functools.partial) else marker
    return made if isinstance(made, type) and issubclass(made, Codec) else None


def _is_structured(hint: Any) -> bool:
    if hint is Any or hint is object or is_typeddict(hint):
        return True
    origin = get_origin(hint) or hint
    if origin in (Union, types.UnionType):
        return all(arm is type(None) or _is_structured(arm) for arm in get_args(hint))
    if not isinstance(origin, type):
        return False
    return issubclass(origin, _CONTAINERS) or has_fields(origin)


def _no_codec(hint: Any) -> str:
    if type(None) in get_args(hint):
        return f"{_shown(hint)} has no codec: leave None out, a missing key or member already reads as None"
    try:
        Json(hint)
    except (TypeError, UsageError):
        return unwritable(hint, "JSON")
    return (
        f"{_shown(hint)} has no codec of its own. Say how to write it, "
        f"for instance Annotated[{_shown(hint)}, Json], or with a Codec of yours"
    )


def _shown(hint: Any) -> str:
    return hint.__name__ if isinstance(hint, type) and not get_args(hint) else str(hint)
