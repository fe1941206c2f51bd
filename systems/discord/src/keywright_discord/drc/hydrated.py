"""Hydrated reads of DRC: users, members, threads and messages in place of ids, in three round trips."""

from __future__ import annotations

from collections.abc import Iterable

from keywright import Call, gather
from keywright.operations import Steps, bound_context, procedure
from keywright_discord.document_reads import Entities, Object, fill
from keywright_discord.drc import schema
from keywright_discord.drc.listings import DrcListings
from keywright_discord.drc.reads import DrcPlaces, entities, single
from keywright_discord.raw_json import reference
from keywright_discord.references import References


class DrcHydrated:
    """Entities of DRC with those that they refer to; a thread shows the membership of `bot`."""

    def __init__(self, bot: str | None = None) -> None:
        self._references = References(DrcPlaces(), bot)
        self._known = Entities(entities(bot))
        self._listings = DrcListings()

    def get(self, entity: str, *ids: str) -> Call[Object | None]:
        """Return any entity by its name, as in `get("member", guild, user)`. Raise UsageError if the entity
        is unknown or has other ids."""
        self._known.at(entity, ids)
        if entity in ("thread", "thread-member"):
            return self.thread(*ids) if entity == "thread" else self.thread_member(*ids)
        return self._known.hydrate(entity, *ids)

    def messages(self, messages: Iterable[str]) -> Call[list[Object | None]]:
        """Return messages with author, member, mentions, thread, the users of their interactions, and the
        messages that they answer, which are hydrated one level deep. Three round trips for any number."""
        return self._known.hydrate_many("message", single(messages))

    def message(self, message: str) -> Call[Object | None]:
        return self._known.hydrate("message", message)

    def application(self, application: str) -> Call[Object | None]:
        """Return an application with its owner, bot and the users of its team."""
        return self._known.hydrate("application", application)

    def interaction(self, interaction: str) -> Call[Object | None]:
        """Return an interaction with its user, member and message, and the people in its options."""
        return self._known.hydrate("interaction", interaction)

    def invite(self, code: str) -> Call[Object | None]:
        """Return an invite with its inviter and target."""
        return self._known.hydrate("invite", code)

    def webhook(self, webhook: str) -> Call[Object | None]:
        """Return a webhook with its creator; its `token` is a secret."""
        return self._known.hydrate("webhook", webhook)

    def presence(self, guild: str, user: str) -> Call[Object | None]:
        return self._known.hydrate("presence", guild, user)

    def presences(self, guild: str) -> Call[dict[str, Object]]:
        return self._known.hydrate_all("presence", self._listings.presences(guild), guild)

    def member(self, guild: str, user: str) -> Call[Object | None]:
        """Return a member with its user."""
        return self._known.hydrate("member", guild, user)

    def members(self, guild: str) -> Call[dict[str, Object]]:
        return self._known.hydrate_all("member", self._listings.members(guild), guild)

    def voice_state(self, guild: str, user: str) -> Call[Object | None]:
        """Return a voice state with its member, and the member's user."""
        return self._known.hydrate("voice-state", guild, user)

    def voice_states(self, guild: str) -> Call[dict[str, Object]]:
        return self._known.hydrate_all("voice-state", self._listings.voice_states(guild), guild)

    def emoji(self, guild: str, emoji: str) -> Call[Object | None]:
        """Return an emoji with the user who added it."""
        return self._known.hydrate("emoji", guild, emoji)

    def emojis(self, guild: str) -> Call[dict[str, Object]]:
        return self._known.hydrate_all("emoji", self._listings.emojis(guild), guild)

    def sticker(self, guild: str, sticker: str) -> Call[Object | None]:
        """Return a sticker with the user who added it."""
        return self._known.hydrate("sticker", guild, sticker)

    def stickers(self, guild: str) -> Call[dict[str, Object]]:
        return self._known.hydrate_all("sticker", self._listings.stickers(guild), guild)

    def integration(self, guild: str, integration: str) -> Call[Object | None]:
        """Return an integration with the user who added it, and the bot of its application."""
        return self._known.hydrate("integration", guild, integration)

    def integrations(self, guild: str) -> Call[dict[str, Object]]:
        return self._known.hydrate_all("integration", self._listings.integrations(guild), guild)

    def scheduled_event(self, guild: str, event: str) -> Call[Object | None]:
        """Return a scheduled event with its creator."""
        return self._known.hydrate("scheduled-event", guild, event)

    def scheduled_events(self, guild: str) -> Call[dict[str, Object]]:
        return self._known.hydrate_all("scheduled-event", self._listings.scheduled_events(guild), guild)

    def template(self, guild: str, code: str) -> Call[Object | None]:
        """Return a template with its creator."""
        return self._known.hydrate("template", guild, code)

    def templates(self, guild: str) -> Call[dict[str, Object]]:
        return self._known.hydrate_all("template", self._listings.templates(guild), guild)

    @procedure
    def thread(self, thread: str) -> Steps[Object | None]:
        """Return a thread with the bot's own membership as `member`, and all known ones as `members`."""
        found, members = yield gather(self._known.hydrate("thread", thread), self.thread_members(thread))
        if found is not None:
            found["members"] = list(members.values())
        return found  # type: ignore[no-any-return]  # what a procedure sends back is not typed

    def thread_members(self, thread: str) -> Call[dict[str, Object]]:
        """Return the known members of a thread by user id, each with its guild member and user."""
        return self._members_of(thread, schema.ThreadMembers(thread).all())

    def thread_member(self, thread: str, user: str) -> Call[Object | None]:
        """Return a member of a thread with its guild member and user."""
        found = self._members_of(thread, schema.ThreadMembers(thread).get_many([user]))
        return found.map(lambda members: members.get(user))

    @procedure
    def _members_of(self, thread: str, listing: Call[dict[str, Object]]) -> Steps[dict[str, Object]]:
        """Return hydrated thread members; their guild is a field of the thread, which is read along."""
        context = yield bound_context()
        found, members = yield gather(schema.Thread(thread).get(), listing)
        guild = None if found is None else reference(found.get("guild_id"))
        of = self._references.of_thread_member
        yield from fill((hole for user, each in members.items() for hole in of(guild, user, each)), context)
        return members  # type: ignore[no-any-return]  # what a procedure sends back is not typed
