"""Sample values of a type, so that the proof has something to round-trip."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import msgspec
from msgspec import inspect

from keywright.keyspace.codecs.models import is_model, loaded

__all__ = ["samples_of"]

_DEEPEST = 5
_MOST = 4

_LEAVES: dict[type[inspect.Type], tuple[Any, ...]] = {
    inspect.AnyType: ({"null": None, "list": [], "big": 2**53 + 1},),
    inspect.NoneType: (None,),
    inspect.BoolType: (True, False),
    inspect.IntType: (7, 0, 2**53 + 1, -1),
    inspect.FloatType: (0.5, 0.0, -1e300),
    inspect.StrType: ("naïve ☕", "", "a"),
    inspect.BytesType: ("AP8=", ""),
    inspect.ByteArrayType: ("AP8=", ""),
    inspect.DateTimeType: ("2019-08-08T17:30:00.000001Z",),
    inspect.DateType: ("2019-08-08",),
    inspect.TimeType: ("17:30:00",),
    inspect.TimeDeltaType: ("PT90S",),
    inspect.UUIDType: ("3fa85f64-5717-4562-b3fc-2c963f66afa6",),
    inspect.DecimalType: ("1.10",),
}


class _NoSample(Exception):  # noqa: N818 - an answer, not a fault
    """No sample can be built simply for this type."""


def samples_of(hint: Any) -> tuple[Any, ...]:
    """Return a few values of the type that differ in their leaves and in the arms of their unions.

    A sample is only worth proving if it is a valid value, so it is built through the validation of msgspec,
    or of Pydantic. There are none where constraints make a value a guess.
    """
    try:
        described = inspect.type_info(hint)
    except (TypeError, ValueError):
        return ()
    samples: list[Any] = []
    for turn in range(_MOST):
        try:
            sample = msgspec.convert(_plain(described, 0, turn), hint, dec_hook=loaded)
        except (_NoSample, msgspec.MsgspecError, TypeError, ValueError):
            continue
        if sample not in samples:
            samples.append(sample)
    return tuple(samples)


def _plain(kind: inspect.Type, depth: int, turn: int) -> Any:
    """Return a sample as plain JSON data; each turn chooses other leaves and arms."""
    if depth > _DEEPEST:
        raise _NoSample
    if type(kind) in _LEAVES:
        return _fitting(kind, _LEAVES[type(kind)], turn)
    if isinstance(kind, inspect.Metadata):
        return _plain(kind.type, depth, turn)
    if isinstance(kind, inspect.LiteralType):
        return kind.values[turn % len(kind.values)]
    if isinstance(kind, inspect.EnumType):
        members = list(kind.cls)
        return members[turn % len(members)].value
    if isinstance(kind, inspect.UnionType):
        return _plain(_arm(kind.types, depth, turn), depth, turn)
    if isinstance(kind, inspect.DictType):
        return {_plain(kind.key_type, depth + 1, turn): _plain(kind.value_type, depth + 1, turn)}
    if isinstance(kind, inspect.TupleType):
        return [_plain(item, depth + 1, turn) for item in kind.item_types]
    if isinstance(kind, (inspect.ListType, inspect.VarTupleType, inspect.SetType, inspect.FrozenSetType)):
        return [_plain(kind.item_type, depth + 1, turn)] * max(1, kind.min_length or 0)
    if isinstance(kind, (inspect.StructType, inspect.DataclassType, inspect.TypedDictType)):
        return _plain_fields(kind, depth, turn)
    if isinstance(kind, inspect.NamedTupleType):
        return [_plain(field.type, depth + 1, turn) for field in kind.fields]
    if isinstance(kind, inspect.CustomType) and kind.cls is object:
        return _LEAVES[inspect.AnyType][0]
    if isinstance(kind, inspect.CustomType) and is_model(kind.cls):
        return _plain_model(kind.cls, depth, turn)
    raise _NoSample


def _plain_fields(
    kind: inspect.StructType | inspect.DataclassType | inspect.TypedDictType, depth: int, turn: int
) -> Any:
    if isinstance(kind, inspect.StructType) and kind.array_like:
        plain = [_plain(field.type, depth + 1, turn) for field in kind.fields]
        return plain if kind.tag is None else [kind.tag, *plain]
    # Optional fields are left out below the top: that is where recursive types end.
    wanted = [field for field in kind.fields if field.required or depth == 0]
    named = {field.encode_name: _plain(field.type, depth + 1, turn) for field in wanted}
    if isinstance(kind, inspect.StructType) and kind.tag_field is not None:
        named[kind.tag_field] = kind.tag
    return named


def _plain_model(model: Any, depth: int, turn: int) -> dict[str, Any]:
    wanted = {n: f for n, f in model.model_fields.items() if f.is_required() or depth == 0}
    return {
        field.validation_alias if isinstance(field.validation_alias, str) else name: _plain(
            inspect.type_info(field.annotation), depth + 1, turn
        )
        for name, field in wanted.items()
    }


def _arm(arms: tuple[inspect.Type, ...], depth: int, turn: int) -> inspect.Type:
    """Return an arm of a union; None at first and deep down, where recursive types end."""
    simplest = sorted(arms, key=lambda arm: not isinstance(arm, inspect.NoneType))
    optional = isinstance(simplest[0], inspect.NoneType)
    return simplest[0 if optional and depth > 1 else turn % len(simplest)]


def _fitting(kind: inspect.Type, leaves: tuple[Any, ...], turn: int) -> Any:
    """Return a leaf, or one that satisfies the bounds of its type."""
    if isinstance(kind, inspect.IntType | inspect.FloatType):
        candidates: Iterator[Any] = iter((*_turned(leaves, turn), *_near(kind)))
        return next(filter(lambda number: _within(kind, number), candidates), leaves[0])
    if isinstance(kind, inspect.StrType) and (kind.min_length or kind.max_length is not None):
        return (_turned(leaves, turn)[0] + "x" * (kind.min_length or 0))[: kind.max_length]
    return leaves[turn % len(leaves)]


def _turned(leaves: tuple[Any, ...], turn: int) -> tuple[Any, ...]:
    start = turn % len(leaves)
    return leaves[start:] + leaves[:start]


def _near(kind: inspect.IntType | inspect.FloatType) -> list[Any]:
    step = kind.multiple_of or 1
    ends = [end for end in (kind.ge, kind.le, kind.gt, kind.lt) if end is not None]
    between = [sum(ends) / 2] if isinstance(kind, inspect.FloatType) and len(ends) == 2 else []
    return between + [n for end in ends for n in (end, end + step, end - step, end - end % step + step)]


def _within(kind: inspect.IntType | inspect.FloatType, number: Any) -> bool:
    return (
        (kind.ge is None or number >= kind.ge)
        and (kind.gt is None or number > kind.gt)
        and (kind.le is None or number <= kind.le)
        and (kind.lt is None or number < kind.lt)
        and (kind.multiple_of is None or number % kind.multiple_of == 0)
    )
