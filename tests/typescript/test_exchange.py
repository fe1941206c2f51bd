"""Python writes generated keys and values, TypeScript reads them and writes what it read: the same bytes.

`--at-length` exchanges 10,000 keys of each model with each client.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Iterable, Sequence
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
import redis

from keywright import Call, Database, Key, Point, Record, connect, gather
from keywright.tools.generators.typescript import typescript
from keywright.tools.model import Model
from keywright.tools.schema import KeySchema, ShapeSchema, schema_of
from typescript_project import NodeProject, models
from typescript_samples import Samples

AT_LENGTH = 10_000
USUALLY = 1_000
TOGETHER = 500
COPY = b"copy:"

NAMES_ONLY = {
    "drc": set(),
    "meetup": {"UserTokens", "Csrf", "AccessToken", "RefreshToken"},
    "openmod": {"ExtractHash"},
    "registry": {"CachedRepository", "SizeWithDescendants", "RepositoryLsn"},
    "spectacles": set(),
    "spectacles-streams": set(),
    "every_kind": {"Articles", "Prices", "Weights", "Customers", "Stock", "Bloom"},
}
"""The keys that are sealed, have a codec of Python only, or may be in an older version."""
NOT_COPIED = {"hyperloglog", "json"}
"""Kinds whose content cannot be read back, or needs a server with the JSON type."""


@pytest.mark.parametrize("client", ["ioredis", "node-redis"])
@pytest.mark.parametrize("model", models().values(), ids=lambda model: model.name)
def test_both_languages_write_the_same_bytes(
    project: NodeProject,
    model: Model,
    client: str,
    tcp_url: str,
    tmp_path: Path,
    request: pytest.FixtureRequest,
) -> None:
    count = AT_LENGTH if request.config.getoption("--at-length") else USUALLY
    schema = schema_of(model)
    left_out = _left_out(typescript(schema))
    samples = Samples(schema, seed=20261118)
    kinds = [
        (space, kind, described)
        for space, known in zip(model.spaces, schema.keyspaces, strict=True)
        for kind, described in zip(space, known.keys, strict=True)
        if kind.__name__ not in left_out
    ]
    made = _keys(samples, [(kind, described) for _, kind, described in kinds], count)
    names = {name: [base64.b64encode(each).decode() for each in keys] for name, keys in made.items()}
    written: list[tuple[bytes, Key]] = []
    with connect(tcp_url, *(space.bind(database=0) for space in model.spaces)) as db:
        for _, kind, described in kinds:
            if kind.__name__ not in NAMES_ONLY[model.name] and kind.kind not in NOT_COPIED:
                keys = list(made[kind.__name__].values())
                _run(db, [_write(samples, key, described) for key in keys])
                written += [(db.context.name(key), key) for key in keys]
    file = tmp_path / "names.json"
    file.write_text(json.dumps(names))
    module = f"./{model.name.replace('-', '_')}.js"

    report = project.run("exchange", client, tcp_url, module, str(file))

    assert report == {"parsed": sum(map(len, names.values())), "written": len(written)}
    server = redis.Redis.from_url(tcp_url)
    for part in _parts(written):
        theirs = _contents(server, [(COPY + name, key) for name, key in part])
        ours = _contents(server, part)
        for (name, key), mine, copy in zip(part, ours, theirs, strict=True):
            _check_expiry(key, server.pttl(COPY + name))
            assert mine == copy, (name, key)
            assert mine not in (None, {}, [], set()), (name, key)


@pytest.mark.parametrize("model", models().values(), ids=lambda model: model.name)
def test_only_keys_that_cannot_be_shared_are_names_only(model: Model) -> None:
    text = typescript(schema_of(model))

    refused = {
        name
        for space in model.spaces
        for name in (k.__name__ for k in space)
        if f"{name} = kw.namesOnly(" in text
    }

    assert refused == NAMES_ONLY[model.name]


def _left_out(text: str) -> set[str]:
    return {line.split()[1] for line in text.splitlines() if line.startswith("// ") and "is left out" in line}


def _keys(
    samples: Samples, kinds: Sequence[tuple[type[Key], KeySchema]], count: int
) -> dict[str, dict[bytes, Key]]:
    """Return different keys by their names, at least so many of all classes together."""
    found: dict[str, dict[bytes, Key]] = {kind.__name__: {} for kind, _ in kinds}
    while sum(map(len, found.values())) < count:
        for kind, schema in kinds:
            for _ in range(20 if schema.template.variables else 1):
                key = samples.key(kind, schema)
                found[kind.__name__][bytes(key)] = key
    return found


def _parts(items: Sequence[Any]) -> Iterable[Any]:
    return (items[start : start + TOGETHER] for start in range(0, len(items), TOGETHER))


def _run(db: Database, calls: Iterable[Call[Any]]) -> None:
    for part in _parts(list(calls)):
        db.run(gather(*part))


def _write(samples: Samples, key: Any, schema: KeySchema) -> Any:
    codecs = type(key).declaration.codecs

    def value() -> Any:
        assert schema.value is not None
        return samples.value(schema.value, codecs[-1])

    match schema.kind:
        case "value":
            return key.set(value(), expiry=None)
        case "counter":
            return key.set(value())
        case "set":
            return key.add(value(), value())
        case "list":
            return key.push(value(), value(), value())
        case "map":
            assert schema.field is not None
            return key.put_many({samples.value(schema.field, codecs[0]): value() for _ in range(3)})
        case "sorted set" | "due queue":
            return key.add_many({value(): _score(samples, schema) for _ in range(3)})
        case "record":
            return key.put(_members(samples, key._own_fields(), _own(key, schema.shapes)))
        case "stream":
            return key.add(_members(samples, _first(type(key)._fields), schema.shapes[0]))
        case "lease":
            return key.acquire("token:ü", timedelta(hours=1))
        case "claim":
            return key.done()
        case "bit fields":
            return key.update(happy=7, shift=-3)
        case "bitmap":
            return key.set_many({1: True, 9: True, 63: True})
        case "geo":
            return key.add(value(), Point(2.35, 48.86))
    raise AssertionError(schema.kind)


def _score(samples: Samples, schema: KeySchema) -> Any:
    assert schema.score is not None
    match schema.score.score:
        case "int":
            return samples._integer(signed=True) % 2**53
        case "float":
            return samples.number()
        case "duration":
            return timedelta(microseconds=samples._integer(signed=True) % 10**12)
    return samples.moment()


def _check_expiry(key: Key, ttl_ms: int) -> None:
    """Fail unless a copy has the expiry that its class declares."""
    expiry = type(key).declaration.expiry
    if key.kind == "lease" or (expiry is not None and expiry.longest_ms is None and not expiry.optional):
        assert 0 < ttl_ms <= 60_000, key
    elif expiry is None or expiry.optional:
        assert ttl_ms == -1, key
    else:
        assert expiry.longest_ms is not None
        assert 0 < ttl_ms <= expiry.longest_ms, key


def _own(key: Key, shapes: Sequence[ShapeSchema]) -> ShapeSchema:
    """Return the schema of the shape that a key has by its name."""
    for shape in shapes:
        when = shape.when
        if when is None or when.variable is None:
            continue
        if str(getattr(key, when.variable)).startswith(when.prefix or ""):
            return shape
    return shapes[0]


def _first(fields: Any) -> Any:
    return getattr(fields, "shapes", [fields])[0]


def _members(samples: Samples, fields: Any, schema: ShapeSchema) -> Any:
    """Return a value of a shape, made from stored members."""
    shape = _first(fields)
    stored = {}
    for member, described in zip(shape.members, schema.members, strict=True):
        value = samples.member(described, member.codec)
        if not isinstance(value, type(Record)) and repr(value) != "UNSET":
            stored[member.stored] = member.codec.encode(value)
    if not stored:
        member = shape.members[0]
        stored[member.stored] = member.codec.encode(samples.value(schema.members[0].codec, member.codec))
    return shape.read(stored)


def _contents(server: redis.Redis, named: Sequence[tuple[bytes, Key]]) -> list[Any]:
    """Return the content of keys as the server has it, without the order of sets and hashes."""
    pipeline = server.pipeline(transaction=False)
    for name, key in named:
        match type(key).redis_type:
            case "string":
                pipeline.get(name)
            case "hash":
                pipeline.hgetall(name)
            case "set":
                pipeline.smembers(name)
            case "zset":
                pipeline.zrange(name, 0, -1, withscores=True)
            case "list":
                pipeline.lrange(name, 0, -1)
            case "stream":
                pipeline.xrange(name)
    return pipeline.execute()
