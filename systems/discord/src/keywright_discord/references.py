"""The references of each document: the inverse of normalisation, for both layouts.

A reference to a document that is not stored becomes `{"id": …}`, so a hydrated reference is always an
object. A child that was removed is put back only if it is found (docs/resolutions.md#a83).
An object in the place of a reference stays as it is, and so does `{}` where a writer with cjson made that
of an empty list (docs/resolutions.md#a10).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, Protocol

from keywright_discord.document_reads import Hole, Object
from keywright_discord.draft import Place
from keywright_discord.entities import WEBHOOK_AUTHOR
from keywright_discord.raw_json import reference

Holes = Iterator[Hole]


class Places(Protocol):
    """The places of the documents that others refer to; None for those that a layout does not store."""

    def user(self, user: str) -> Place: ...

    def member(self, guild: str, user: str) -> Place: ...

    def message(self, channel: str, message: str) -> Place: ...

    def thread(self, thread: str) -> Place: ...

    def thread_member(self, thread: str, user: str) -> Place | None: ...


class References:
    """The holes of each document in one layout; a thread shows the membership of `bot`."""

    def __init__(self, places: Places, bot: str | None = None) -> None:
        self.places = places
        self.bot = bot

    def of_message(self, found: Object, *, deep: bool = True) -> Holes:
        """Yield the holes of a message; with `deep` also those of the message that it answers."""
        guild = reference(found.get("guild_id"))
        if WEBHOOK_AUTHOR in found:
            found["author"] = found.pop(WEBHOOK_AUTHOR)
        author = found.get("author")
        yield from self._user(found, "author")
        yield from self._member(found, guild, _id_of(author))
        yield from self._mentions(found, guild)
        yield from self._invoked(found.get("interaction"), guild)
        yield from self._invoked(found.get("interaction_metadata"), None)
        yield from self._thread(found)
        yield from self._message(found, "referenced_message", _channel_of(found) if deep else None)

    def of_member(self, user: str, found: Object) -> Holes:
        if "user" not in found:
            yield Hole(self.places.user(user), _into(found, "user"), _unknown(found, "user", user))

    def of_voice_state(self, guild: str, user: str, found: Object) -> Holes:
        yield from self._whole_member(found, guild, user)

    def of_thread(self, thread: str, found: Object) -> Holes:
        """Yield the bot's own membership of a thread; the others are a listing."""
        place = None if self.bot is None else self.places.thread_member(thread, self.bot)
        if place is not None and "member" not in found:
            yield Hole(place, _into(found, "member"))

    def of_thread_member(self, guild: str | None, user: str, found: Object) -> Holes:
        if guild is not None:
            yield from self._whole_member(found, guild, user)

    def of_presence(self, found: Object) -> Holes:
        """Yield the user of a presence; if it is a partial user, its fields are the newer ones."""
        partial = found.get("user")
        yield from self._user(found, "user")
        if isinstance(partial, dict) and (user := _id_of(partial)) is not None:
            yield Hole(self.places.user(user), lambda known: found.update(user={**known, **partial}))

    def of_people(self, found: Object, *names: str) -> Holes:
        """Yield the users in these fields, and nothing else."""
        for name in names:
            yield from self._user(found, name)

    def of_integration(self, found: Object) -> Holes:
        yield from self._user(found, "user")
        if isinstance(application := found.get("application"), dict):
            yield from self._user(application, "bot")

    def of_application(self, found: Object) -> Holes:
        yield from self.of_people(found, "owner", "bot")
        team = found.get("team")
        members = team.get("members") if isinstance(team, dict) else None
        for member in members if isinstance(members, list) else ():
            if isinstance(member, dict):
                yield from self._user(member, "user")

    def of_interaction(self, found: Object) -> Holes:
        """Yield user, member and message of an interaction, and the people in its options."""
        guild = reference(found.get("guild_id"))
        user = reference(found.get("user"))
        yield from self._user(found, "user")
        if guild is not None and user is not None:
            yield from self._whole_member(found, guild, user)
        yield from self._message(found, "message", reference(found.get("channel_id")))
        data = found.get("data")
        resolved = data.get("resolved") if isinstance(data, dict) else None
        if isinstance(resolved, dict):
            yield from self._resolved(resolved, guild)

    def _user(self, found: Object, name: str) -> Holes:
        user = reference(found.get(name))
        if user is not None:
            yield Hole(self.places.user(user), _into(found, name), _unknown(found, name, user))

    def _member(self, found: Object, guild: str | None, user: str | None) -> Holes:
        """Yield a member beside its user, so without one."""
        if guild is not None and user is not None and "member" not in found:
            yield Hole(self.places.member(guild, user), _into(found, "member"))

    def _whole_member(self, found: Object, guild: str, user: str) -> Holes:
        """Yield a member with its user."""
        if "member" not in found:
            yield Hole(self.places.member(guild, user), _into(found, "member"))
        yield Hole(
            self.places.user(user),
            lambda known: _beside(found.get("member"), "user", known),
            lambda: _beside(found.get("member"), "user", {"id": user}),
        )

    def _mentions(self, found: Object, guild: str | None) -> Holes:
        mentions = found.get("mentions")
        if not isinstance(mentions, list):
            return
        for place, each in enumerate(mentions):
            user = reference(each)
            if user is not None:
                yield Hole(self.places.user(user), _into(mentions, place), _unknown(mentions, place, user))
            user = user or _id_of(each)
            if guild is not None and user is not None:
                yield Hole(self.places.member(guild, user), self._mentioned(mentions, place))

    @staticmethod
    def _mentioned(mentions: list[Any], place: int) -> Any:
        # Looked up when the hole is filled: by then the id has become the user, if that is stored.
        return lambda member: _beside(mentions[place], "member", member)

    def _invoked(self, found: Any, guild: str | None) -> Holes:
        """Yield the people of the interaction that a message answers; only the older form has a member."""
        if not isinstance(found, dict):
            return
        user = reference(found.get("user"))
        yield from self.of_people(found, "user", "target_user")
        yield from self._member(found, guild, user)
        yield from self._invoked(found.get("triggering_interaction_metadata"), None)

    def _thread(self, found: Object) -> Holes:
        thread = reference(found.get("thread"))
        if thread is None:
            return
        yield Hole(self.places.thread(thread), _into(found, "thread"), _unknown(found, "thread", thread))
        own = None if self.bot is None else self.places.thread_member(thread, self.bot)
        if own is not None:
            yield Hole(own, lambda member: _beside(found["thread"], "member", member))

    def _message(self, found: Object, name: str, channel: str | None) -> Holes:
        """Yield a message with its own holes; without a channel it is known by its id only."""
        message = reference(found.get(name))
        if message is None:
            return
        unknown = _unknown(found, name, message)
        if channel is None:
            unknown()
            return
        place = self.places.message(channel, message)
        yield Hole(place, _into(found, name), unknown, lambda inner: self.of_message(inner, deep=False))

    def _resolved(self, resolved: Object, guild: str | None) -> Holes:
        """Make arrays of ids objects by id again, as Discord sends them, and yield their holes."""
        for name in ("users", "members"):
            ids = resolved.get(name)
            if not isinstance(ids, list):
                continue
            by_id: Object = {each: each for each in ids if reference(each)} if name == "users" else {}
            resolved[name] = by_id
            for each in filter(None, map(reference, ids)):
                if name == "users":
                    yield Hole(self.places.user(each), _into(by_id, each), _unknown(by_id, each, each))
                elif guild is not None:
                    yield Hole(self.places.member(guild, each), _into(by_id, each))


def _id_of(value: object) -> str | None:
    return reference(value.get("id")) if isinstance(value, dict) else reference(value)


def _channel_of(found: Object) -> str | None:
    """Return the channel of the message that a message answers: its own, unless the reference has another."""
    answered = found.get("message_reference")
    channel = reference(answered.get("channel_id")) if isinstance(answered, dict) else None
    return channel or reference(found.get("channel_id"))


def _into(target: Any, name: str | int) -> Any:
    def fill(found: Object) -> None:
        target[name] = found

    return fill


def _unknown(target: Any, name: str | int, identity: str) -> Callable[[], None]:
    """Return what makes an object of an id whose document is not stored."""

    def leave() -> None:
        target[name] = {"id": identity}

    return leave


def _beside(target: object, name: str, found: Object) -> None:
    """Add a field to an object that has been filled in meanwhile, unless it has the field."""
    if isinstance(target, dict):
        target.setdefault(name, found)
