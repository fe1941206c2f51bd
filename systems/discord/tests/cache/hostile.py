"""Malformed gateway events: cut short, mistyped, renamed, repeated, nested, or not text at all."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from random import Random

import msgspec

from keywright_discord.traffic import EVERYDAY, Traffic

Event = tuple[str, bytes]

_VALUE = re.compile(rb'(?<=":)(?:"(?:[^"\\]|\\.)*"|-?[0-9.eE+]+|true|false|null|\[\]|\{\})')
_OPENED = re.compile(rb'(?<=":)[\[{]')
_FIELD = re.compile(rb'"[a-z_]+":')
_ID = re.compile(rb'"[0-9]{15,20}"')

VALUES = (
    *(b"null", b"true", b"false", b"0", b"-1", b"1", b"1.5", b"1e999", b"-0", b"NaN", b"Infinity"),
    *(b'""', b'"0"', b'"x"', b'"-1"', b'"007"', b'" 1"', b'"1.0"', b'"offline"', b'"null"', b"'1'"),
    *(b"18446744073709551615", b"18446744073709551616", b'"18446744073709551615"', b'"18446744073709551616"'),
    *(b"9" * 400, b'"' + b"9" * 400 + b'"', b'"' + b"a" * 5000 + b'"'),
    *(b"[]", b"{}", b"[null]", b"[{}]", b'[[]]', b'{"id":null}', b'{"id":"1"}', b'[{"id":"1"}]', b'{"":""}'),
    *(b'{"id":"1","username":null}', b'{"user":{"id":"1"}}', b'[{"user":{"id":"1","username":"a"}}]'),
    *(b'"\\ud800"', b'"\\udc00\\ud800"', b'"\\u0000"', b'"\\q"', b'"\xff\xfe"', b'"\xed\xa0\x80"', b'"\xc3"'),
    *(b'"\xef\xbc\x91"', '"🌊"'.encode(), b'"{1}"', b'"a:b"', b'"1\\n"', b'"*"', b'"\x01"', b"\xef\xbb\xbf1"),
    *(b"[" * 100 + b"]" * 100, b"[" * 3000 + b"]" * 3000, b'{"a":' * 3000 + b"1" + b"}" * 3000, b"[" * 3000),
)  # fmt: skip
FIELDS = (
    *(b'"id":', b'"guild_id":', b'"user":', b'"member":', b'"members":', b'"author":', b'"channel_id":'),
    *(
        b'"user_id":',
        b'"presences":',
        b'"roles":',
        b'"permissions":',
        b'"message_id":',
        b'"emoji":',
        b'"name":',
    ),
    *(b'"referenced_message":', b'"thread":', b'"threads":', b'"resolved":', b'"unavailable":', b'"status":'),
    *(
        b'"parent_id":',
        b'"member_count":',
        b'"shard":',
        b'"username":',
        b'"":',
        b'"\\u0069d":',
        b'"\\ud800":',
        b"id:",
    ),
)


def _cut(data: bytes, random: Random) -> bytes:
    return data[: random.randrange(len(data))]


def _flip(data: bytes, random: Random) -> bytes:
    place = random.randrange(len(data))
    return data[:place] + bytes([random.randrange(256)]) + data[place + 1 :]


def _lose(data: bytes, random: Random) -> bytes:
    start = random.randrange(len(data))
    return data[:start] + data[start + random.randrange(1, 40) :]


def _repeat(data: bytes, random: Random) -> bytes:
    start = random.randrange(len(data))
    end = start + random.randrange(1, 80)
    return data[:end] + data[start:]


def _replace(data: bytes, random: Random, what: re.Pattern[bytes], by: bytes) -> bytes:
    found = list(what.finditer(data))
    if not found:
        return by
    start, end = random.choice(found).span()
    return data[:start] + by + data[end:]


def _mistype(data: bytes, random: Random) -> bytes:
    return _replace(data, random, _VALUE, random.choice(VALUES))


def _mistake_id(data: bytes, random: Random) -> bytes:
    return _replace(data, random, _ID, random.choice(VALUES))


def _rename(data: bytes, random: Random) -> bytes:
    return _replace(data, random, _FIELD, random.choice(FIELDS))


def _add_field(data: bytes, random: Random) -> bytes:
    return _replace(data, random, _FIELD, random.choice(FIELDS) + random.choice(VALUES) + b',"x":')


def _turn(data: bytes, random: Random) -> bytes:
    """Replace an opening brace or bracket by another, and leave the rest."""
    return _replace(data, random, _OPENED, random.choice((b"[", b"{", b"[{", b"{[", b"null,", b'"x",')))


def _space(data: bytes, random: Random) -> bytes:
    return data.replace(
        random.choice((b":", b",", b"{", b"[")), random.choice((b" : ", b"\t,\n", b"{ ", b"[ "))
    )


def _whole(data: bytes, random: Random) -> bytes:
    return random.choice((b"", b" ", b"\x00", *VALUES))


MUTATIONS: tuple[Callable[[bytes, Random], bytes], ...] = (
    *(_cut, _flip, _lose, _repeat, _turn, _space),
    *(_mistype, _mistake_id, _rename, _add_field),
    *(_mistype, _mistake_id, _rename, _add_field),
)


def genuine(seed: int, count: int) -> list[Event]:
    """Return events of all sorts with equal weights, from a small world."""
    mix = dict.fromkeys(EVERYDAY, 1.0) | {"GUILD_CREATE": 0.5}
    encode = msgspec.json.Encoder().encode
    return [(event, encode(data)) for event, data in Traffic(seed).events(count, members=3, mix=mix)]


def hostile(events: list[Event], seed: int, count: int) -> Iterator[Event]:
    """Yield `count` genuine events, each mutated a few times; some are still valid."""
    random = Random(seed)
    for _ in range(count):
        event, data = random.choice(events)
        for _ in range(random.choice((1, 1, 1, 2, 3))):
            data = random.choice(MUTATIONS)(data, random) or b"{}"
        if random.random() < 0.01:
            data = _whole(data, random)
        if random.random() < 0.02:
            event, _ = random.choice(events)
        yield event, data
