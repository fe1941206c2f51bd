"""The common shape of reads: one class per layout, the same functions, the same ids.

Every function returns a call for `db.run`. One entity is a dict, or None if it is not stored; a list is a
dict by id. Ids are text or int, as Discord and most libraries have them.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

from keywright import Call, Set
from keywright.errors import UsageError
from keywright.operations import Steps, bound_context, procedure
from keywright_discord.document_reads import Entities, Entity, Id, Object

if TYPE_CHECKING:
    from keywright import SnowflakeStr

__all__ = ["Id", "Object", "Reader"]


class Reader(ABC):
    """Reads of a cache, which both layouts have.

    Documents are hydrated: users, members, messages and threads are in place of their ids. A reference to
    one that is not stored is `{"id": …}`, so it is always a dict. With `hydrate=False` documents are
    returned as they are stored. Both layouts take the same ids, the outer one first; a layout that does not
    need the outer one ignores it.
    """

    def __init__(self, entities: Mapping[str, Entity], *, hydrate: bool) -> None:
        self._known = Entities(entities)
        self._hydrate = hydrate

    def get(self, entity: str, *ids: Id) -> Call[Object | None]:
        """Return any entity by its name and the ids of its key, as in `get("member", guild, user)`.

        Raise UsageError if the entity is unknown or has other ids.
        """
        return self._one(entity, *ids)

    @procedure
    def check(self) -> Steps[None]:
        """Raise UsageError if no guild is stored, mostly because the prefix is another one."""
        context = yield bound_context()
        if not (yield self._guild_index().size()):
            name = context.name(self._guild_index()).decode()
            raise UsageError(
                f"there is no Discord cache here: {name} is empty. Pass the bindings of the cache, as in "
                f"connect(url, *bind(prefix='bot')), with the prefix that its gateway has (CACHE_PREFIX)."
            )

    def guild_ids(self) -> Call[set[str]]:
        """Return the ids of the guilds that the bot is in, also of those that are not stored."""
        return self._guild_index().members()

    @abstractmethod
    def guilds(self) -> Call[dict[str, Object]]:
        """Return the stored guilds."""

    def guild(self, guild: Id) -> Call[Object | None]:
        """Return a guild, without the parts that are read by themselves."""
        return self._one("guild", guild)

    @abstractmethod
    def channels(self, guild: Id) -> Call[dict[str, Object]]:
        """Return the channels of a guild, threads not among them."""

    @abstractmethod
    def channel(self, guild: Id | None, channel: Id) -> Call[Object | None]:
        """Return a channel or a thread. `guild` is that of an event, None for a direct message."""

    @abstractmethod
    def threads(self, guild: Id) -> Call[dict[str, Object]]:
        """Return the threads of a guild."""

    @abstractmethod
    def thread(self, thread: Id) -> Call[Object | None]:
        """Return a thread; None for a channel that is not one."""

    @abstractmethod
    def roles(self, guild: Id) -> Call[dict[str, Object]]:
        """Return the roles of a guild."""

    def role(self, guild: Id, role: Id) -> Call[Object | None]:
        """Return a role of a guild."""
        return self._one("role", guild, role)

    @abstractmethod
    def emojis(self, guild: Id) -> Call[dict[str, Object]]:
        """Return the custom emojis of a guild."""

    @abstractmethod
    def emoji(self, guild: Id, emoji: Id) -> Call[Object | None]:
        """Return a custom emoji with the user who added it."""

    @abstractmethod
    def members(self, guild: Id) -> Call[dict[str, Object]]:
        """Return the known members of a guild by user id, each with its user."""

    def member(self, guild: Id, user: Id) -> Call[Object | None]:
        """Return a member with its user."""
        return self._one("member", guild, user)

    def users(self, users: Iterable[Id]) -> Call[list[Object | None]]:
        """Return many users in the order of the ids, in one round trip."""
        return self._known.get_many("user", [(each,) for each in users])

    def user(self, user: Id) -> Call[Object | None]:
        """Return a user."""
        return self._one("user", user)

    @abstractmethod
    def presences(self, guild: Id) -> Call[dict[str, Object]]:
        """Return the presences that a guild shows, by user id."""

    @abstractmethod
    def presence(self, guild: Id, user: Id) -> Call[Object | None]:
        """Return the presence of a user in a guild, with the user. None means offline."""

    @abstractmethod
    def voice_states(self, guild: Id) -> Call[dict[str, Object]]:
        """Return the voice states of a guild by user id, each with its member."""

    def voice_state(self, guild: Id, user: Id) -> Call[Object | None]:
        """Return a voice state with its member, and the member's user."""
        return self._one("voice-state", guild, user)

    @abstractmethod
    def messages(self, messages: Iterable[tuple[Id, Id]]) -> Call[list[Object | None]]:
        """Return many messages by channel and id, in their order, in at most three round trips.

        A message has author, member, mentions, thread, the users of its interaction, and the message that
        it answers. `referenced_message` is a dict, hydrated one level deep, or None if that message was
        deleted; it has only an `id` if the message is not stored, and in the answered message itself.
        """

    def message(self, channel: Id, message: Id) -> Call[Object | None]:
        """Return a message, as `messages` does."""
        return self.messages([(channel, message)]).map(lambda found: found[0])

    @abstractmethod
    def _guild_index(self) -> Set[SnowflakeStr]:
        """Return the key of the guilds that the bot is in."""

    def _one(self, entity: str, *ids: Id) -> Call[Object | None]:
        return (self._known.hydrate if self._hydrate else self._known.get)(entity, *ids)

    def _many(self, entity: str, ids: Iterable[tuple[Id, ...]]) -> Call[list[Object | None]]:
        return (self._known.hydrate_many if self._hydrate else self._known.get_many)(entity, ids)

    def _all(self, entity: str, listing: Call[dict[str, Object]], *above: str) -> Call[dict[str, Object]]:
        """Return the documents of a listing; `above` are the ids that precede the listed one."""
        return self._known.hydrate_all(entity, listing, *above) if self._hydrate else listing
