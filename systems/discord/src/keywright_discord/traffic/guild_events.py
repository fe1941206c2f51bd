"""Events about guilds and their parts. Each maker changes the guild and returns the event."""

from __future__ import annotations

from collections.abc import Callable

from keywright_discord.traffic import objects
from keywright_discord.traffic.source import Bag, Json
from keywright_discord.traffic.world import Home

Maker = Callable[[Home], Json | None]
"""Makes the `d` of an event; None if the guild has nothing that it could be about."""


def _guild_create(home: Home) -> Json:
    home.available = True
    return home.created()


def _guild_update(home: Home) -> Json:
    home.props["name"] = home.source.words(2)
    return home.updated()


def _guild_delete(home: Home) -> Json:
    if home.source.chance(0.7) and home.available:
        home.available = False
        return {"id": home.id, "unavailable": True}
    home.world.homes.drop(home.id)
    return {"id": home.id}


def _channel_create(home: Home) -> Json:
    return home.add_channel() | {"guild_id": home.id}


def _channel_update(home: Home) -> Json | None:
    found = home.channels.any(home.source)
    if found is None:
        return None
    changed = {**found, "name": home.source.words(2), "version": home.source.number(1 << 40)}
    home.channels.put(found["id"], changed)
    return changed | {"guild_id": home.id}


def _channel_delete(home: Home) -> Json | None:
    found = home.channels.any(home.source)
    if found is None:
        return None
    home.drop_channel(found["id"])
    return {**found, "guild_id": home.id}


def _channel_pins(home: Home) -> Json:
    pinned = home.source.time() if home.source.chance(0.8) else None
    return {"guild_id": home.id, "channel_id": home.setting().channel, "last_pin_timestamp": pinned}


def _voice_status(home: Home) -> Json | None:
    found = home.one_channel(objects.VOICE)
    return found and {"id": found["id"], "guild_id": home.id, "status": home.source.words(2)}


def _voice_start(home: Home) -> Json | None:
    found = home.one_channel(objects.VOICE)
    started = home.source.number(1 << 31)
    return found and {"id": found["id"], "guild_id": home.id, "voice_start_time": started}


def _channel_info(home: Home) -> Json:
    channels = [
        {"id": each["id"], "status": home.source.words(1), "voice_start_time": None}
        for each in home.channels.values()
        if each["type"] == objects.VOICE
    ]
    return {"guild_id": home.id, "channels": channels}


def _thread_create(home: Home) -> Json | None:
    made = home.add_thread()
    if made is None or home.source.chance(0.5):
        return made
    own = {**objects.thread_member(home.source), "id": made["id"], "user_id": home.world.bot["id"]}
    return {**made, "newly_created": True, "member": own}


def _thread_update(home: Home) -> Json | None:
    found = home.threads.any(home.source)
    if found is None:
        return None
    metadata = {**found["thread_metadata"], "archived": home.source.chance(0.3)}
    return home.threads.put(found["id"], {**found, "thread_metadata": metadata})


def _thread_delete(home: Home) -> Json | None:
    found = home.threads.any(home.source)
    if found is None:
        return None
    home.threads.drop(found["id"])
    return {name: found[name] for name in ("id", "guild_id", "parent_id", "type")}


def _thread_list_sync(home: Home) -> Json:
    """Leave out some threads, as if they had been archived meanwhile."""
    wanted: list[str] | None = None
    if home.source.chance(0.7):
        wanted = home.source.some(home.channels.ids, 3)
    for thread in list(home.threads.values()):
        if (wanted is None or thread["parent_id"] in wanted) and home.source.chance(0.3):
            home.threads.drop(thread["id"])
    kept = [each for each in home.threads.values() if wanted is None or each["parent_id"] in wanted]
    own = [
        {**objects.thread_member(home.source), "id": each["id"], "user_id": home.world.bot["id"]}
        for each in kept[:2]
    ]
    synced: Json = {"guild_id": home.id, "threads": kept, "members": own}
    return synced if wanted is None else {**synced, "channel_ids": wanted}


def _thread_member_update(home: Home) -> Json | None:
    found = home.threads.any_id(home.source)
    own = {"id": found, "user_id": home.world.bot["id"], "guild_id": home.id}
    return {**objects.thread_member(home.source), **own} if found else None


def _thread_members_update(home: Home) -> Json | None:
    found = home.threads.any_id(home.source)
    if found is None:
        return None
    added = []
    for person in home.source.some(home.members.ids, 2):
        made = {**objects.thread_member(home.source), "id": found, "user_id": person}
        made["member"] = home.whole_member(person)
        made["presence"] = objects.presence(home.source, person) if home.source.chance(0.5) else None
        added.append(made)
    taken = {each["user_id"] for each in added}
    gone = [person for person in home.source.some(home.members.ids, 2) if person not in taken]
    data: Json = {"id": found, "guild_id": home.id, "member_count": home.source.number(50)}
    data |= {"added_members": added} if added else {}
    return data | ({"removed_member_ids": gone} if gone else {})


def _role_create(home: Home) -> Json:
    return {"guild_id": home.id, "role": home.add_role(len(home.roles))}


def _role_update(home: Home) -> Json | None:
    found = home.roles.any(home.source)
    if found is None:
        return None
    changed = home.roles.put(found["id"], {**found, "name": home.source.words(1)})
    return {"guild_id": home.id, "role": changed}


def _role_delete(home: Home) -> Json | None:
    found = home.roles.any_id(home.source)
    if found is None or found == home.id:
        return None
    home.roles.drop(found)
    return {"guild_id": home.id, "role_id": found}


def _emojis_update(home: Home) -> Json:
    gone = home.emojis.any_id(home.source)
    if gone is not None and home.source.chance(0.5):
        home.emojis.drop(gone)
    else:
        home.add_emoji()
    return {"guild_id": home.id, "emojis": list(home.emojis.values())}


def _stickers_update(home: Home) -> Json:
    gone = home.stickers.any_id(home.source)
    if gone is not None and home.source.chance(0.5):
        home.stickers.drop(gone)
    else:
        home.add_sticker()
    return {"guild_id": home.id, "stickers": list(home.stickers.values())}


def _sound_create(home: Home) -> Json:
    return home.add_sound()


def _sounds_update(home: Home) -> Json:
    home.add_sound()
    return {"guild_id": home.id, "soundboard_sounds": list(home.sounds.values())}


def _integration_create(home: Home) -> Json:
    identity = home.source.snowflake()
    return home.integrations.put(identity, objects.integration(home.source, identity, home.id))


def _rule_create(home: Home) -> Json:
    identity = home.source.snowflake()
    creator = home.someone().user["id"]
    return home.rules.put(identity, objects.automod_rule(home.source, identity, home.id, creator))


def _event_create(home: Home) -> Json:
    return home.add_event()


def _stage_create(home: Home) -> Json | None:
    found = home.one_channel(objects.STAGE)
    if found is None:
        return None
    return home.stages.put(found["id"], objects.stage_instance(home.source, found["id"], home.id))


def _changed(bag: Callable[[Home], Bag[Json]], field: str) -> Maker:
    """Return the maker that gives one item new words in a field."""

    def make(home: Home) -> Json | None:
        identity = bag(home).any_id(home.source)
        found = None if identity is None else bag(home).get(identity)
        if identity is None or found is None:
            return None
        return bag(home).put(identity, {**found, field: home.source.words(2)})

    return make


def _gone(bag: Callable[[Home], Bag[Json]], *names: str) -> Maker:
    """Return the maker that removes one item; the event has these fields of it, or all."""

    def make(home: Home) -> Json | None:
        identity = bag(home).any_id(home.source)
        found = None if identity is None else bag(home).get(identity)
        if identity is None or found is None:
            return None
        bag(home).drop(identity)
        return {name: found[name] for name in names} if names else found

    return make


def _event_user(home: Home) -> Json | None:
    found = home.events.any_id(home.source)
    person = home.someone().user["id"]
    data = {"guild_scheduled_event_id": found, "user_id": person, "guild_id": home.id}
    return None if found is None else data


def _only_guild(home: Home) -> Json:
    return {"guild_id": home.id}


def _webhooks_update(home: Home) -> Json:
    return {"guild_id": home.id, "channel_id": home.setting().channel}


MAKERS: dict[str, Maker] = {
    "GUILD_CREATE": _guild_create,
    "GUILD_UPDATE": _guild_update,
    "GUILD_DELETE": _guild_delete,
    "CHANNEL_CREATE": _channel_create,
    "CHANNEL_UPDATE": _channel_update,
    "CHANNEL_DELETE": _channel_delete,
    "CHANNEL_PINS_UPDATE": _channel_pins,
    "CHANNEL_INFO": _channel_info,
    "VOICE_CHANNEL_STATUS_UPDATE": _voice_status,
    "VOICE_CHANNEL_START_TIME_UPDATE": _voice_start,
    "THREAD_CREATE": _thread_create,
    "THREAD_UPDATE": _thread_update,
    "THREAD_DELETE": _thread_delete,
    "THREAD_LIST_SYNC": _thread_list_sync,
    "THREAD_MEMBER_UPDATE": _thread_member_update,
    "THREAD_MEMBERS_UPDATE": _thread_members_update,
    "GUILD_ROLE_CREATE": _role_create,
    "GUILD_ROLE_UPDATE": _role_update,
    "GUILD_ROLE_DELETE": _role_delete,
    "GUILD_EMOJIS_UPDATE": _emojis_update,
    "GUILD_STICKERS_UPDATE": _stickers_update,
    "GUILD_SOUNDBOARD_SOUND_CREATE": _sound_create,
    "GUILD_SOUNDBOARD_SOUND_UPDATE": _changed(lambda home: home.sounds, "name"),
    "GUILD_SOUNDBOARD_SOUND_DELETE": _gone(lambda home: home.sounds, "sound_id", "guild_id"),
    "GUILD_SOUNDBOARD_SOUNDS_UPDATE": _sounds_update,
    "SOUNDBOARD_SOUNDS": _sounds_update,
    "GUILD_INTEGRATIONS_UPDATE": _only_guild,
    "WEBHOOKS_UPDATE": _webhooks_update,
    "INTEGRATION_CREATE": _integration_create,
    "INTEGRATION_UPDATE": _changed(lambda home: home.integrations, "name"),
    "INTEGRATION_DELETE": _gone(lambda home: home.integrations, "id", "guild_id"),
    "AUTO_MODERATION_RULE_CREATE": _rule_create,
    "AUTO_MODERATION_RULE_UPDATE": _changed(lambda home: home.rules, "name"),
    "AUTO_MODERATION_RULE_DELETE": _gone(lambda home: home.rules),
    "GUILD_SCHEDULED_EVENT_CREATE": _event_create,
    "GUILD_SCHEDULED_EVENT_UPDATE": _changed(lambda home: home.events, "name"),
    "GUILD_SCHEDULED_EVENT_DELETE": _gone(lambda home: home.events),
    "GUILD_SCHEDULED_EVENT_USER_ADD": _event_user,
    "GUILD_SCHEDULED_EVENT_USER_REMOVE": _event_user,
    "STAGE_INSTANCE_CREATE": _stage_create,
    "STAGE_INSTANCE_UPDATE": _changed(lambda home: home.stages, "topic"),
    "STAGE_INSTANCE_DELETE": _gone(lambda home: home.stages),
}
