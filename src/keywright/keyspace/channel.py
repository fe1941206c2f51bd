"""Channels: typed messages between programs, by pub/sub. The server stores none of them.

A channel is declared as a key is: a class is a template, its instances are single channels. Channels are not
keys, but their names begin with the prefix of their keyspace too.
"""

from __future__ import annotations

from typing import (
    Any,
    ClassVar,
    Generic,
    NamedTuple,
    Self,
    TypeAlias,
    TypedDict,
    TypeVar,
    Unpack,
    dataclass_transform,
)

from keywright.errors import DeclarationError, KeywrightError, MessageError, UsageError
from keywright.keyspace.call import Call
from keywright.keyspace.codecs import Codec, CodecError, codec_of
from keywright.keyspace.context import Context
from keywright.keyspace.key import check_optional, generate, type_arguments, variables_of
from keywright.keyspace.kinds.encoders import encoder
from keywright.keyspace.misuse import explained
from keywright.keyspace.slots import slot_of
from keywright.keyspace.space import Keyspace
from keywright.keyspace.template import Template, escaped
from keywright.keyspace.wires import Effect, Operation, Rounds, Wire

__all__ = ["Channel", "ChannelDeclaration", "ChannelPattern", "Published"]

T = TypeVar("T")
T_co = TypeVar("T_co", covariant=True)

PUBLISH = Operation("publish", b"PUBLISH", Effect.ONCE)
PUBLISH_SHARDED = Operation("publish", b"SPUBLISH", Effect.ONCE)

_Function: TypeAlias = Any


class ChannelDeclaration(NamedTuple):
    """What a class of channels declares."""

    template: Template
    space: Keyspace
    codec: Codec[Any]
    sharded: bool


class ChannelOptions(TypedDict, total=False):
    """What a class of channels declares beside its messages: ``class News(Channel[Article], …)``."""

    channel: str
    """The template of its names."""
    space: Keyspace
    sharded: bool
    """Whether a cluster sends its messages in one shard only (Redis 7.0)."""


@dataclass_transform(frozen_default=True, kw_only_default=False)
class Channel(Generic[T]):
    """A channel of messages of type T: ``class News(Channel[Article], channel="news:<topic>", space=press)``.

    `db.subscribe(News("art"))` receives the messages of one, `db.subscribe(News.matching())` those of many.
    With `sharded=True` the messages of a channel stay in the shard of a cluster that has its slot, so they do
    not burden the others; such channels cannot be subscribed by pattern.
    """

    kind: ClassVar[str] = "channel"
    declaration: ClassVar[ChannelDeclaration]
    """What the class declares: template, keyspace, codec."""
    _template: ClassVar[Template]
    _space: ClassVar[Keyspace]
    _yields: ClassVar[bool] = False
    _encode: ClassVar[_Function]
    _render: ClassVar[_Function]
    _name: ClassVar[bytes]
    _values: ClassVar[tuple[Any, ...]]

    def __init_subclass__(cls, **options: Unpack[ChannelOptions]) -> None:
        super().__init_subclass__()
        channel, space = options.get("channel"), options.get("space")
        if channel is None:
            return
        if space is None:
            raise DeclarationError(cls.__name__, "belongs to no keyspace", "Add space=your_keyspace.")
        variables = variables_of(cls)
        alphabets = {name: each.alphabet for name, each in variables.items()}
        cls._template, cls._space = Template(channel, alphabets), space
        check_optional(cls, variables)
        codec = codec_of(type_arguments(cls, Channel)[0])
        if codec.sealed:
            raise DeclarationError(
                cls.__name__, "messages cannot be sealed", "Seal a value, and publish the name of its key."
            )
        cls._encode = staticmethod(encoder(cls, codec))
        generate(cls, list(alphabets), alphabets)
        cls.declaration = ChannelDeclaration(cls._template, space, codec, options.get("sharded", False))
        space.channels.append(cls)

    @classmethod
    def arguments(cls) -> tuple[str, ...]:
        """Return the variables in the order of the constructor; the template may have another order."""
        return tuple(cls.__dict__["_argument_names"])

    @classmethod
    def parse(cls, name: bytes) -> Self | None:
        """Return the channel of this name, given without the bound prefix, or None."""
        values = cls._template.parse(name)
        if values is None:
            return None
        return cls(**dict(zip(cls._template.variables, values, strict=True)))

    @classmethod
    @explained
    def matching(cls, **variables: object) -> ChannelPattern[T]:
        """Return the pattern of all channels in which these variables have these values."""
        if cls.declaration.sharded:
            raise UsageError(
                f"{cls.__name__} is sharded, and a server has no patterns of sharded channels. Subscribe to "
                f"single channels, or declare it without sharded=True."
            )
        return ChannelPattern(cls, cls._template.glob(variables))

    def publish(self, message: T) -> Call[int]:
        """Publish a message. Return how many subscribers got it: on a cluster, those of one node.

        A program that is not subscribed at this moment does not get it later.
        """
        return _Publish(self, self._encode(message))

    def __bytes__(self) -> bytes:
        """Return the name without the bound prefix."""
        return self._name

    def __eq__(self, other: object) -> bool:
        return type(other) is type(self) and other._name == self._name

    def __hash__(self) -> int:
        return hash(self._name)

    def __repr__(self) -> str:
        named = zip(self.__class__.__dict__["_argument_names"], self._values, strict=True)
        return f"{type(self).__name__}({', '.join(f'{name}={value!r}' for name, value in named)})"


class ChannelPattern(Generic[T_co]):
    """The channels of one class that a pattern matches."""

    def __init__(self, channels: type[Channel[Any]], pattern: bytes) -> None:
        self.channels = channels
        self._pattern = pattern

    @explained
    def glob(self, context: Context) -> bytes:
        """Return the glob that PSUBSCRIBE takes. It may match names of other channels, which are left out."""
        return escaped(context.prefixes[self.channels._space]) + self._pattern

    def __repr__(self) -> str:
        return f"ChannelPattern({self.channels.__name__}, {self._pattern!r})"


class Published(NamedTuple, Generic[T]):
    """A message and the channel that it was published on."""

    channel: Channel[T]
    message: T


class _Publish(Call[int]):
    __slots__ = ("channel", "payload")

    def __init__(self, channel: Channel[Any], payload: bytes) -> None:
        self.channel = channel
        self.payload = payload

    def rounds(self, context: Context) -> Rounds[int]:
        name = context.name(self.channel)
        operation = PUBLISH_SHARDED if self.channel.declaration.sharded else PUBLISH
        replies = yield [Wire((operation.verb, name, self.payload), name, operation, None)]
        if isinstance(replies[0], KeywrightError):
            raise replies[0]
        return int(replies[0])

    def __repr__(self) -> str:
        return f"<PUBLISH {self.channel!r}>"


def published(
    kinds: list[type[Channel[Any]]], name: bytes, payload: bytes, context: Context
) -> Published[Any] | None:
    """Return a message as it is declared; None if its channel is of none of these classes."""
    for kind in kinds:
        lead = context.prefixes[kind._space]
        channel = kind.parse(name[len(lead) :]) if name.startswith(lead) else None
        if channel is None:
            continue
        try:
            return Published(channel, kind.declaration.codec.decode(payload))
        except CodecError as error:
            raise MessageError(name, kind._template.source, error.expected, error.found) from error
    return None


def shard_of(channel: Channel[Any], context: Context) -> int | None:
    """Return the slot whose node has the messages of a sharded channel; None on one server."""
    return slot_of(context.name(channel)) if context.sharded else None
