"""Lua scripts as values: the file, its digest and the call that runs it.

Every `.lua` file opens with KEYS, ARGV and Output, and reaches no key but those in KEYS;
a test parses each file and fails on any other.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from functools import cached_property
from importlib.resources import files
from itertools import dropwhile
from typing import TYPE_CHECKING, TypeVar

from keywright.errors import KeywrightError
from keywright.keyspace.call import Call, undecodable
from keywright.keyspace.codecs import CodecError
from keywright.keyspace.wires import Arguments, Effect, Operation, Reply, Rounds, Wire

if TYPE_CHECKING:
    from keywright.keyspace.context import Context
    from keywright.keyspace.key import Key

T = TypeVar("T")


class Script:
    """One Lua file of a package's `scripts` folder; read when first used."""

    def __init__(self, package: str, name: str, effect: Effect = Effect.ONCE) -> None:
        self.package = package
        self.name = name
        self.operation = Operation(name, b"EVALSHA", effect, self)

    @cached_property
    def source(self) -> bytes:
        """The code without its header, since inside a transaction the text is sent each time."""
        text = files(self.package).joinpath("scripts", f"{self.name}.lua").read_text("utf-8")
        code = dropwhile(lambda line: line.startswith("--") or not line.strip(), text.splitlines(True))
        return "".join(code).encode()

    @cached_property
    def digest(self) -> bytes:
        """Return the SHA-1 digest by which EVALSHA names the script."""
        return hashlib.sha1(self.source, usedforsecurity=False).hexdigest().encode()

    def call(self, keys: Sequence[Key], arguments: Arguments, decode: Callable[[Reply], T]) -> ScriptCall[T]:
        """Return a call of this script; the first key routes it and is named in errors."""
        return ScriptCall(self, tuple(keys), arguments, decode)


class ScriptCall(Call[T]):
    """One script with its keys and arguments; all keys must live in one slot on a cluster."""

    __slots__ = ("arguments", "decode", "keys", "script")

    def __init__(
        self, script: Script, keys: tuple[Key, ...], arguments: Arguments, decode: Callable[[Reply], T]
    ) -> None:
        self.script = script
        self.keys = keys
        self.arguments = arguments
        self.decode = decode

    def rounds(self, context: Context) -> Rounds[T]:
        names = [context.name(key) for key in self.keys]
        context.require_one_slot(names)
        bound = BoundScript(self.script, names, self.arguments, type(self.keys[0]))
        reply = yield from bound.rounds(context)
        try:
            return self.decode(reply)
        except CodecError as error:
            raise undecodable(self.keys[0], context, error) from error

    def __repr__(self) -> str:
        return f"<script {self.script.name} on {', '.join(map(repr, self.keys))}>"


class BoundScript(Call[Reply]):
    """One script on names that are bound already."""

    __slots__ = ("arguments", "names", "script", "source")

    def __init__(
        self, script: Script, names: Sequence[bytes], arguments: Arguments, source: type[Key] | None = None
    ) -> None:
        self.script = script
        self.names = names
        self.arguments = arguments
        self.source = source

    def rounds(self, context: Context) -> Rounds[Reply]:
        arguments = (b"EVALSHA", self.script.digest, len(self.names), *self.names, *self.arguments)
        replies = yield [Wire(arguments, self.names[0], self.script.operation, self.source)]
        if isinstance(replies[0], KeywrightError):
            raise replies[0]
        return replies[0]
