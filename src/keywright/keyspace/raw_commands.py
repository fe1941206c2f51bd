"""Any command, as the caller writes it: routed by its keys, typed by the caller."""

from __future__ import annotations

import types
import typing
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar, overload

from keywright.errors import CrossSlotError, KeywrightError, UsageError, excerpt
from keywright.keyspace.call import Call, Prepared, as_is, patient
from keywright.keyspace.codecs import CodecError, codec_of
from keywright.keyspace.composition import gather_list
from keywright.keyspace.key import Key
from keywright.keyspace.misuse import explained
from keywright.keyspace.renames import moved
from keywright.keyspace.slots import slot_of
from keywright.keyspace.wires import Effect, Operation, Reply, Rounds, Wire

if TYPE_CHECKING:
    from keywright.keyspace.context import Context

__all__ = ["RawCommand", "raw"]

T = TypeVar("T")
Word: TypeAlias = bytes | str | int | float | Key

# They change the connection, which other calls use as well.
_STATEFUL = frozenset(
    b"ASKING AUTH DISCARD EXEC HELLO MONITOR MULTI PSUBSCRIBE PSYNC PUNSUBSCRIBE QUIT READONLY READWRITE "
    b"RESET SELECT SSUBSCRIBE SUBSCRIBE SUNSUBSCRIBE SYNC UNSUBSCRIBE UNWATCH WATCH".split()
)
_STATEFUL_OF_CLIENT = frozenset(b"CACHING NO-EVICT NO-TOUCH REPLY SETINFO SETNAME TRACKING".split())
_WAITING = frozenset(b"BLMOVE BLMPOP BLPOP BRPOP BRPOPLPUSH BZMPOP BZPOPMAX BZPOPMIN WAIT WAITAOF".split())
_WAITING_BY_OPTION = frozenset([b"XREAD", b"XREADGROUP"])


class RawCommand(Call[T]):
    """One command of the caller; keys among its arguments have their bound names when it is sent."""

    __slots__ = ("_convert", "arguments", "operation")

    def __init__(
        self, operation: Operation, arguments: Sequence[bytes | Key], convert: Callable[[Reply], T]
    ) -> None:
        self.operation = operation
        self.arguments = arguments
        self._convert = convert

    @property
    def keys(self) -> list[Key]:
        return [argument for argument in self.arguments if isinstance(argument, Key)]

    def rounds(self, context: Context) -> Rounds[T]:
        keys = self.keys
        names = [context.name(key) for key in keys]
        if not context.one_slot(names):
            raise CrossSlotError([(name, slot_of(name)) for name in names], self.operation.name)
        words = [context.name(word) if isinstance(word, Key) else word for word in self.arguments]
        name, source = (names[0], type(keys[0])) if keys else (b"", None)
        replies = yield [patient(Wire((self.operation.verb, *words), name, self.operation, source))]
        reply = replies[0]
        if isinstance(reply, KeywrightError):
            raise reply
        try:
            return self._convert(reply)
        except (CodecError, TypeError, ValueError) as error:
            # Nothing of the reply: it may be secret.
            raise UsageError(
                f"the reply to {self!r} is a {type(reply).__name__} that does not have the form of as_type. "
                f"Pass another as_type; without one the reply is returned as it is."
            ) from error

    def __repr__(self) -> str:
        words = [repr(word) if isinstance(word, Key) else "…" for word in self.arguments]
        return f"<{' '.join([self.operation.name, *words])}>"


@overload
def raw(verb: bytes | str, *arguments: Word, effect: Effect = ..., blocking: float = ...) -> Call[Any]: ...
@overload
def raw(
    verb: bytes | str, *arguments: Word, as_type: type[T], effect: Effect = ..., blocking: float = ...
) -> Call[T]: ...
@overload
def raw(
    verb: bytes | str, *arguments: Word, as_type: Any, effect: Effect = ..., blocking: float = ...
) -> Call[Any]: ...
@explained
def raw(
    verb: bytes | str,
    *arguments: Word,
    as_type: Any = Any,
    effect: Effect = Effect.ONCE,
    blocking: float = 0.0,
) -> Call[Any]:
    """Return a call of any command: `raw(b"OBJECT", b"FREQ", Word("a"), as_type=int, effect=Effect.READ)`.

    Keys among the arguments get their bound names, and route the command on a cluster; CrossSlotError is
    raised if they are in several slots. A command without keys is sent to one node; `db.run(call, at=…)`
    chooses it.

    `as_type` converts the reply: numbers, text, `bool`, lists, sets, tuples, dicts, `X | None`, or a type
    that a value may have. Without it the reply is returned as it is: bytes, int, list or None. Values are
    not encoded or decoded by the codecs of the keys.

    `effect` says what happens if the connection is lost before the reply: a command is not sent again, and
    OutcomeUnknownError is raised, unless it is Effect.READ or Effect.REPEATABLE. `blocking` is the longest
    time that the server waits, in seconds, for commands such as BLPOP.
    """
    operation = Operation(*_named(verb), effect, blocking=float(blocking))
    if not isinstance(effect, Effect):
        raise UsageError(f"effect must be Effect.READ, REPEATABLE or ONCE, got {excerpt(effect)}.")
    words = [_sendable(argument, operation) for argument in arguments]
    _require_stateless(operation, words)
    call: RawCommand[Any] = RawCommand(operation, words, _converter(as_type))
    renamed = [key for key in call.keys if key._former]
    if renamed:
        return Prepared(gather_list(moved(key) for key in renamed), call, frozenset(renamed))
    return call


def _named(verb: bytes | str) -> tuple[str, bytes]:
    encoded = verb.encode() if isinstance(verb, str) else bytes(verb)
    if not encoded or not all(0x21 <= byte < 0x7F for byte in encoded):
        raise UsageError(
            f"{excerpt(verb)} is not a command. Pass each word as an argument of its own: "
            f'raw(b"CONFIG", b"GET", b"maxmemory").'
        )
    upper = encoded.upper()
    return upper.decode(), upper


def _sendable(argument: Word, operation: Operation) -> bytes | Key:
    if isinstance(argument, bytes | Key):
        return argument
    if isinstance(argument, str):
        return argument.encode()
    if isinstance(argument, int | float) and not isinstance(argument, bool):
        return repr(argument).encode()
    raise UsageError(
        f"{operation.name} is sent text, bytes, numbers and keys, not a {type(argument).__name__}. "
        f"Encode it first."
    )


def _require_stateless(operation: Operation, arguments: Sequence[bytes | Key]) -> None:
    verb, words = operation.verb, [_upper(word) for word in arguments]
    if verb in _STATEFUL or (verb == b"CLIENT" and words and words[0] in _STATEFUL_OF_CLIENT):
        raise UsageError(
            f"{operation.name} changes the state of a connection, which other calls use too. Use atomic() "
            f"for transactions, db.subscribe() for messages, and options of connect() for the others."
        )
    waits = verb in _WAITING or (verb in _WAITING_BY_OPTION and b"BLOCK" in words)
    if waits and operation.blocking <= 0:
        raise UsageError(
            f"{operation.name} makes the server wait. Pass blocking=, the longest time in seconds."
        )


def _upper(word: bytes | Key) -> bytes:
    return word.upper() if isinstance(word, bytes) else b""


def _converter(hint: Any) -> Callable[[Reply], Any]:
    """Return a function that converts a reply to a type. Raise TypeError if no reply has that type."""
    if hint is Any:
        return as_is
    if hint in _SIMPLE:
        return _SIMPLE[hint]
    origin, inner = typing.get_origin(hint), typing.get_args(hint)
    if origin in (typing.Union, types.UnionType):
        return _optional(hint, inner)
    kind = origin or hint
    if kind is dict:
        return _mapping(*map(_converter, inner or (Any, Any)))
    if kind is tuple and inner and inner[-1] is not ...:
        return _row([_converter(each) for each in inner])
    if kind in (list, tuple, set, frozenset):
        return _collection(kind, _converter(inner[0] if inner else Any))
    return _decoding(hint)


def _optional(hint: Any, choices: tuple[Any, ...]) -> Callable[[Reply], Any]:
    others = [each for each in choices if each is not types.NoneType]
    if len(others) != 1 or len(others) == len(choices):
        raise TypeError(f"{hint} has several types besides None")
    convert = _converter(others[0])
    return lambda reply: None if reply is None else convert(reply)


def _mapping(key: Callable[[Reply], Any], value: Callable[[Reply], Any]) -> Callable[[Reply], Any]:
    def convert(reply: Reply) -> Any:
        items = _listed(reply)
        if not all(isinstance(item, list) and len(item) == 2 for item in items):
            items = list(zip(items[::2], items[1::2], strict=True))
        return {key(name): value(item) for name, item in items}

    return convert


def _row(converters: list[Callable[[Reply], Any]]) -> Callable[[Reply], Any]:
    return lambda reply: tuple(
        convert(item) for convert, item in zip(converters, _listed(reply), strict=True)
    )


def _collection(kind: Any, convert: Callable[[Reply], Any]) -> Callable[[Reply], Any]:
    return lambda reply: kind([convert(item) for item in _listed(reply)])


def _decoding(hint: Any) -> Callable[[Reply], Any]:
    decode = codec_of(hint).decode
    return lambda reply: decode(_bytes(reply))


def _listed(reply: Reply) -> list[Reply]:
    if not isinstance(reply, list):
        raise TypeError("not a list")
    return reply


def _bytes(reply: Reply) -> bytes:
    if not isinstance(reply, bytes):
        raise TypeError("not text")
    return reply


def _number(kind: type[T]) -> Callable[[Reply], T]:
    def convert(reply: Reply) -> Any:
        if not isinstance(reply, bytes | int):
            raise TypeError("not a number")
        return kind(reply)  # type: ignore[call-arg]  # int or float

    return convert


def _truth(reply: Reply) -> bool:
    if reply in (0, 1):
        return bool(reply)
    if reply != b"OK":
        raise TypeError("neither 0, 1 nor OK")
    return True


_SIMPLE: dict[Any, Callable[[Reply], Any]] = {
    bool: _truth,
    bytes: _bytes,
    float: _number(float),
    int: _number(int),
    str: lambda reply: _bytes(reply).decode(),
}
