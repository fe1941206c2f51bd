"""The references of each document: the inverse of normalisation, for both layouts.

A reference to a document that is not stored becomes `{"id": …}`, so a hydrated reference is always an
object. A child that was removed is put back only if it is found (docs/resolutions.md#a83).
An object in the place of a reference stays as it is, and so does `{}` where a writer with cjson made that
of an empty list (docs/resolutions.md#a10).
"""

from __future__ import annotations

from typing import Any, Protocol

from keywright_discord.document_reads import Address, Hole, Object
from keywright_discord.entities import WEBHOOK_AUTHOR
from keywright_discord.raw_json import reference

Holes = list[Hole]


class Addresses(Protocol):
    """The addresses of the documents that others refer to; None for those that a layout does not store."""

    def user(self, user: str) -> Address: ...

    def member(self, guild: str, user: str) -> Address: ...

    def message(self, channel: str, message: str) -> Address: ...

    def thread(self, thread: str) -> Address: ...

    def thread_member(self, thread: str, user: str) -> Address | None: ...


class References:
    """Adds the holes of each document in one layout to a list; a thread shows the membership of `bot`."""

    def __init__(self, addresses: Addresses, bot: str | None = None) -> None:
        self.at = addresses
        self.bot = bot

    def of_message(self, found: Object, holes: Holes, *, deep: bool = True) -> None:
        """Add the holes of a message; with `deep` also those of the message that it answers."""
        guild = reference(found.get("guild_id"))
        if WEBHOOK_AUTHOR in found:
            found["author"] = found.pop(WEBHOOK_AUTHOR)
        self._member(found, guild, self._user(found, "author", holes), holes)
        self._mentions(found, guild, holes)
        # Most messages have none of these.
        if "interaction" in found:
            self._invoked(found["interaction"], guild, holes)
        if "interaction_metadata" in found:
            self._invoked(found["interaction_metadata"], None, holes)
        if "thread" in found:
            self._thread(found, holes)
        if "referenced_message" in found:
            self._message(found, "referenced_message", _channel_of(found) if deep else None, holes)

    def of_member(self, user: str, found: Object, holes: Holes) -> None:
        if "user" not in found:
            holes.append(Hole(self.at.user(user), found, "user", user))

    def of_voice_state(self, guild: str, user: str, found: Object, holes: Holes) -> None:
        self._whole_member(found, guild, user, holes)

    def of_thread(self, thread: str, found: Object, holes: Holes) -> None:
        """Add the bot's own membership of a thread; the others are a listing."""
        own = self._own_membership(thread)
        if own is not None and "member" not in found:
            holes.append(Hole(own, found, "member"))

    def of_thread_member(self, guild: str | None, user: str, found: Object, holes: Holes) -> None:
        if guild is not None:
            self._whole_member(found, guild, user, holes)

    def of_presence(self, found: Object, holes: Holes) -> None:
        """Add the user of a presence; if it is a partial user, its fields are the newer ones."""
        user = self._user(found, "user", holes)
        partial = found.get("user")
        if isinstance(partial, dict) and user is not None:
            holes.append(Hole(self.at.user(user), found, "user", newer=partial))

    def of_people(self, found: Object, holes: Holes, *names: str) -> None:
        """Add the users in these fields, and nothing else."""
        for name in names:
            self._user(found, name, holes)

    def of_integration(self, found: Object, holes: Holes) -> None:
        self._user(found, "user", holes)
        if isinstance(application := found.get("application"), dict):
            self._user(application, "bot", holes)

    def of_application(self, found: Object, holes: Holes) -> None:
        self.of_people(found, holes, "owner", "bot")
        team = found.get("team")
        members = team.get("members") if isinstance(team, dict) else None
        for member in members if isinstance(members, list) else ():
            if isinstance(member, dict):
                self._user(member, "user", holes)

    def of_interaction(self, found: Object, holes: Holes) -> None:
        """Add user, member and message of an interaction, and the people in its options."""
        guild = reference(found.get("guild_id"))
        user = reference(found.get("user"))
        self._user(found, "user", holes)
        if guild is not None and user is not None:
            self._whole_member(found, guild, user, holes)
        self._message(found, "message", reference(found.get("channel_id")), holes)
        data = found.get("data")
        resolved = data.get("resolved") if isinstance(data, dict) else None
        if isinstance(resolved, dict):
            self._resolved(resolved, guild, holes)

    def _user(self, found: Object | list[Any], name: Any, holes: Holes) -> str | None:
        """Add the user that an id stands for. Return the id, also that of a user who is there already."""
        value = found[name] if isinstance(found, list) else found.get(name)
        if isinstance(value, dict):
            return reference(value.get("id"))
        user = reference(value)
        if user is not None:
            holes.append(Hole(self.at.user(user), found, name, user))
        return user

    def _member(self, found: Object, guild: str | None, user: str | None, holes: Holes) -> None:
        """Add a member beside its user, so without one."""
        if guild is not None and user is not None and "member" not in found:
            holes.append(Hole(self.at.member(guild, user), found, "member"))

    def _whole_member(self, found: Object, guild: str, user: str, holes: Holes) -> None:
        """Add a member with its user."""
        if "member" not in found:
            holes.append(Hole(self.at.member(guild, user), found, "member"))
        holes.append(Hole(self.at.user(user), found, "member", user, "user"))

    def _mentions(self, found: Object, guild: str | None, holes: Holes) -> None:
        mentions = found.get("mentions")
        if not isinstance(mentions, list):
            return
        for place in range(len(mentions)):
            user = self._user(mentions, place, holes)
            if guild is not None and user is not None:
                holes.append(Hole(self.at.member(guild, user), mentions, place, part="member"))

    def _invoked(self, found: Any, guild: str | None, holes: Holes) -> None:
        """Add the people of the interaction that a message answers; only the older form has a member."""
        if not isinstance(found, dict):
            return
        user = reference(found.get("user"))
        self.of_people(found, holes, "user", "target_user")
        self._member(found, guild, user, holes)
        self._invoked(found.get("triggering_interaction_metadata"), None, holes)

    def _thread(self, found: Object, holes: Holes) -> None:
        thread = reference(found.get("thread"))
        if thread is None:
            return
        holes.append(Hole(self.at.thread(thread), found, "thread", thread))
        own = self._own_membership(thread)
        if own is not None:
            holes.append(Hole(own, found, "thread", part="member"))

    def _own_membership(self, thread: str) -> Address | None:
        """Return where the bot's membership of a thread is, or None if it is not stored."""
        return None if self.bot is None else self.at.thread_member(thread, self.bot)

    def _message(self, found: Object, name: str, channel: str | None, holes: Holes) -> None:
        """Add a message with its own holes; without a channel it is known by its id only."""
        message = reference(found.get(name))
        if message is None:
            return
        if channel is None:
            found[name] = {"id": message}
            return
        holes.append(Hole(self.at.message(channel, message), found, name, message, inner=self._of_answered))

    def _of_answered(self, found: Object, holes: Holes) -> None:
        self.of_message(found, holes, deep=False)

    def _resolved(self, resolved: Object, guild: str | None, holes: Holes) -> None:
        """Make arrays of ids objects by id again, as Discord sends them, and add their holes."""
        for name in ("users", "members"):
            ids = resolved.get(name)
            if not isinstance(ids, list):
                continue
            by_id: Object = {each: each for each in ids if reference(each)} if name == "users" else {}
            resolved[name] = by_id
            for each in filter(None, map(reference, ids)):
                if name == "users":
                    holes.append(Hole(self.at.user(each), by_id, each, each))
                elif guild is not None:
                    holes.append(Hole(self.at.member(guild, each), by_id, each))


def _channel_of(found: Object) -> str | None:
    """Return the channel of the message that a message answers: its own, unless the reference has another."""
    answered = found.get("message_reference")
    channel = reference(answered.get("channel_id")) if isinstance(answered, dict) else None
    return channel or reference(found.get("channel_id"))
