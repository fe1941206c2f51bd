"""Commands packed into bytes: many at once, in less time than one by one."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import chain
from typing import Any

import hiredis

from keywright.engine.columns import packed_alike
from keywright.keyspace.wires import Arguments, CommandBatch

__all__ = ["Rows", "joined", "pack_command"]

# hiredis declares a tuple of one element; it takes any number.
pack_command: Callable[[tuple[Any, ...]], bytes] = hiredis.pack_command

# The server works on these commands while the next are packed.
ROWS_A_CHUNK = 250
FRAME_BYTES = 30
"""What a command has beside its name and its operands, about."""
SAMPLED_NAMES = 100


class _Heads(dict[bytes, bytes]):
    """The packed beginnings of commands with a number of arguments, by verb."""

    def __init__(self, count: int) -> None:
        self.count = count

    def __missing__(self, verb: bytes) -> bytes:
        head = self[verb] = b"*%d\r\n$%d\r\n%b" % (self.count, len(verb), verb)
        return head


# By the number of operands.
_HEADS = _HEADS_OF_2, _HEADS_OF_3, _HEADS_OF_4, _HEADS_OF_5 = _Heads(2), _Heads(3), _Heads(4), _Heads(5)
_COMMANDS_OF_1 = {verb: pack_command((verb,)) for verb in (b"MULTI", b"EXEC", b"ASKING")}
_SEPARATORS = [b"\r\n$%d\r\n" % length for length in range(4096)]


class Rows:
    """A batch that is packed while its first commands are sent.

    It takes six tenths of the time of `joined` if all commands have the same verb, and one or two operands.
    """

    __slots__ = ("_batch", "_operands", "_types")

    def __init__(self, batch: CommandBatch) -> None:
        self._batch = batch
        self._operands = list(batch.operands)
        self._types = set(map(type, chain.from_iterable(self._operands)))

    def are_sendable(self) -> bool:
        """Return whether all can be packed for sure: then the first may be sent before the last is packed."""
        if int in self._types:
            numbers = [x for each in self._operands for x in each if type(x) is int]
            if max(numbers) > LONGEST_NUMBER or min(numbers) < -LONGEST_NUMBER:
                return False  # Python may refuse to write it
        return self._types <= _SENDABLE

    def size(self) -> int:
        """Return the packed size in bytes, about: the names are taken to be as long as a sample of them."""
        count = len(self._batch)
        names = self._batch.names(slice(None, None, count // SAMPLED_NAMES + 1))
        frames = sum(map(len, names)) * count // len(names) + FRAME_BYTES * count
        if self._types <= _BYTES:
            return frames + sum(map(len, chain.from_iterable(self._operands)))
        return frames + sum(len(x) if type(x) is bytes else 8 for each in self._operands for x in each)

    def chunks(self) -> Iterator[bytes]:
        for start in range(0, len(self._batch), ROWS_A_CHUNK):
            yield b"".join(self.pieces(slice(start, start + ROWS_A_CHUNK)))

    def pieces(self, part: slice = slice(None)) -> list[bytes]:
        """Return the pieces of a part of the commands."""
        verbs, names, operands = self._batch.verbs(part), self._batch.names(part), self._operands[part]
        pieces = None
        if self._types <= _BYTES and verbs.count(verbs[0]) == len(verbs):
            pieces = _alike(verbs[0], names, operands)
        if pieces is None:
            pieces = packed_alike(operands, verbs, names)
        return joined(verbs, names, operands) if pieces is None else pieces


_BYTES = frozenset([bytes])
_SENDABLE = frozenset([bytes, int, float])
LONGEST_NUMBER = 2**64


def _alike(verb: bytes, names: Sequence[bytes], operands: Sequence[Arguments]) -> list[bytes] | None:
    """Return the pieces of commands with one verb and the same number of operands, up to two.

    Return None if they have more, or several numbers of them, or if something is long.
    """
    widths = set(map(len, operands))
    width = widths.pop()
    if widths or width > 2:
        return None
    head = _HEADS[width][verb]
    pieces: list[bytes] = []
    extend, separators = pieces.extend, _SEPARATORS
    try:
        if width == 0:
            for name in names:
                extend((head, separators[len(name)], name, b"\r\n"))
        elif width == 1:
            for name, (value,) in zip(names, operands, strict=True):
                extend((head, separators[len(name)], name, separators[len(value)], value, b"\r\n"))
        else:
            for name, (first, last) in zip(names, operands, strict=True):
                one, two, three = separators[len(name)], separators[len(first)], separators[len(last)]
                extend((head, one, name, two, first, three, last, b"\r\n"))
    except IndexError:
        return None
    return pieces


def joined(verbs: Sequence[bytes], names: Sequence[Any], rests: Sequence[Arguments | None]) -> list[bytes]:
    """Return the pieces of commands: verbs, names, and what follows, which is None for a verb alone.

    hiredis packs one command at a time. The short shapes that make up most batches are cheaper as pieces
    of one join: 0.10 against 0.26 µs for a GET, 0.17 against 0.37 µs for a SET of 250 bytes, 0.26 against
    0.58 µs for a ZADD.
    """
    pieces: list[bytes] = []
    extend = pieces.extend
    separators = _SEPARATORS
    heads_of_2, heads_of_3, heads_of_4, heads_of_5 = _HEADS_OF_2, _HEADS_OF_3, _HEADS_OF_4, _HEADS_OF_5
    shared: Arguments = ()
    tail = b""
    for verb, name, rest in zip(verbs, names, rests, strict=True):
        if rest is None:
            pieces.append(_COMMANDS_OF_1.get(verb) or pack_command((verb,)))
            continue
        count = len(rest)
        try:
            if count == 0:
                extend((heads_of_2[verb], separators[len(name)], name, b"\r\n"))
                continue
            if count == 1:
                (value,) = rest
                value = b"%d" % value if type(value) is int else value
                if type(value) is bytes and type(name) is bytes:
                    first, second = separators[len(name)], separators[len(value)]
                    extend((heads_of_3[verb], first, name, second, value, b"\r\n"))
                    continue
            elif count == 3 and verb in PAGING:
                # The first pages of many collections: all but the name is packed once.
                if rest != shared:
                    shared, tail = rest, _tail(rest)
                extend((heads_of_5[verb], separators[len(name)], name, tail))
                continue
            elif count == 2:
                first, second = rest
                first = b"%d" % first if type(first) is int else first
                second = b"%d" % second if type(second) is int else second
                if type(name) is type(first) is type(second) is bytes:
                    one, two = separators[len(name)], separators[len(first)]
                    three = separators[len(second)]
                    extend((heads_of_4[verb], one, name, two, first, three, second, b"\r\n"))
                    continue
            elif count == 3:
                first, second, third = rest
                second = b"%r" % second if type(second) is float else second
                third = b"%d" % third if type(third) is int else third
                if type(name) is type(first) is type(second) is type(third) is bytes:
                    one, two = separators[len(name)], separators[len(first)]
                    three, four = separators[len(second)], separators[len(third)]
                    extend((heads_of_5[verb], one, name, two, first, three, second, four, third, b"\r\n"))
                    continue
        except IndexError:
            pass  # longer than any separator
        _add_command((verb, name, *rest), pieces)
    return pieces


PAGING = frozenset([b"HSCAN", b"SSCAN", b"ZSCAN"])


def _tail(arguments: Arguments) -> bytes:
    """Return the packed arguments of a command after its key."""
    packed = pack_command(arguments)
    return b"\r\n" + packed[packed.index(b"\n") + 1 :]


def _add_command(arguments: Arguments, pieces: list[bytes]) -> None:
    """Add one command; a long one (MSET of a thousand keys) in pieces, in 0.7 of hiredis's time."""
    if len(arguments) < 64 or set(map(type, arguments)) != {bytes}:
        pieces.append(pack_command(arguments))
        return
    woven = [b""] * (2 * len(arguments))
    try:
        woven[::2] = [_SEPARATORS[length] for length in map(len, arguments)]
    except IndexError:
        woven[::2] = [b"\r\n$%d\r\n" % length for length in map(len, arguments)]
    woven[1::2] = arguments
    pieces.append(b"*%d" % len(arguments))
    pieces += woven
    pieces.append(b"\r\n")
