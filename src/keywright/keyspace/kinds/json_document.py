"""JsonDocument: a typed document of the JSON type, which some servers have."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, ClassVar, Generic, TypeVar

from keywright.errors import ServerRefusedError, UsageError
from keywright.keyspace.call import Call, Ready, Refreshing, Sliding, nothing
from keywright.keyspace.codecs import Codec, CodecError, Json
from keywright.keyspace.context import Context
from keywright.keyspace.key import Key, Unbound, type_arguments
from keywright.keyspace.kinds.encoders import encoder, optional
from keywright.keyspace.layouts import Ask, Layout
from keywright.keyspace.misuse import explained
from keywright.keyspace.storage import StringStorage
from keywright.keyspace.wires import Effect, Operation, Reply

T = TypeVar("T")

GET = Operation("get", b"JSON.GET", Effect.READ)
SET = Operation("set", b"JSON.SET", Effect.REPEATABLE)
CREATE = Operation("create", b"JSON.SET", Effect.ONCE)
ADD = Operation("add", b"JSON.NUMINCRBY", Effect.ONCE)
APPEND = Operation("append", b"JSON.ARRAPPEND", Effect.ONCE)
MERGE = Operation("merge", b"JSON.MERGE", Effect.REPEATABLE)
REMOVE = Operation("remove", b"JSON.DEL", Effect.REPEATABLE)

_ANY: Json = Json()
_NOWHERE = ("does not exist", "at the root", "must be root")
_WRONG = (b'"x"', b"17", b"[]", b"{}", b"null")


class JsonLayout(Layout):
    """The JSON type of Redis and of valkey-json."""

    redis_type = "ReJSON-RL"
    everything = Ask(b"JSON.GET")
    reads = ("json.get",)

    def addition(self, *parts: bytes) -> Ask:
        return Ask(b"JSON.SET", (b"$", parts[0]))


class JsonStorage(StringStorage):
    """One JSON value. The server keeps it valid JSON, but not of a type."""

    reads = ("json.get",)
    writes = ("json.set", "json.numincrby", "json.arrappend", "json.merge", "json.del")

    def __init__(self, kind: type[Key]) -> None:
        super().__init__(kind)
        self.layout = JsonLayout()

    def malformed(self, refused: Callable[[Codec[Any]], bytes | None], key: Key) -> Ask | None:
        for wrong in _WRONG:
            try:
                self.item.decode(wrong)
            except CodecError:
                return self.layout.addition(wrong)
        return None


class JsonDocument(Key, Generic[T]):
    """A JSON document of type T: a struct, dataclass, Pydantic model, or any other type that JSON has.

    It needs a server with the JSON type: Redis 8, or the module RedisJSON or valkey-json. Paths begin with
    `$` and may match several places. The server does not check that a change at a path leaves a T: the audit
    does.
    """

    redis_type: ClassVar[str] = "ReJSON-RL"
    kind: ClassVar[str] = "json"
    _storage = JsonStorage
    _codec: ClassVar[Codec[Any]]
    _encode: ClassVar[Unbound]
    _decode: ClassVar[Unbound]

    @classmethod
    def _declare(cls) -> Iterable[Codec[Any]]:
        cls._codec = Json(type_arguments(cls, JsonDocument)[0])
        cls._encode = staticmethod(encoder(cls, cls._codec))
        cls._decode = staticmethod(optional(cls._codec))
        return (cls._codec,)

    def get(self) -> Call[T | None]:
        """Return the document, or None."""
        return Sliding(GET, self, (), self._decode)

    def set(self, value: T) -> Call[None]:
        """Write the whole document."""
        return Refreshing(SET, self, (b"$", self._encode(value)), nothing)

    def create(self, value: T) -> Call[bool]:
        """Write the document if there is none. Return whether it was written."""
        return Refreshing(CREATE, self, (b"$", self._encode(value), b"NX"), _was_set)

    @explained
    def get_path(self, path: str) -> Call[list[Any]]:
        """Return the values at a path, none if there is no such place or document."""
        return Sliding(GET, self, (_path(path),), _matches)

    @explained
    def set_path(self, path: str, value: object) -> Call[bool]:
        """Write a value at every place that a path matches, or a new member. Return whether there is one."""
        return _SetPath(SET, self, (_path(path), _json(value)), _was_set)

    @explained
    def add(self, path: str, by: float = 1) -> Call[list[int | float | None]]:
        """Add to the numbers at a path. Return the sums; None for a place that is not a number."""
        return Refreshing(ADD, self, (_path(path), _json(by)), _matches)

    @explained
    def append(self, path: str, *items: object) -> Call[list[int | None]]:
        """Append to the arrays at a path. Return their lengths; None for a place that is not an array."""
        if not items:
            return Ready([])
        return Refreshing(APPEND, self, (_path(path), *map(_json, items)), list)

    @explained
    def merge(self, patch: object, *, path: str = "$") -> Call[None]:
        """Merge members into the objects at a path (RFC 7396): null removes one. valkey-json has no merge."""
        return Refreshing(MERGE, self, (_path(path), _json(patch)), nothing)

    @explained
    def remove(self, path: str) -> Call[int]:
        """Remove the values at a path. Return how many there were."""
        return Refreshing(REMOVE, self, (_path(path),), int)


class _SetPath(Refreshing[bool]):
    """A write at a path. Servers differ in how they say that there is no such place, or no document."""

    def read(self, reply: Reply, context: Context) -> bool:
        try:
            return super().read(reply, context)
        except ServerRefusedError as error:
            if any(words in error.reply for words in _NOWHERE):
                return False
            raise


def _path(path: str) -> bytes:
    if not path.startswith("$"):
        raise UsageError(f"a path begins with $, got {path!r}. Write it as $.name or $.list[0].")
    return path.encode()


def _json(value: object) -> bytes:
    try:
        return _ANY.encode(value)
    except CodecError as error:
        raise UsageError(f"a value at a path must be JSON, got {error.found}. Pass other values.") from error


def _matches(reply: Reply) -> list[Any]:
    found: list[Any] = [] if reply is None else _ANY.decode(reply)
    return found


def _was_set(reply: Reply) -> bool:
    return reply is not None
