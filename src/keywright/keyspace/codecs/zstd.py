"""Compression around another codec."""

from __future__ import annotations

import threading
from contextvars import ContextVar
from functools import cache, cached_property
from types import ModuleType
from typing import TYPE_CHECKING, Self, TypeVar

from keywright.errors import dependencies_of
from keywright.keyspace.codecs.contract import Codec, UnpackedTooLarge
from keywright.keyspace.misuse import explained_constructor

if TYPE_CHECKING:
    import zstandard

__all__ = ["Zstd", "unpacking_at_most"]

T = TypeVar("T")

_MAGIC = b"\x28\xb5\x2f\xfd"
_LARGEST = 64 * 1024 * 1024
_STEP = 64 * 1024


class unpacking_at_most:  # noqa: N801  # it is used like a function
    """Bound the bytes that are unpacked inside, all values together; `used` is how many were.

    For tools that read what others wrote: a value that would exceed it raises UnpackedTooLarge.
    """

    __slots__ = ("_token", "limit", "used")

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self.used = 0

    def __enter__(self) -> Self:
        self._token = _allowance.set(self)
        return self

    def __exit__(self, *exc: object) -> None:
        _allowance.reset(self._token)


_allowance: ContextVar[unpacking_at_most | None] = ContextVar("unpacking allowance", default=None)


@explained_constructor
class Zstd(Codec[T]):
    """Zstandard frames; values under `min_size` bytes are stored as they are.

    A frame starts with its magic number, so reading needs no further mark: a small value that happens to
    start with it is compressed all the same. Nothing larger than `max_size` is unpacked.
    """

    def __init__(
        self, inner: Codec[T], *, level: int = 3, min_size: int = 64, max_size: int = _LARGEST
    ) -> None:
        if not 1 <= level <= 22:
            raise TypeError(f"zstd levels run from 1 to 22, not {level}")
        if inner.sealed:
            raise TypeError("sealed bytes do not compress: put Zstd before Sealed")
        self.expected = f"{inner.expected}, zstd-compressed"
        self.python_type = inner.python_type
        self.secret = inner.secret
        self.samples = inner.samples
        self.inner = inner
        self._level = level
        self._min_size = min_size
        self._max_size = max_size
        self._contexts = _Contexts(level)
        if inner.undeclared is not None:
            self.undeclared = self._undeclared

    def encode(self, value: T) -> bytes:
        plain = self.inner.encode(value)
        if len(plain) > self._max_size:
            raise self.refusal(value, f"larger than {self._max_size} bytes")
        if len(plain) < self._min_size and not plain.startswith(_MAGIC):
            return plain
        return self._contexts.compressor.compress(plain)

    def decode(self, data: bytes) -> T:
        return self.inner.decode(self._unpacked(data) if data.startswith(_MAGIC) else data)

    def _undeclared(self, data: bytes) -> list[str]:
        search = self.inner.undeclared
        plain = self._unpacked(data) if data.startswith(_MAGIC) else data
        return [] if search is None else search(plain)

    def _unpacked(self, data: bytes) -> bytes:
        zstandard = _zstandard()
        allowance = _allowance.get()
        limit = self._max_size
        if allowance is not None:
            limit = min(limit, allowance.limit - allowance.used)
        try:
            # decompress() ignores max_output_size where the frame declares its own size.
            size = zstandard.frame_content_size(data)
            if size > self._max_size:
                raise self.refusal(data, f"unpacks to {size} bytes, over the limit of {self._max_size}")
            if limit < self._max_size and (size if size >= 0 else self._length(data, limit)) > limit:
                raise UnpackedTooLarge(self.expected, f"a value that unpacks to more than {limit} bytes")
            plain: bytes = self._contexts.decompressor.decompress(
                data, max_output_size=limit, allow_extra_data=False
            )
        except (zstandard.ZstdError, MemoryError) as exc:
            raise self.refusal(data, exc) from exc
        if allowance is not None:
            allowance.used += len(plain)
        return plain

    def _length(self, data: bytes, limit: int) -> int:
        """Return how many bytes a frame that does not declare its size unpacks to; stop above a limit."""
        length = 0
        with self._contexts.decompressor.stream_reader(data) as stream:
            while length <= limit and (part := stream.read(_STEP)):
                length += len(part)
        return length


class _Contexts(threading.local):
    """A compressor and a decompressor per thread: zstandard's own are not safe to share."""

    def __init__(self, level: int) -> None:
        self._level = level

    @cached_property
    def compressor(self) -> zstandard.ZstdCompressor:
        compressor: zstandard.ZstdCompressor = _zstandard().ZstdCompressor(level=self._level)
        return compressor

    @cached_property
    def decompressor(self) -> zstandard.ZstdDecompressor:
        decompressor: zstandard.ZstdDecompressor = _zstandard().ZstdDecompressor()
        return decompressor


@cache
def _zstandard() -> ModuleType:
    with dependencies_of("a compressed value", install="keywright[zstd]"):
        import zstandard
    return zstandard
