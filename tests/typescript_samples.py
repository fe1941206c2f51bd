"""Random keys and values of declared classes, by the schema: what two languages exchange in the tests."""

from __future__ import annotations

import string
import struct
from collections.abc import Callable
from datetime import UTC, date, datetime, timedelta
from importlib import import_module
from random import Random
from typing import Any

import msgspec

from keywright import Key
from keywright.errors import UsageError
from keywright.keyspace.codecs import Codec, CodecError
from keywright.tools.schema.document import AlphabetSchema, CodecSchema, KeySchema, MemberSchema, Schema

__all__ = ["Samples"]

# The parser of regular expressions of the standard library, which has no types.
tokens: Any = import_module("re._constants")
parser: Any = import_module("re._parser")

_ATTEMPTS = 200
_LETTERS = string.ascii_letters + ' äß日本👍\u2028\x00"\\/'


class Samples:
    """A source of random keys and values, the same for the same seed."""

    def __init__(self, schema: Schema, seed: int) -> None:
        self._definitions = schema.definitions
        self._random = Random(seed)

    def key(self, kind: type[Key], schema: KeySchema) -> Key:
        """Return a random key of a class."""
        for _ in range(_ATTEMPTS):
            values = {
                each.name: None
                if each.optional and self._random.random() < 0.5
                else self._id(each.alphabet, kind.declaration.template.alphabets[each.name])
                for each in schema.template.variables
            }
            try:
                return kind(**values)
            except (ValueError, TypeError, UsageError):
                continue  # a name of another class, or half of an optional segment
        raise AssertionError(f"no key of {kind.__name__} was found")

    def value(self, schema: CodecSchema, codec: Codec[Any]) -> Any:
        """Return a random value that a codec writes."""
        for _ in range(_ATTEMPTS):
            try:
                value = codec.decode(self._stored(schema, codec))
                codec.encode(value)
            except (CodecError, UnicodeError):
                continue
            return value
        raise AssertionError(f"no value of {codec!r} was found")

    def member(self, schema: MemberSchema, codec: Codec[Any]) -> Any:
        """Return a random value of a member, or UNSET to leave it out."""
        if not schema.required and self._random.random() < 0.3:
            return msgspec.UNSET
        return self.value(schema.codec, codec)

    def moment(self) -> datetime:
        base = datetime(1970, 1, 1, tzinfo=UTC)
        return base + timedelta(microseconds=self._random.randrange(-(2 * 10**15), 10**16))

    def number(self) -> float:
        choices: list[Callable[[], float]] = [
            lambda: float(self._random.randrange(-1000, 1000)),
            lambda: self._random.uniform(-1, 1),
            lambda: self._random.choice(
                [1e16, 1e15, 1e-5, 1e-4, 5e-324, 1e22, -0.0, 0.1, 123456789012345680.0]
            ),
            lambda: struct.unpack("<d", struct.pack("<Q", self._random.getrandbits(64)))[0],
        ]
        while True:
            found: float = self._random.choice(choices)()
            if found == found and abs(found) != float("inf"):
                return found

    def _id(self, schema: AlphabetSchema, alphabet: Any) -> Any:
        for _ in range(_ATTEMPTS):
            text = self._text_of(schema)
            try:
                return alphabet.parse(text)
            except ValueError:
                continue
        raise AssertionError(f"no text of {schema.words} was found")

    def _text_of(self, schema: AlphabetSchema) -> str:
        return _matching(parser.parse(schema.pattern.removeprefix("^").removesuffix("$")), self._random)

    def _stored(self, schema: CodecSchema, codec: Codec[Any]) -> bytes:
        name, random = schema.codec, self._random
        if schema.inner is not None and name != "compressed":
            inner = getattr(codec, "inner", None) or codec.alike
            assert inner is not None
            return self._stored(schema.inner, inner)
        if name == "compressed":
            return codec.encode(self.value(schema.inner, codec.inner))  # type: ignore[arg-type,attr-defined]  # as just checked
        if name in ("enum", "literal"):
            return str(random.choice(schema.values)).encode()
        if name == "id":
            assert schema.alphabet is not None
            return self._text_of(schema.alphabet).encode()
        if name in ("json", "msgpack"):
            encode = msgspec.json.encode if name == "json" else msgspec.msgpack.encode
            return encode(self._object(schema.schema))
        made: dict[str, Callable[[], bytes]] = {
            "text": self._text().encode,
            "bytes": lambda: random.randbytes(random.randrange(20)),
            "int64": lambda: b"%d" % self._integer(signed=True),
            "uint64": lambda: b"%d" % self._integer(signed=False),
            "float": lambda: repr(self.number()).encode(),
            "boolean": lambda: random.choice([schema.true or "", schema.false or ""]).encode(),
            "flag": (schema.true or "").encode,
            "rfc3339": lambda: self.moment().isoformat().encode(),
            "epoch-ms": lambda: b"%d" % int(self.moment().timestamp() * 1000),
            "epoch-seconds": lambda: b"%d" % int(self.moment().timestamp()),
            "epoch-float": lambda: b"%.6f" % self.moment().timestamp(),
            "duration": lambda: b"%.6f" % random.uniform(-1e6, 1e6),
        }
        return made[name]()

    def _integer(self, *, signed: bool) -> int:
        bits = self._random.randrange(1, 64 if signed else 65)
        value = self._random.getrandbits(bits)
        return -value if signed and self._random.random() < 0.5 else value

    def _text(self) -> str:
        return "".join(self._random.choices(_LETTERS, k=self._random.randrange(12)))

    def _object(self, schema: Any, depth: int = 0) -> Any:
        random = self._random
        if "$ref" in schema:
            return self._object(self._definitions[schema["$ref"].removeprefix("#/$defs/")], depth)
        if "anyOf" in schema:
            arms = [arm for arm in schema["anyOf"] if depth < 4 or arm.get("type") == "null"] or schema[
                "anyOf"
            ]
            return self._object(random.choice(arms), depth + 1)
        if "enum" in schema:
            return random.choice(schema["enum"])
        kind = schema.get("type")
        if kind is None:
            return self._anything(depth)
        if kind == "array":
            return self._array(schema, depth)
        if kind == "object":
            return self._members(schema, depth)
        if kind == "string":
            return self._formatted(schema)
        if kind == "boolean":
            return random.random() < 0.5
        if kind == "integer":
            return self._integer(signed=True)
        return self.number() if kind == "number" else None

    def _formatted(self, schema: Any) -> str:
        match schema.get("format"):
            case "date-time":
                return self.moment().isoformat().replace("+00:00", "Z")
            case "date":
                return (date(2000, 1, 1) + timedelta(days=self._random.randrange(9000))).isoformat()
            case "decimal":
                return str(self._random.randrange(-1000, 1000) / 8)
            case "uuid":
                return f"f81d4fae-7dec-41d0-a765-{self._random.getrandbits(48):012x}"
            case "duration":
                return f"P{self._random.randrange(1, 99)}D"
        return "YWI=" if "contentEncoding" in schema else self._text()

    def _array(self, schema: Any, depth: int) -> list[Any]:
        if "prefixItems" in schema:
            return [self._object(each, depth + 1) for each in schema["prefixItems"]]
        found = [self._object(schema.get("items") or {}, depth + 1) for _ in range(self._random.randrange(3))]
        return list(dict.fromkeys(found)) if schema.get("uniqueItems") else found

    def _members(self, schema: Any, depth: int) -> dict[str, Any]:
        required = schema.get("required", ())
        found = {
            name: self._object(member, depth + 1)
            for name, member in schema.get("properties", {}).items()
            if name in required or self._random.random() < 0.5
        }
        if not schema.get("properties"):
            values = schema.get("additionalProperties", True)
            inner = {} if isinstance(values, bool) else values
            numbers = schema.get("x-keys") is not None
            names = sorted(self._random.sample(range(99), 3)) if numbers else ["id", "名", "nick"]
            found |= {
                str(name): self._object(inner, depth + 1) for name in names[: self._random.randrange(4)]
            }
        return found

    def _anything(self, depth: int) -> Any:
        choices: list[Callable[[], Any]] = [
            self._text,
            lambda: self._integer(signed=True),
            lambda: self._random.uniform(-1, 1),
            lambda: None,
            lambda: True,
        ]
        if depth < 4:
            choices += [
                lambda: [self._anything(depth + 1) for _ in range(2)],
                lambda: {"id": "151120006600001", "of": self._anything(depth + 1)},
            ]
        return self._random.choice(choices)()


def _matching(parsed: Any, random: Random) -> str:
    """Return a random text that a parsed regular expression matches; a lookahead is not obeyed."""
    return "".join(_piece(token, value, random) for token, value in parsed)


def _piece(token: Any, value: Any, random: Random) -> str:
    match token:
        case tokens.LITERAL:
            return chr(value)
        case tokens.IN:
            return _one_of(value, random)
        case tokens.SUBPATTERN:
            return _matching(value[-1], random)
        case tokens.BRANCH:
            return _matching(random.choice(value[1]), random)
        case tokens.MAX_REPEAT:
            low, high, inner = value
            count = random.randint(low, min(int(high), low + 12))
            return "".join(_matching(inner, random) for _ in range(count))
        case tokens.ASSERT_NOT | tokens.AT:
            return ""
    raise AssertionError(f"a regular expression with {token}")


def _one_of(choices: Any, random: Random) -> str:
    """Return a character of a class; one that is not UTF-8 is left to the caller, which tries again."""
    token, value = random.choice(choices)
    return chr(value if token is tokens.LITERAL else random.randint(*value))
