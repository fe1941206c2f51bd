"""Translation of errors: the server's and redis-py's become Keywright's here, and only here."""

from __future__ import annotations

import inspect
import re
import traceback
from typing import TYPE_CHECKING, NoReturn

import redis.exceptions

from keywright.engine.address import Address
from keywright.engine.capabilities import FEATURES
from keywright.engine.wire_format import ErrorReply
from keywright.errors import (
    CapabilityError,
    ConnectionLostError,
    EngineError,
    KeywrightError,
    MalformedReplyError,
    ScriptError,
    ServerRefusedError,
    UsageError,
    WrongTypeError,
    excerpt,
)
from keywright.keyspace.call import Call, Mapped
from keywright.keyspace.misuse import is_ours, message_of
from keywright.keyspace.wires import Wire

if TYPE_CHECKING:
    from keywright.keyspace.key import Key


_ARRIVALS = dict(FEATURES.values())
_FIELD_EXPIRY = (b"HPEXPIREAT", b"HPEXPIRETIME", b"HPERSIST", b"HPTTL")
_ARRIVALS |= dict.fromkeys(_FIELD_EXPIRY, _ARRIVALS[b"HPEXPIRE"])
_JSON = "Redis 8, or in the module RedisJSON or, without JSON.MERGE, valkey-json"
_UNKNOWN = re.compile(r"ERR unknown command ['`]([^'`,]+)")


def refusal(error: ErrorReply, wire: Wire, server: str) -> KeywrightError:
    """Return the error for a wire that got an error reply."""
    text = str(error)
    script = wire.operation.script
    if "WRONGTYPE" in text:
        return WrongTypeError(
            wire.name, _template(wire.source), f"a {_kind(wire.source)}", "another Redis type"
        )
    if script is not None and error.code == "ERR":
        return ScriptError(script.name, text)
    if text.startswith("ERR unknown command"):
        named = _UNKNOWN.match(text)  # one of several, in a transaction
        verb = verb_of(wire) if named is None else named[1].upper()
        arrival = _JSON if verb.startswith("JSON.") else "a later Redis"
        return CapabilityError(verb, server, _ARRIVALS.get(verb.encode(), arrival))
    return ServerRefusedError(verb_of(wire), wire.name, text)


def unreachable(error: Exception, address: Address) -> EngineError | UsageError:
    """Return the error for a connection that redis-py could not open."""
    if isinstance(error.__cause__, redis.exceptions.RedisError):
        error = error.__cause__  # redis-py's asyncio side wraps what the server said in a ConnectionError
    if isinstance(error, redis.exceptions.AuthenticationError):
        # redis-py drops the code of the reply, and the wording differs between servers.
        code = "WRONGPASS" if address.settings.keys() & {"password", "credential_provider"} else "NOAUTH"
        return ServerRefusedError("AUTH", b"", _coded(str(error), code))
    if address.protocol == 3 and "unknown command" in str(error).lower():
        return CapabilityError("RESP3", address.shown, "Redis 6.0; without protocol=3 RESP2 is used")
    if isinstance(error, redis.exceptions.ResponseError):
        return ServerRefusedError("HELLO", b"", str(error))
    if isinstance(error, redis.exceptions.DataError):
        return UsageError(f"the connection settings of {address.shown} are invalid: {error}.")
    return ConnectionLostError(address.shown, str(error) or type(error).__name__)


def is_name_denied(error: Exception) -> bool:
    """Return whether access rules deny CLIENT SETNAME. The connection works without a name."""
    refused = error.__cause__ if isinstance(error.__cause__, redis.exceptions.RedisError) else error
    return isinstance(refused, redis.exceptions.NoPermissionError) and "'client" in str(refused)


def invalid_option(error: redis.exceptions.RedisError | TypeError) -> UsageError:
    """Return the error for an option that this sort of connection does not have, or a wrong value."""
    if isinstance(error, redis.exceptions.RedisError):
        return UsageError(f"an option of the connection is invalid: {error}. Correct its value.")
    found = re.search(r"unexpected keyword argument '(\w+)'", str(error))
    named = f"the option {found[1]!r}" if found else f"an option ({error})"
    return UsageError(f"{named} does not go with this sort of connection. Remove it from the URL or call.")


def _coded(text: str, code: str) -> str:
    return text if text.split(" ", 1)[0].isupper() else f"{code} {text}"


def _template(source: type[Key] | None) -> str:
    return source.declaration.template.source if source is not None else "no template"


def _kind(source: type[Key] | None) -> str:
    return f"{source.kind} ({source.redis_type})" if source is not None else "key of the declared type"


def verb_of(wire: Wire) -> str:
    verb = wire.arguments[0]
    return verb.decode() if isinstance(verb, bytes) else wire.operation.name


def raise_failed(call: object, error: Exception, *, answered: bool) -> NoReturn:
    """Raise UsageError for a call that cannot be sent, and MalformedReplyError for a reply of another form.

    Raise the given error if the caller's code raised it.
    """
    if not isinstance(call, Call):
        raise _not_a_call(call) from error
    if not is_ours(error):
        raise error
    if answered and not _before_or_after_reading(error):
        raise MalformedReplyError(repr(call), message_of(error)) from error
    if not isinstance(error, AttributeError | TypeError):
        raise error
    raise UsageError(
        f"{call!r} cannot be run: {message_of(error)}. Check the types of its arguments."
    ) from error


def _before_or_after_reading(error: Exception) -> bool:
    """Return whether an error is not about a reply.

    The commands of a later round were made, or what the caller gave to `map` failed, as in `.map(int)`.
    """
    frames = [frame.f_code for frame, _ in traceback.walk_tb(error.__traceback__)]
    return any(code.co_name in ("lower", "bind") for code in frames) or frames[-1] is Mapped.rounds.__code__


def _not_a_call(found: object) -> UsageError:
    """Return the error for something else in the place of a call."""
    if inspect.iscoroutine(found):
        found.close()
        return UsageError("a coroutine is given instead of a call. Await it, and pass the call inside it.")
    subject = f"the class {found.__name__}" if isinstance(found, type) else excerpt(found)
    return UsageError(f"{subject} is not a call. Pass an operation of a key, as in Name('id').get().")
