"""Members and other children of a guild, split out of its bytes without decoding them field by field.

A large GUILD_CREATE is thousands of members. Each is stored as it came, without its user: so the bytes
of the user are cut out of the bytes of the member. If the bytes are not in the compact form that Discord
sends (white space, repeated fields), these functions return None, and the caller decodes the fields.
"""

from __future__ import annotations

from typing import NamedTuple, cast

import msgspec
from msgspec import UNSET, UnsetType

from keywright_discord.raw_json import Fields, PayloadError, Snowflakes, absent, identity


class _Member(msgspec.Struct, gc=False):
    user: msgspec.Raw
    permissions: msgspec.Raw | UnsetType = UNSET


class _Payload(msgspec.Struct):
    members: list[_Member]


class _User(msgspec.Struct, gc=False):
    id: str
    username: msgspec.Raw
    member: msgspec.Raw | UnsetType = UNSET


class _Who(msgspec.Struct, gc=False):
    id: str


class _Presence(msgspec.Struct, gc=False):
    user: _Who
    status: str
    guild_id: msgspec.Raw | UnsetType = UNSET


class _Child(msgspec.Struct):
    id: str | int
    guild_id: msgspec.Raw | UnsetType = UNSET
    user: msgspec.Raw | UnsetType = UNSET


_USER_FIRST = b'{"user":'
_WHO = b'{"user":{"id":"%b"}'
_USER_LATER = b',"user":'
_NEXT_USER = b'},{"user":'
_USER = b'"user"'
_MEMBERS_FIRST = b'"members":[{"user":'
_NOBODY = msgspec.Raw(b"[]")
_COMMA = 44

_raws = msgspec.json.Decoder(list[msgspec.Raw]).decode
_members = msgspec.json.Decoder(list[_Member]).decode
_payload = msgspec.json.Decoder(_Payload).decode
_fields = msgspec.json.Decoder(Fields).decode
_user = msgspec.json.Decoder(_User).decode
_presences = msgspec.json.Decoder(list[_Presence]).decode
_presence = msgspec.json.Decoder(_Presence).decode
_child = msgspec.json.Decoder(_Child).decode


def elements(raw: msgspec.Raw | None, what: str) -> list[bytes]:
    """Return the bytes of each element of an array; none when it is absent or null."""
    if absent(raw):
        return []
    assert raw is not None
    try:
        return [bytes(each) for each in _raws(raw)]
    except (msgspec.MsgspecError, RecursionError) as error:
        raise PayloadError(what, "an array", bytes(raw)) from error


class SplitMembers(NamedTuple):
    """The ids of members' users, the users, and the members without them."""

    people: list[str]
    users: list[bytes]
    rests: list[bytes]


def split_members(given: Fields, what: str) -> tuple[SplitMembers, list[bytes]]:
    """Split the members of a payload. Return the parts, and the members that are not in the compact form."""
    if isinstance(given, Lifted):
        return given.members, []
    raw = given.get("members")
    split = None if absent(raw) else _split_array(bytes(raw or b""))
    return (split, []) if split is not None else split_bodies(elements(raw, what))


def split_bodies(bodies: list[bytes]) -> tuple[SplitMembers, list[bytes]]:
    """Split members whose users may stand anywhere in them.

    They are tried together, then by halves: a few odd ones among many do not slow down the rest.
    """
    split = _split_together(bodies)
    if split is not None:
        return split, []
    if len(bodies) < 2:
        return SplitMembers([], [], []), bodies
    middle = len(bodies) // 2
    first, odd = split_bodies(bodies[:middle])
    more, more_odd = split_bodies(bodies[middle:])
    both = SplitMembers(first.people + more.people, first.users + more.users, first.rests + more.rests)
    return both, odd + more_odd


def _split_together(bodies: list[bytes]) -> SplitMembers | None:
    members = _members_of(_array(bodies)) or []
    users = [bytes(member.user) for member in members]
    rests = [_without_user(*pair) for pair in zip(bodies, users, strict=False)]
    people = None if None in rests else _people(users)
    return None if not people else SplitMembers(people, users, cast("list[bytes]", rests))


def _split_array(raw: bytes) -> SplitMembers | None:
    """Split an array of members that all begin with their user, as Discord sends them: 1.2 µs per member.

    The array is cut where a user ends and where the next begins. Each member has exactly one field called
    `user`, so the pieces are the members.
    """
    if not raw.startswith(b"[" + _USER_FIRST) or not raw.endswith(b"}]"):
        return None
    members = _members_of(raw)
    cut = _cut(raw, 0, len(raw) - 2, members) if members else None
    return None if cut is None else cut[0]


class Lifted(dict[str, msgspec.Raw]):
    """The fields of a payload whose members were cut out of it: its `members` is an empty array."""

    def __init__(self, found: Fields, members: SplitMembers) -> None:
        super().__init__(found)
        self.members = members


def lift_members(data: bytes) -> Lifted | None:
    """Return the fields of a payload with its members cut out, or None if they are not in the compact form.

    A large guild is little else than members, so they are read once, and not once more to find their end.
    """
    begin = data.find(_MEMBERS_FIRST) + len(b'"members":')
    try:
        members = _payload(data).members if data.startswith(b"[", begin) else []
        cut = _cut(data, begin, None, members) if _without_permissions(members) else None
        if cut is None:
            return None
        split, end = cut
        found = _fields(b"%b[]%b" % (data[:begin], data[end:]))
        _fields(split.rests[-1])  # raises if the last member does not end where it was cut
    except (msgspec.MsgspecError, RecursionError, IndexError):
        return None
    # If they were the members of a nested object, those of the payload would still be there.
    return Lifted(found, split) if found.get("members") == _NOBODY else None


def _cut(raw: bytes, begin: int, last: int | None, members: list[_Member]) -> tuple[SplitMembers, int] | None:
    """Cut the members out of an array that begins at `begin`. Return them and the end of the array, or None
    if they are not in the compact form.

    Mostly the next object is the next member, so one character is searched for, which runs at memory speed.
    Text without an object has no second user either, or that one would be the member's. `last` is the
    position of the last brace; if it is None, the first brace before the end of an array is taken.
    """
    find, begins = raw.find, raw.startswith
    start = begin + len(_USER_FIRST) + 1
    *others, final = [len(member.user) for member in members]
    users: list[bytes] = []
    rests: list[bytes] = []
    for length in others:
        end = start + length
        if raw[end] != _COMMA:
            return None
        users.append(raw[start:end])
        stop = find(b"{", end) - 2
        if not begins(_NEXT_USER, stop):
            stop = find(_NEXT_USER, end)
            if stop < 0 or _USER in raw[end:stop]:
                return None
        rests.append(b"{" + raw[end + 1 : stop + 1])
        start = stop + len(_NEXT_USER)
    end = start + final
    stop = find(b"}]", end) if last is None else last
    if raw[end] != _COMMA or stop < end or _USER in raw[end:stop]:
        return None
    users.append(raw[start:end])
    rests.append(b"{" + raw[end + 1 : stop + 1])
    people = _people(users)
    return None if people is None else (SplitMembers(people, users, rests), stop + len(b"}]"))


def _members_of(raw: bytes) -> list[_Member] | None:
    """Return the members of an array, or None unless each has a user and none has permissions."""
    try:
        members = _members(raw)
    except (msgspec.MsgspecError, RecursionError):
        return None
    return members if _without_permissions(members) else None


def _without_permissions(members: list[_Member]) -> bool:
    """Return whether there are members, none of which has permissions."""
    return bool(members) and not [member for member in members if member.permissions is not UNSET]


def _people(users: list[bytes]) -> Snowflakes | None:
    """Return the ids of users, or None unless all of them are complete users.

    A part of an object does not decode as one, so this also proves that the users were cut correctly.
    """
    try:
        about = list(map(_user, users))
        people = Snowflakes([each.id for each in about if each.member is UNSET])
    except (msgspec.MsgspecError, RecursionError, ValueError):
        return None
    return people if len(people) == len(users) else None


def _array(bodies: list[bytes]) -> bytes:
    """Join bodies to an array with one copy: for half a megabyte the new pages cost more than the copy."""
    if len(bodies) < 2:
        return b"[%b]" % b"".join(bodies)
    return b",".join([b"[" + bodies[0], *bodies[1:-1], bodies[-1] + b"]"])


def _without_user(body: bytes, user: bytes) -> bytes | None:
    """Return a member without its user, or None if another field in it is called `user`."""
    if body.startswith(b"%b%b," % (_USER_FIRST, user)):
        rest = b"{" + body[len(_USER_FIRST) + len(user) + 1 :]
    else:
        start = body.find(_USER_LATER)
        end = start + len(_USER_LATER) + len(user)
        # No object opens before it, so it is a field of the member itself.
        if start < 0 or body[end - len(user) : end] != user or body.count(b"{", 0, start) != 1:
            return None
        rest = body[:start] + body[end:]
    return None if b'"user"' in rest else rest


class SplitPresences(NamedTuple):
    """The user ids of presences, the presences as received, and normalised: with guild and user id."""

    people: list[str]
    bodies: list[bytes]
    normal: list[bytes]


def split_presences(bodies: list[bytes], guild: str) -> tuple[SplitPresences, list[bytes]]:
    """Split presences. Return the parts, and those not in the compact form, such as offline ones."""
    split = SplitPresences([], [], [])
    odd = []
    lead = b'{"guild_id":"%b","user":"' % guild.encode()
    for body, found in zip(bodies, _presences_of(bodies), strict=True):
        rest = None if found is None else _after_user(body, found)
        if found is None or rest is None:
            odd.append(body)
            continue
        split.people.append(found.user.id)
        split.bodies.append(body)
        split.normal.append(b'%b%b"%b' % (lead, found.user.id.encode(), rest))
    return split, odd


def _presences_of(bodies: list[bytes]) -> list[_Presence | None]:
    """Decode presences together, or one by one if some are malformed; those are None."""
    try:
        return list(_presences(_array(bodies)))
    except (msgspec.MsgspecError, RecursionError):
        return [_presence_of(body) for body in bodies]


def _presence_of(body: bytes) -> _Presence | None:
    try:
        return _presence(body)
    except (msgspec.MsgspecError, RecursionError):
        return None


def _after_user(body: bytes, found: _Presence) -> bytes | None:
    """Return what follows the user in a presence that begins with the user's id, or None if it does not."""
    person = found.user.id
    user = _WHO % person.encode()
    if found.status == "offline" or found.guild_id is not UNSET or not body.startswith(user):
        return None
    rest = body[len(user) :]
    return rest if identity(person, "presence.user.id") and _USER not in rest else None


def placed_child(body: bytes, guild: str, *, with_guild: bool) -> tuple[str, bytes] | None:
    """Return the id of a child and its bytes, with the guild added if it lacks one; None if it has a user."""
    try:
        found = _child(body)
    except (msgspec.MsgspecError, RecursionError):
        return None
    if found.user is not UNSET or not body.startswith(b"{"):
        return None
    if with_guild and found.guild_id is UNSET:
        body = b'{"guild_id":"%b",%b' % (guild.encode(), body[1:])
    return identity(found.id, "id"), body
