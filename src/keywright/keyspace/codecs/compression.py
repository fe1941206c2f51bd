"""Compression around another codec, bounded in what it unpacks."""

from __future__ import annotations

import gzip
import threading
import zlib
from abc import abstractmethod
from contextvars import ContextVar
from functools import cache, cached_property
from types import ModuleType
from typing import TYPE_CHECKING, ClassVar, Self, TypeVar

from keywright.errors import dependencies_of
from keywright.keyspace.codecs.contract import Codec, UnpackedTooLarge
from keywright.keyspace.misuse import explained_constructor

if TYPE_CHECKING:
    import zstandard

__all__ = ["Compressed", "Gzip", "Lz4", "Zlib", "Zstd", "unpacking_at_most"]

T = TypeVar("T")

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


class Compressed(Codec[T]):
    """The base of compressions. Values under `min_size` bytes are stored as they are.

    Compressed bytes are recognised by how they begin, so reading needs no further mark: a small value that
    begins like that is compressed all the same. With `min_size=0` all values are compressed, and others are
    refused. Nothing larger than `max_size` is unpacked.
    """

    form: ClassVar[str]
    """The name of the compression."""
    _levels: ClassVar[range]

    def __init__(
        self, inner: Codec[T], *, level: int | None = None, min_size: int = 64, max_size: int = _LARGEST
    ) -> None:
        form, levels = self.form, self._levels
        if level is not None and level not in levels:
            raise TypeError(f"{form} levels run from {levels[0]} to {levels[-1]}, not {level}")
        if inner.sealed:
            raise TypeError(f"sealed bytes do not compress: put {type(self).__name__} before Sealed")
        self.expected = f"{inner.expected}, {form}-compressed"
        self.python_type = inner.python_type
        self.secret = inner.secret
        self.samples = inner.samples
        self.inner = inner
        self.level = level
        self.min_size = min_size
        self.max_size = max_size
        if inner.undeclared is not None:
            self.undeclared = self._undeclared

    def encode(self, value: T) -> bytes:
        plain = self.inner.encode(value)
        if len(plain) > self.max_size:
            raise self.refusal(value, f"larger than {self.max_size} bytes")
        if len(plain) < self.min_size and not self.recognises(plain):
            return plain
        return self._packed(plain)

    def decode(self, data: bytes) -> T:
        return self.inner.decode(self._plain(data))

    @abstractmethod
    def recognises(self, data: bytes) -> bool:
        """Return whether bytes begin as compressed ones do."""

    @abstractmethod
    def _packed(self, plain: bytes) -> bytes: ...

    @abstractmethod
    def _unpacked(self, data: bytes, limit: int) -> bytes | None:
        """Return the bytes; None if there are more than `limit`. Raise any error if they are malformed."""

    def _plain(self, data: bytes) -> bytes:
        if not self.recognises(data):
            if not self.min_size:
                raise self.refusal(data)
            return data
        allowance = _allowance.get()
        limit = self.max_size
        if allowance is not None:
            limit = min(limit, allowance.limit - allowance.used)
        self._check_installed()
        try:
            plain = self._unpacked(data, limit)
        except Exception as exc:
            raise self.refusal(data, exc) from exc
        if plain is None:
            if limit < self.max_size:
                raise UnpackedTooLarge(self.expected, f"a value that unpacks to more than {limit} bytes")
            raise self.refusal(data, f"unpacks to more than the limit of {limit} bytes")
        if allowance is not None:
            allowance.used += len(plain)
        return plain

    def _check_installed(self) -> None:
        """Raise MissingDependencyError if a package is missing."""

    def _undeclared(self, data: bytes) -> list[str]:
        search = self.inner.undeclared
        return [] if search is None else search(self._plain(data))


@explained_constructor
class Zlib(Compressed[T]):
    """A stream of zlib, as `zlib.compress` writes it."""

    form = "zlib"
    _levels = range(10)

    def recognises(self, data: bytes) -> bool:
        # RFC 1950: deflate with a window of 32 kB, a checksum of these two bytes, and no dictionary.
        return len(data) > 1 and data[0] == 0x78 and not data[1] & 0x20 and int.from_bytes(data[:2]) % 31 == 0

    def _packed(self, plain: bytes) -> bytes:
        return zlib.compress(plain, -1 if self.level is None else self.level)

    def _unpacked(self, data: bytes, limit: int) -> bytes | None:
        return _inflated(data, limit, zlib.MAX_WBITS)


@explained_constructor
class Gzip(Compressed[T]):
    """One member of gzip, without a name and a time."""

    form = "gzip"
    _levels = range(10)

    def recognises(self, data: bytes) -> bool:
        return data.startswith(b"\x1f\x8b\x08")

    def _packed(self, plain: bytes) -> bytes:
        return gzip.compress(plain, 9 if self.level is None else self.level, mtime=0)

    def _unpacked(self, data: bytes, limit: int) -> bytes | None:
        return _inflated(data, limit, zlib.MAX_WBITS | 16)


def _inflated(data: bytes, limit: int, window_bits: int) -> bytes | None:
    inflater = zlib.decompressobj(window_bits)
    plain = inflater.decompress(data, limit + 1)
    if len(plain) > limit:
        return None
    if not inflater.eof or inflater.unused_data:
        raise ValueError("incomplete" if not inflater.eof else "followed by other bytes")
    return plain


@explained_constructor
class Lz4(Compressed[T]):
    """A frame of LZ4. It needs `keywright[lz4]`."""

    form = "lz4"
    _levels = range(17)

    def recognises(self, data: bytes) -> bool:
        return data.startswith(b"\x04\x22\x4d\x18")

    def _packed(self, plain: bytes) -> bytes:
        packed: bytes = _lz4_frame().compress(plain, compression_level=self.level or 0)
        return packed

    def _unpacked(self, data: bytes, limit: int) -> bytes | None:
        unpacker = _lz4_frame().LZ4FrameDecompressor()
        plain: bytes = unpacker.decompress(data, limit + 1)
        if len(plain) > limit:
            return None
        if not unpacker.eof or unpacker.unused_data:
            raise ValueError("incomplete" if not unpacker.eof else "followed by other bytes")
        return plain

    def _check_installed(self) -> None:
        _lz4_frame()


@explained_constructor
class Zstd(Compressed[T]):
    """A frame of Zstandard. It needs `keywright[zstd]`."""

    form = "zstd"
    _levels = range(1, 23)

    def __init__(
        self, inner: Codec[T], *, level: int | None = None, min_size: int = 64, max_size: int = _LARGEST
    ) -> None:
        super().__init__(inner, level=level, min_size=min_size, max_size=max_size)
        self._contexts = _Contexts(3 if level is None else level)

    def recognises(self, data: bytes) -> bool:
        return data.startswith(b"\x28\xb5\x2f\xfd")

    def _packed(self, plain: bytes) -> bytes:
        return self._contexts.compressor.compress(plain)

    def _unpacked(self, data: bytes, limit: int) -> bytes | None:
        # decompress() ignores max_output_size where the frame declares its own size.
        size = _zstandard().frame_content_size(data)
        if size < 0:
            size = self._length(data, limit)
        if size > limit:
            return None
        # A limit of 0 would be none.
        return self._contexts.decompressor.decompress(
            data, max_output_size=max(size, 1), allow_extra_data=False
        )

    def _length(self, data: bytes, limit: int) -> int:
        """Return how many bytes a frame that does not declare its size unpacks to; stop above a limit."""
        length = 0
        with self._contexts.decompressor.stream_reader(data) as stream:
            while length <= limit and (part := stream.read(_STEP)):
                length += len(part)
        return length

    def _check_installed(self) -> None:
        _zstandard()


class _Contexts(threading.local):
    """A compressor and a decompressor per thread: zstandard's own are not safe to share."""

    def __init__(self, level: int) -> None:
        self.level = level

    @cached_property
    def compressor(self) -> zstandard.ZstdCompressor:
        compressor: zstandard.ZstdCompressor = _zstandard().ZstdCompressor(level=self.level)
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


@cache
def _lz4_frame() -> ModuleType:
    with dependencies_of("a compressed value", install="keywright[lz4]"):
        import lz4.frame
    return lz4.frame  # type: ignore[no-any-return]  # it has no types
