"""A sample value of a structured type, so that the proof has something to round-trip."""

from __future__ import annotations

from typing import Any

import msgspec
from msgspec import inspect

__all__ = ["samples_of"]

_DEEPEST = 5

_LEAVES: dict[type[inspect.Type], Any] = {
    inspect.AnyType: {"null": None, "list": [], "big": 2**53 + 1},
    inspect.NoneType: None,
    inspect.BoolType: True,
    inspect.IntType: 7,
    inspect.FloatType: 0.5,
    inspect.StrType: "naïve ☕",
    inspect.BytesType: "AP8=",
    inspect.DateTimeType: "2019-08-08T17:30:00.000001Z",
    inspect.DateType: "2019-08-08",
    inspect.TimeType: "17:30:00",
    inspect.TimeDeltaType: "PT90S",
    inspect.UUIDType: "3fa85f64-5717-4562-b3fc-2c963f66afa6",
    inspect.DecimalType: "1.10",
}


class _NoSample(Exception):  # noqa: N818 - an answer, not a fault
    """No sample can be built simply for this type."""


def samples_of(hint: Any) -> tuple[Any, ...]:
    """Return one value of the type, or none where constraints or custom types make that a guess.

    A sample is only worth proving if it is a valid value, so it is built through msgspec's own validation.
    """
    try:
        return (msgspec.convert(_plain(inspect.type_info(hint), 0), hint),)
    except (_NoSample, msgspec.MsgspecError, TypeError, ValueError):
        return ()


def _plain(kind: inspect.Type, depth: int) -> Any:
    """Return the sample as plain JSON data."""
    if depth > _DEEPEST:
        raise _NoSample
    if type(kind) in _LEAVES:
        return _LEAVES[type(kind)]
    if isinstance(kind, inspect.Metadata):
        return _plain(kind.type, depth)
    if isinstance(kind, inspect.LiteralType):
        return kind.values[0]
    if isinstance(kind, inspect.EnumType):
        return next(iter(kind.cls)).value
    if isinstance(kind, inspect.UnionType):
        return _plain(_simplest(kind.types), depth)
    if isinstance(kind, inspect.DictType):
        return {_plain(kind.key_type, depth + 1): _plain(kind.value_type, depth + 1)}
    if isinstance(kind, inspect.TupleType):
        return [_plain(item, depth + 1) for item in kind.item_types]
    if isinstance(kind, (inspect.ListType, inspect.VarTupleType, inspect.SetType, inspect.FrozenSetType)):
        return [_plain(kind.item_type, depth + 1)]
    if isinstance(kind, (inspect.StructType, inspect.DataclassType, inspect.TypedDictType)):
        return _plain_fields(kind, depth)
    if isinstance(kind, inspect.NamedTupleType):
        return [_plain(field.type, depth + 1) for field in kind.fields]
    raise _NoSample


def _plain_fields(
    kind: inspect.StructType | inspect.DataclassType | inspect.TypedDictType, depth: int
) -> Any:
    if isinstance(kind, inspect.StructType) and kind.array_like:
        raise _NoSample
    # Optional fields are left out below the top: that is where recursive types end.
    wanted = [field for field in kind.fields if field.required or depth == 0]
    plain = {field.encode_name: _plain(field.type, depth + 1) for field in wanted}
    if isinstance(kind, inspect.StructType) and kind.tag_field is not None:
        plain[kind.tag_field] = kind.tag
    return plain


def _simplest(arms: tuple[inspect.Type, ...]) -> inspect.Type:
    return next((arm for arm in arms if isinstance(arm, inspect.NoneType)), arms[0])
