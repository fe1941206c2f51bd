"""Removal of guilds, channels, threads and members with everything that belongs to them."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from keywright import Call, Key, gather, gather_list
from keywright.operations import Steps
from keywright_discord.changes import DropChannel, Ids, Kind, PutItem
from keywright_discord.inline_lists import put_item
from keywright_discord.raw_json import Fields
from keywright_discord.spectacles import schema
from keywright_discord.spectacles.message_index import IndexedDraft

OF_ONE_GUILD: tuple[Callable[[str], Key], ...] = (
    schema.Members,
    schema.VoiceStates,
    schema.ChannelIds,
    schema.Roles,
    schema.EmojiIds,
    schema.ThreadIndex,
    schema.PresenceIndex,
    schema.MessageChannels,
)

# The entities that are lists inside a guild: the field, and the id of its elements (docs/resolutions.md#s7).
INLINE = {
    Kind.STICKER: ("stickers", "id"),
    Kind.STAGE_INSTANCE: ("stage_instances", "channel_id"),
    Kind.SCHEDULED_EVENT: ("guild_scheduled_events", "id"),
}


def in_guild(kind: Kind, ids: Ids, item: Fields | None) -> PutItem:
    """Return the change of a guild that writes or removes one of its inline entities."""
    field, by = INLINE[kind]
    return PutItem(ids[0], field, by, ids[1], item)


def drop_guilds(guilds: Iterable[str], draft: IndexedDraft) -> Steps[None]:
    """Remove guilds together: a presence that only they showed is removed with them."""
    gone = list(guilds)
    if not gone:
        return
    # Whole keys first: erasing a key discards what the draft holds of it.
    for guild in gone:
        for key in (*(make(guild) for make in OF_ONE_GUILD), *schema.departed(guild, draft.now_ms)):
            draft.erase(key)
    held = yield gather_list([_held(guild) for guild in gone])
    channels = sorted({channel for each in held for part in each[:2] for channel in part})
    yield from _drop_messages(channels, draft)
    for guild, (of_guild, _, emojis, _) in zip(gone, held, strict=True):
        draft.drop((schema.Guilds(), guild))
        draft.remove(schema.GuildIndex(), guild)
        for channel in of_guild:
            draft.drop((schema.Channels(), channel))
        for emoji in emojis:
            draft.drop((schema.Emojis(), emoji))
    seen = sorted({user for *_, users in held for user in users})
    shown = yield gather_list([schema.PresenceGuilds(user).members() for user in seen])
    for user, by in zip(seen, shown, strict=True):
        _hide(user, by, set(gone), draft)


def _held(guild: str) -> Call[tuple[set[str], ...]]:
    """Return a guild's channels, those with messages, its emojis, and the users whose presence it shows."""
    return gather(
        schema.ChannelIds(guild).members(),
        schema.MessageChannels(guild).members(),
        schema.EmojiIds(guild).members(),
        schema.PresenceIndex(guild).members(),
    )


def drop_channel(change: DropChannel, draft: IndexedDraft) -> Steps[None]:
    threads = yield schema.ThreadIndex(change.guild).all()
    inside = [thread for thread, parent in threads.items() if parent == change.channel]
    yield from drop_channels(change.guild, [change.channel, *inside], draft)
    stage = in_guild(Kind.STAGE_INSTANCE, (change.guild, change.channel), None)
    put_item(stage, (schema.Guilds(), change.guild), draft)


def drop_channels(guild: str, channels: Iterable[str], draft: IndexedDraft) -> Steps[None]:
    gone = list(channels)
    yield from _drop_messages(gone, draft)
    for channel in gone:
        draft.drop((schema.Channels(), channel))
        draft.remove(schema.ChannelIds(guild), channel)
        draft.drop((schema.ThreadIndex(guild), channel))
        draft.remove(schema.MessageChannels(guild), channel)


def _drop_messages(channels: list[str], draft: IndexedDraft) -> Steps[None]:
    indexed = yield gather_list([schema.MessageIndex(channel).range() for channel in channels])
    for channel, messages in zip(channels, indexed, strict=True):
        for message, _ in messages:
            draft.drop((schema.Message(channel, message), None))
            draft.unindex_message(channel, message)


def drop_members(guild: str, people: Iterable[str], draft: IndexedDraft) -> Steps[None]:
    gone = sorted(people)
    shown = yield gather_list([schema.PresenceGuilds(person).members() for person in gone])
    for person, guilds in zip(gone, shown, strict=True):
        drop_member(guild, person, guilds, draft)


def hide(people: Iterable[str], guild: str, draft: IndexedDraft) -> Steps[None]:
    """Remove the presences that a guild shows of these users, unless another one shows them too."""
    gone = sorted(people)
    shown = yield gather_list([schema.PresenceGuilds(person).members() for person in gone])
    for person, guilds in zip(gone, shown, strict=True):
        _hide(person, guilds, {guild}, draft)
        draft.remove(schema.PresenceIndex(guild), person)


def drop_member(guild: str, user: str, shown: set[str], draft: IndexedDraft) -> None:
    """Remove a member with its voice state; `shown` are the guilds that show its presence."""
    draft.drop((schema.Members(guild), user))
    draft.drop((schema.VoiceStates(guild), user))
    _hide(user, shown, {guild}, draft)
    draft.remove(schema.PresenceIndex(guild), user)


def _hide(user: str, shown: set[str], guilds: set[str], draft: IndexedDraft) -> None:
    """Remove some guilds from those that show a user; without any left, remove the presence."""
    if shown and shown <= guilds:
        draft.drop((schema.Presence(user), user))
    for guild in sorted(shown & guilds):
        draft.remove(schema.PresenceGuilds(user), guild)
