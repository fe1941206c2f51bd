"""Members, presences and children cut out of a guild's bytes are those that decoding finds."""

from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest

from keywright_discord import entities, interpreter
from keywright_discord.changes import (
    Change,
    KeepMembers,
    KeepPresences,
    Put,
    PutMembers,
    PutPresences,
    PutUsers,
    ReceiveChunk,
    ReplaceAll,
    SyncThreads,
)
from keywright_discord.interpreter import BotSession, interpret
from keywright_discord.member_splitter import (
    SplitMembers,
    SplitPresences,
    elements,
    lift_members,
    split_bodies,
    split_members,
)
from keywright_discord.raw_json import PayloadError, body_bytes

from .hostile import genuine, hostile

COUNT = 3000
LISTS = [
    event for event in genuine(seed=21, count=3000) if event[0] in ("GUILD_CREATE", "GUILD_MEMBERS_CHUNK")
]


def test_cutting_and_decoding_find_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    events = LISTS + list(hostile(LISTS, seed=22, count=COUNT))
    cut = [_found(event, data) for event, data in events]
    monkeypatch.setattr(interpreter, "lift_members", lambda _: None)
    monkeypatch.setattr(
        entities,
        "split_members",
        lambda given, what: (SplitMembers([], [], []), elements(given.get("members"), what)),
    )
    monkeypatch.setattr(entities, "split_presences", lambda bodies, _: (SplitPresences([], [], []), bodies))
    monkeypatch.setattr(entities, "placed_child", lambda *_, **__: None)
    for (event, data), quick in zip(events, cut, strict=True):
        assert quick == _found(event, data), (event, data)
    assert sum(each is not None for each in cut) > COUNT // 5


@pytest.mark.parametrize(
    "odd",
    [
        b'{"roles":[]}',
        b'{"user":{"id":"1"},"roles":[]}',
        b'{"user":{"id":"1","username":"a"},"roles":[],"permissions":"1"}',
        b'{"user":{"id":"1","username":"a"},"user":{"id":"1","username":"a"}}',
        b'{"user":{"id":"01","username":"a"},"roles":[]}',
        b'{"nick":{"a":1},"user":{"id":"1","username":"a"}}',
        b'{ "user":{"id":"1","username":"a"}}',
    ],
)
def test_an_odd_member_is_left_out_and_the_others_are_not(odd: bytes) -> None:
    plain = [b'{"user":{"id":"%d","username":"a"},"nick":null}' % number for number in range(2, 12)]
    array = b"[%b]" % b",".join([*plain[:3], odd, *plain[3:]])
    split, others = _split(array)
    assert others == [odd]
    assert split.people == [str(number) for number in range(2, 12)]
    assert set(split.rests) == {b'{"nick":null}'}


@pytest.mark.parametrize("nested", [b'[{},{"user":%b,"y":1}]', b'[{"user":%b,"y":1}]', b'{"user":%b,"y":1}'])
def test_what_looks_like_the_next_member_is_not_taken_for_it(nested: bytes) -> None:
    first, second = b'{"id":"1","username":"a"}', b'{"id":"2","username":"b"}'
    odd = b'{"user":%b,"x":%b}' % (first, nested % second)
    split, others = _split(b'[%b,{"user":%b,"z":1}]' % (odd, second))
    assert others == [odd]
    assert (split.people, split.users, split.rests) == (["2"], [second], [b'{"z":1}'])


def test_the_user_may_stand_anywhere_in_a_member() -> None:
    user = b'{"id":"1","username":"a}"}'
    bodies = [b'{"nick":"x","user":%b,"deaf":true}' % user, b'{"nick":"x","user":%b}' % user]
    split, others = split_bodies(bodies)
    assert others == []
    assert split.users == [user, user]
    assert split.rests == [b'{"nick":"x","deaf":true}', b'{"nick":"x"}']


def test_a_user_within_a_member_is_not_taken_for_the_next_member() -> None:
    user = b'{"id":"2","username":"b"}'
    first = b'{"user":{"id":"1","username":"a"},"x":[{"y":1},{"user":%b,"z":1}]}' % user
    second = b'{"nick":"x","user":%b}' % user
    split, others = _split(b"[%b,%b]" % (first, second))
    assert others == [first]
    assert split.rests == [b'{"nick":"x"}']


MEMBER = b'{"user":{"id":"1","username":"a"},"x":{"y":{}},"nick":"}]"}'


@pytest.mark.parametrize("count", [1, 2])
@pytest.mark.parametrize(
    ("before", "after"), [(b'"id":"7",', b""), (b"", b',"z":[{"user":1}]'), (b'"a":{"members":[]},', b"")]
)
def test_members_are_lifted_out_of_a_payload(before: bytes, after: bytes, count: int) -> None:
    bodies = b",".join([MEMBER.replace(b'"nick":"}]"', b'"nick":null')] * count)
    lifted = lift_members(b'{%b"members":[%b]%b}' % (before, bodies, after))
    assert lifted is not None
    assert lifted.members.rests == [b'{"x":{"y":{}},"nick":null}'] * count
    rest = b'{%b"members":[]%b}' % (before, after)
    assert lifted == msgspec.json.decode(rest, type=dict[str, msgspec.Raw])


@pytest.mark.parametrize(
    "payload",
    [
        b'{"members":[%b]}' % MEMBER,  # the end of an array in its text
        b'{"a":{"members":[{"user":{"id":"1","username":"a"},"b":1}]},"members":[%b]}' % MEMBER,
        b'{"a":{"members":[{"user":{"id":"1","username":"a"},"b":1}]},"members":[]}',
        b'{"a":{"members":[{"user":{"id":"1","username":"a"},"b":1}]}}',
        b'{"members":[{"user":{"id":"1","username":"a"},"b":[{"c":1}],"d":1}]}',
        b'{"members":[{"user":{"id":"1","username":"a"},"b":1}],"members":[{"user":{"id":"2","username":"a"},"b":1}]}',
        b'{"members":[{"user":{"id":"1","username":"a"},"b":1}],"members":[]}',
        b'{"members":[{"user":{"id":"1","username":"a"}}]}',
        b'{"members":[{"user":{"id":"1","username":"a"},"b":1}',
        b'"members":[{"user":',
    ],
)
def test_members_of_any_other_form_are_left_where_they_are(payload: bytes) -> None:
    assert lift_members(payload) is None


def _split(array: bytes) -> tuple[SplitMembers, list[bytes]]:
    return split_members({"members": msgspec.Raw(array)}, "members")


def _found(event: str, data: bytes) -> list[Any] | None:
    """Return the puts of an event, one by one and in a fixed order; None if it is refused."""
    try:
        changes = interpret(event, data, BotSession("5"))
    except PayloadError:
        return None
    return sorted((row for change in changes for row in _rows(change)), key=repr)


def _rows(change: Change) -> list[Any]:
    match change:
        case PutUsers():
            whole = zip(change.people, change.users, strict=True)
            return [("user", (person,), _read(user), _read(user)) for person, user in whole]
        case PutMembers():
            lists = zip(change.people, change.data, change.normal, strict=True)
            return [
                ("member", (change.guild, person), _read(data), _read(normal))
                for person, data, normal in lists
            ]
        case KeepMembers() | KeepPresences():
            return [("kept", type(change), change.guild, sorted(change.people))]
        case ReceiveChunk():
            return [("chunk", change.guild, change.request, change.index, sorted(change.people))]
        case SyncThreads():
            return [("synced", change.guild), *(row for put in change.puts for row in _rows(put))]
        case PutPresences():
            return [row for put in change.puts() for row in _rows(put)]
        case ReplaceAll():
            return [
                ("all", change.kind.value, change.guild),
                *(row for put in change.puts for row in _rows(put)),
            ]
        case Put():
            return [(change.kind.value, change.ids, _read(change.data), _read(change.normal))]
        case _:
            return [repr(change)]


def _read(body: Any) -> Any:
    return json.loads(body_bytes(body), parse_float=str)
