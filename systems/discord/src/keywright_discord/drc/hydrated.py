"""DRC with its references put back: users, members, threads and messages, in at most three round trips."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from keywright import Call, gather
from keywright.operations import Steps, bound_context, procedure
from keywright_discord.document_reads import Entities, Object, fill
from keywright_discord.drc import schema
from keywright_discord.drc.listings import DrcListings
from keywright_discord.drc.reads import DrcPlaces, entities, single
from keywright_discord.references import References, reference

if TYPE_CHECKING:
    pass


class DrcHydrated:
    """What DRC holds, with what it refers to. `bot` is whose membership a thread shows."""

    def __init__(self, bot: str | None = None) -> None:
        self._references = References(DrcPlaces(), bot)
        self._known = Entities(entities(bot))
        self._listings = DrcListings()

    def get(self, entity: str, *ids: str) -> Call[Object | None]:
        """Any entity by its name, as in `get("member", guild, user)`; UsageError for what does not exist."""
        self._known.at(entity, ids)
        if entity in ("thread", "thread-member"):
            return self.thread(*ids) if entity == "thread" else self.thread_member(*ids)
        return self._known.hydrate(entity, *ids)

    def messages(self, messages: Iterable[str]) -> Call[list[Object | None]]:
        """Messages with author, member, mentions, thread, users of their interaction, and the message that
        each answers, itself hydrated but for the one that it answers; three round trips for any number."""
        return self._known.hydrate_many("message", single(messages))

    def message(self, message: str) -> Call[Object | None]:
        return self._known.hydrate("message", message)

    def application(self, application: str) -> Call[Object | None]:
        """An application with its owner, bot and the users of its team."""
        return self._known.hydrate("application", application)

    def interaction(self, interaction: str) -> Call[Object | None]:
        """An interaction with its user, member and message, and whom its options name."""
        return self._known.hydrate("interaction", interaction)

    def invite(self, code: str) -> Call[Object | None]:
        """An invite with who made it and whom it is for."""
        return self._known.hydrate("invite", code)

    def webhook(self, webhook: str) -> Call[Object | None]:
        """A webhook with who made it; its `token` is a secret."""
        return self._known.hydrate("webhook", webhook)

    def presence(self, guild: str, user: str) -> Call[Object | None]:
        return self._known.hydrate("presence", guild, user)

    def presences(self, guild: str) -> Call[dict[str, Object]]:
        return self._known.hydrate_all("presence", self._listings.presences(guild), guild)

    def member(self, guild: str, user: str) -> Call[Object | None]:
        """A member with its user."""
        return self._known.hydrate("member", guild, user)

    def members(self, guild: str) -> Call[dict[str, Object]]:
        return self._known.hydrate_all("member", self._listings.members(guild), guild)

    def voice_state(self, guild: str, user: str) -> Call[Object | None]:
        """A voice state with its member, and the member's user."""
        return self._known.hydrate("voice-state", guild, user)

    def voice_states(self, guild: str) -> Call[dict[str, Object]]:
        return self._known.hydrate_all("voice-state", self._listings.voice_states(guild), guild)

    def emoji(self, guild: str, emoji: str) -> Call[Object | None]:
        """An emoji with who added it."""
        return self._known.hydrate("emoji", guild, emoji)

    def emojis(self, guild: str) -> Call[dict[str, Object]]:
        return self._known.hydrate_all("emoji", self._listings.emojis(guild), guild)

    def sticker(self, guild: str, sticker: str) -> Call[Object | None]:
        """A sticker with who added it."""
        return self._known.hydrate("sticker", guild, sticker)

    def stickers(self, guild: str) -> Call[dict[str, Object]]:
        return self._known.hydrate_all("sticker", self._listings.stickers(guild), guild)

    def integration(self, guild: str, integration: str) -> Call[Object | None]:
        """An integration with who added it, and the bot of its application."""
        return self._known.hydrate("integration", guild, integration)

    def integrations(self, guild: str) -> Call[dict[str, Object]]:
        return self._known.hydrate_all("integration", self._listings.integrations(guild), guild)

    def scheduled_event(self, guild: str, event: str) -> Call[Object | None]:
        """A scheduled event with its creator."""
        return self._known.hydrate("scheduled-event", guild, event)

    def scheduled_events(self, guild: str) -> Call[dict[str, Object]]:
        return self._known.hydrate_all("scheduled-event", self._listings.scheduled_events(guild), guild)

    def template(self, guild: str, code: str) -> Call[Object | None]:
        """A template with its creator."""
        return self._known.hydrate("template", guild, code)

    def templates(self, guild: str) -> Call[dict[str, Object]]:
        return self._known.hydrate_all("template", self._listings.templates(guild), guild)

    @procedure
    def thread(self, thread: str) -> Steps[Object | None]:
        """A thread with the bot's own membership as `member`, and all known ones as `members`."""
        found, members = yield gather(self._known.hydrate("thread", thread), self.thread_members(thread))
        if found is not None:
            found["members"] = list(members.values())
        return found  # type: ignore[no-any-return]  # what a procedure sends back is not typed

    def thread_members(self, thread: str) -> Call[dict[str, Object]]:
        """The known members of a thread by user id, each with its member of the guild and its user."""
        return self._members_of(thread, schema.ThreadMembers(thread).all())

    def thread_member(self, thread: str, user: str) -> Call[Object | None]:
        """A member of a thread with its member of the guild and its user."""
        found = self._members_of(thread, schema.ThreadMembers(thread).get_many([user]))
        return found.map(lambda members: members.get(user))

    @procedure
    def _members_of(self, thread: str, listing: Call[dict[str, Object]]) -> Steps[dict[str, Object]]:
        """Of which guild they are stands in the thread, which is read along with them."""
        context = yield bound_context()
        found, members = yield gather(schema.Thread(thread).get(), listing)
        guild = None if found is None else reference(found.get("guild_id"))
        of = self._references.of_thread_member
        yield from fill((hole for user, each in members.items() for hole in of(guild, user, each)), context)
        return members  # type: ignore[no-any-return]  # what a procedure sends back is not typed
