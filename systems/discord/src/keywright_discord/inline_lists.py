"""Lists inside a guild's document, updated by the events about their elements."""

from __future__ import annotations

from keywright_discord.changes import Mode, PutItem, PutItems
from keywright_discord.draft import Draft, Place
from keywright_discord.raw_json import Fields, absent, objects, one_id, written


def put_item(change: PutItem, guild: Place, draft: Draft) -> None:
    """Write or remove an element, at its old position or the end; nothing if the list is not stored."""
    listed = (draft.fields(guild) or {}).get(change.field)
    if listed is None or absent(listed):
        return
    items = {one_id(each, change.by, change.field): each for each in objects(listed, change.field)}
    if change.item is not None:
        items[change.identity] = change.item
    elif items.pop(change.identity, None) is None:
        return
    replace(guild, change.field, list(items.values()), draft)


def put_items(change: PutItems, guild: Place, draft: Draft) -> None:
    draft.put(guild, {change.field: change.items}, Mode.PATCH)


def replace(guild: Place, field: str, items: list[Fields], draft: Draft) -> None:
    """Replace a whole list of a stored guild."""
    draft.put(guild, {field: written(items)}, Mode.PATCH)
