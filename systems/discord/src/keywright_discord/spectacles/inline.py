"""Lists that a guild keeps inside itself, kept true by the events about their elements."""

from __future__ import annotations

from keywright_discord.changes import Drop, Kind, Mode, Put, body_fields
from keywright_discord.raw_json import Fields, absent, objects, one_id, stored_fields, written
from keywright_discord.spectacles import schema
from keywright_discord.spectacles.message_index import IndexedDraft

# What a guild keeps inline: the field, and what identifies an element of it.
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
    """A list inside a guild, by id; None where the guild, or its list, is not known."""
    field, identified = INLINE[kind]
    body = draft.get((schema.Guilds(), guild))
    listed = (stored_fields(body) or {}).get(field)
    if listed is None or absent(listed):
        return None
    return {one_id(each, identified, field): each for each in objects(listed, field)}


def write_inline(kind: Kind, guild: str, listed: dict[str, Fields], draft: IndexedDraft) -> None:
    field, _ = INLINE[kind]
    draft.put((schema.Guilds(), guild), {field: written(list(listed.values()))}, Mode.PATCH)
