"""Keyspaces from a schema.

The result has the same schema, the same names, and the same bytes for the same values. What is code does not
come back: codecs and alphabets of the program pass bytes and texts on, functions refuse to be called, and
invariants have no check.
"""

from __future__ import annotations

import types as python_types
from collections.abc import Callable, Iterator
from datetime import datetime, timedelta
from typing import Annotated, Any, Union

from keywright.errors import KeywrightError, UsageError
from keywright.keyspace import Key, Keyspace, kinds
from keywright.keyspace.alphabets import Derived
from keywright.keyspace.channel import Channel
from keywright.keyspace.codecs import Codec, Duration, EpochFloat, EpochMs, EpochSeconds
from keywright.keyspace.expiry import Expiry
from keywright.keyspace.invariants import invariant
from keywright.keyspace.kinds.bitmap import Bitmap
from keywright.keyspace.references import refers
from keywright.keyspace.relations import Link, index, many_to_many, many_to_one, one_to_one
from keywright.keyspace.versions.upgrades import Recoding, Upgrade
from keywright.tools.schema.document import (
    ChannelSchema,
    CodecSchema,
    ComputedSchema,
    ExpirySchema,
    KeySchema,
    KeyspaceSchema,
    RelationSchema,
    Schema,
    ScoreSchema,
    TemplateSchema,
    UpgradeSchema,
)
from keywright.tools.schema.restorer.alphabets import restored_alphabet
from keywright.tools.schema.restorer.codecs import restored_codec
from keywright.tools.schema.restorer.former import former_key
from keywright.tools.schema.restorer.shapes import attributes_of, restored_shape
from keywright.tools.schema.restorer.types import Types
from keywright.tools.schema.stand_ins import function

__all__ = ["keyspaces_from_schema"]

_KINDS: dict[str, Any] = {
    kind.kind: kind
    for kind in (
        kinds.BitFields,
        kinds.Bitmap,
        kinds.Claim,
        kinds.Counter,
        kinds.DueQueue,
        kinds.Geo,
        kinds.HyperLogLog,
        kinds.JsonDocument,
        kinds.Lease,
        kinds.List,
        kinds.Map,
        kinds.Opaque,
        kinds.Record,
        kinds.Set,
        kinds.SortedSet,
        kinds.Stream,
        kinds.Value,
    )
}
_SCORES: dict[str, Any] = {
    "float": float,
    "int": int,
    "epoch-ms": Annotated[datetime, EpochMs],
    "epoch-seconds": Annotated[datetime, EpochSeconds],
    "epoch-float": Annotated[datetime, EpochFloat],
}
_Known = dict[tuple[str, str], type[Key]]


def keyspaces_from_schema(schema: Schema) -> tuple[Keyspace, ...]:
    """Return the keyspaces of a schema. Raise UsageError if a declaration in it is not possible."""
    types = Types(schema.definitions)
    spaces: dict[str, Keyspace] = {}
    known: _Known = {}
    try:
        for each in schema.keyspaces:
            spaces[each.name] = space = Keyspace(
                each.name, each.doc, prefix=each.prefix, version=each.version, database=each.database
            )
            for key in each.keys:
                known[each.name, key.name] = _Restored(key, space, each, types, known).key()
            for channel in each.channels:
                _channel(channel, space, types)
        for each in schema.keyspaces:
            space = spaces[each.name]
            space.replaced_by = spaces.get(each.replaced_by or "")
            _rules(each, space, known)
    except (KeywrightError, TypeError, ValueError) as error:
        raise UsageError(f"the schema of {schema.model!r} cannot be declared: {error}") from error
    return tuple(spaces.values())


class _Restored:
    """One class of keys on its way from the schema."""

    def __init__(
        self, key: KeySchema, space: Keyspace, schema: KeyspaceSchema, types: Types, known: _Known
    ) -> None:
        self._schema = key
        self._space = space
        self._lead = schema.lead
        self._types = types
        self._known = known

    def key(self) -> type[Key]:
        schema = self._schema
        base, options = self._kind()
        body = {
            "__annotations__": _annotations(schema.template),
            "__doc__": schema.doc or None,
            "__module__": __name__,
            **({"hides": schema.hides} if schema.hides else {}),
        }
        options |= {
            "key": schema.template.source,
            "space": self._space,
            "expiry": _expiry(schema.expiry),
            "moved_from": schema.moved_from,
            "yields_to": tuple(map(self._class, schema.yields_to)),
            "fallback": schema.fallback,
            "open": schema.open,
            **({} if schema.part_of is None else {"part_of": self._class(schema.part_of)}),
        }
        made: type[Key] = python_types.new_class(
            schema.name, (base,), options, lambda namespace: namespace.update(body)
        )
        return made

    def _class(self, name: str) -> type[Key]:
        return _named(self._known, self._space.name, name)

    def _kind(self) -> tuple[Any, dict[str, Any]]:
        """Return the kind with its arguments, and the options that only this kind has."""
        schema = self._schema
        match schema.kind:
            case "value":
                return _KINDS["value"][self._value()], {"upgrades": self._upgrades()}
            case "json":
                codec = self._codec(schema.value)
                return _KINDS["json"][codec.python_type], {}
            case "record":
                return self._record()
            case "stream":
                return _KINDS["stream"][self._union()], {"groups": schema.groups} if schema.groups else {}
            case "bit fields":
                return _KINDS["bit fields"][self._union()], {}
            case "map":
                return _KINDS["map"][self._hint(schema.field), self._value()], {
                    "field_expiry": _expiry(schema.field_expiry)
                }
            case "sorted set":
                return _KINDS["sorted set"][self._value(), _score(schema.score)], {}
            case "bitmap":
                return Bitmap, {} if schema.bits is None else {"bits": schema.bits}
            case "opaque":
                return kinds.Opaque, {"redis_type": schema.redis_type}
        kind = _KINDS.get(schema.kind)
        if kind is None:
            return self._foreign(), {}
        return (kind[self._value()] if getattr(kind, "__parameters__", ()) else kind), {}

    def _record(self) -> tuple[Any, dict[str, Any]]:
        schema = self._schema
        shapes = [restored_shape(shape, self._types) for shape in schema.shapes]
        options: dict[str, Any] = {"upgrades": self._upgrades()}
        expiries = dict(self._field_expiries())
        if expiries:
            options["field_expiry"] = expiries
        variables = [shape.when.variable for shape in schema.shapes if shape.when is not None]
        if any(variables):
            prefixes = [shape.when.prefix for shape in schema.shapes if shape.when is not None]
            options["shape_by"] = (variables[0], dict(zip(prefixes, shapes, strict=True)))
        return _KINDS["record"][Union[tuple(shapes)]], options  # noqa: UP007  # at run time

    def _union(self) -> Any:
        shapes = tuple(restored_shape(shape, self._types) for shape in self._schema.shapes)
        return Union[shapes]  # noqa: UP007  # at run time

    def _field_expiries(self) -> Iterator[tuple[str, Expiry | None]]:
        for shape in self._schema.shapes:
            for member, attribute in zip(shape.members, attributes_of(shape), strict=True):
                if member.expiry is not None:
                    yield attribute, _expiry(member.expiry)
            if shape.others is not None and shape.others.expiry is not None:
                yield shape.others.attribute, _expiry(shape.others.expiry)

    def _foreign(self) -> Any:
        """Return a kind that only the program knows: it can be named, measured and deleted."""
        schema = self._schema
        codecs = [self._codec(each) for each in (schema.field, schema.value) if each is not None]
        body = {
            "kind": schema.kind,
            "redis_type": schema.redis_type,
            "_declare": classmethod(lambda _: codecs),
        }
        return python_types.new_class("ForeignKind", (Key,), {}, lambda namespace: namespace.update(body))

    def _upgrades(self) -> list[Upgrade]:
        return [self._upgrade(each) for each in self._schema.upgrades]

    def _upgrade(self, schema: UpgradeSchema) -> Upgrade:
        recodings = []
        for each in schema.recodings:
            former = self._codec(each.former)
            member = None if each.member is None else each.member.encode()
            recodings.append(Recoding(former, former, member))
        moved_from = None
        if schema.moved:
            moved_from = former_key(schema.moved_from, self._lead, self._space)
        convert = function(ComputedSchema("convert", schema.doc))
        return Upgrade(schema.version, _never, convert, moved_from, tuple(recodings))

    def _codec(self, schema: CodecSchema | None) -> Codec[Any]:
        if schema is None:
            raise UsageError(f"{self._schema.name} is a {self._schema.kind} without a codec.")
        return restored_codec(schema, self._types)

    def _hint(self, schema: CodecSchema | None) -> Any:
        return Annotated[object, self._codec(schema)]

    def _value(self) -> Any:
        return self._hint(self._schema.value)


def _never(_: Any) -> bool:
    return False


def _named(known: _Known, space: str, name: str) -> type[Key]:
    found = known.get((space, name))
    if found is None:
        raise UsageError(f"the schema names {name!r} in {space!r}, where there is no such key before it.")
    return found


def _annotations(template: TemplateSchema) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for variable in template.variables:
        marks: list[Any] = [restored_alphabet(variable.alphabet)]
        if variable.derived_from is not None and variable.derived_by is not None:
            marks.append(Derived(variable.derived_from, function(variable.derived_by, of_a_text=True)))
        hint: Any = Annotated[object, *marks]
        found[variable.name] = hint | None if variable.optional else hint
    return found


def _score(schema: ScoreSchema | None) -> Any:
    if schema is None:
        return float
    hint = _SCORES.get(schema.score)
    if schema.score == "duration":
        codec = Duration("ms" if schema.unit == "ms" else "s")
        return Annotated[timedelta | None if schema.or_never else timedelta, codec]
    if hint is None:
        raise UsageError(f"the schema has a score {schema.score!r}, which is not known.")
    if not schema.or_never:
        return hint
    return Annotated[datetime | None, *getattr(hint, "__metadata__", ())]


def _expiry(schema: ExpirySchema | None) -> Expiry | None:
    if schema is None:
        return None
    moment: datetime | Callable[[Any], Any] | None = None
    if schema.moment is not None:
        moment = datetime.fromisoformat(schema.moment)
    elif schema.computed_from_value is not None:
        moment = function(schema.computed_from_value)
    since: Any = schema.since
    return Expiry(
        schema.ttl_ms,
        jitter=schema.jitter or 0.0,
        since=since,
        moment=moment,
        ttl_of=None if schema.computed_from_key is None else function(schema.computed_from_key),
        optional=schema.optional,
    )


def _channel(schema: ChannelSchema, space: Keyspace, types: Types) -> None:
    message = Annotated[object, restored_codec(schema.message, types)]
    body = {
        "__annotations__": _annotations(schema.template),
        "__doc__": schema.doc or None,
        "__module__": __name__,
    }
    options = {"channel": schema.template.source, "space": space, "sharded": schema.sharded}
    python_types.new_class(
        schema.name, (Channel[message],), options, lambda namespace: namespace.update(body)
    )


def _rules(schema: KeyspaceSchema, space: Keyspace, known: _Known) -> None:
    rules: dict[str, list[Any]] = {}
    for each in schema.relations:
        rules.setdefault(each.name, []).append(_relation(each, schema.name, known))
    for reference in schema.references:
        source = _named(known, schema.name, reference.source)
        elsewhere = reference.target_keyspace or schema.name
        made = refers(
            source,
            _named(known, elsewhere, reference.target),
            function(reference.computed or ComputedSchema("ids")),
            name=reference.name,
            required=reference.required,
        )
        rules.setdefault(f"{reference.name} of {reference.source}", []).append(made)
    for rule in schema.invariants:
        # Two references of a source may have one name; each is settled once.
        settles = [rules[name].pop(0) for name in rule.settles if rules.get(name)]
        keys = [_named(known, schema.name, name) for name in rule.keys]
        invariant(rule.name, rule.doc, keys, settles=settles, note=rule.note)


def _relation(schema: RelationSchema, space: str, known: _Known) -> Link:
    def key(name: str | None) -> Any:
        return None if name is None else _named(known, space, name)

    forward, inverse = key(schema.forward), key(schema.inverse)
    match schema.type:
        case "one-to-one":
            return one_to_one(
                forward,
                inverse=inverse,
                index=key(schema.index),
                inverse_index=key(schema.inverse_index),
            )
        case "many-to-one":
            return many_to_one(forward, inverse=inverse, index=key(schema.index))
        case "many-to-many":
            return many_to_many(forward, inverse=inverse)
        case "index":
            return index(forward, by=inverse)
    raise UsageError(f"the schema has a relation of type {schema.type!r}, which is not known.")
