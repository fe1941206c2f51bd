"""Lists inside a guild's document, updated by the events about their elements (docs/resolutions.md#s7)."""

from __future__ import annotations

from keywright_discord.changes import Drop, Kind, Mode, Put
from keywright_discord.raw_json import Fields, absent, body_fields, objects, one_id, stored_fields, written
from keywright_discord.spectacles import schema
from keywright_discord.spectacles.message_index import IndexedDraft

# The lists of a guild: the field, and the id of its elements.
INLINE = {
    Kind.STICKER: ("stickers", "id"),
    Kind.STAGE_INSTANCE: ("stage_instances", "channel_id"),
    Kind.SCHEDULED_EVENT: ("guild_scheduled_events", "id"),
}


def put_inline(change: Put, draft: IndexedDraft) -> None:
    listed = _inline(change.kind, change.ids[0], draft)
    if listed is not None:
        listed[change.ids[1]] = body_fields(change.data)
        write_inline(change.kind, change.ids[0], listed, draft)


def drop_inline(change: Drop, draft: IndexedDraft) -> None:
    listed = _inline(change.kind, change.ids[0], draft)
    if listed is not None and listed.pop(change.ids[1], None) is not None:
        write_inline(change.kind, change.ids[0], listed, draft)


def _inline(kind: Kind, guild: str, draft: IndexedDraft) -> dict[str, Fields] | None:
    """Return a list inside a guild, by id, or None if the guild or its list is not stored."""
    field, identified = INLINE[kind]
    body = draft.get((schema.Guilds(), guild))
    listed = (stored_fields(body) or {}).get(field)
    if listed is None or absent(listed):
        return None
    return {one_id(each, identified, field): each for each in objects(listed, field)}


def write_inline(kind: Kind, guild: str, listed: dict[str, Fields], draft: IndexedDraft) -> None:
    field, _ = INLINE[kind]
    draft.put((schema.Guilds(), guild), {field: written(list(listed.values()))}, Mode.PATCH)
