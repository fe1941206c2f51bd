"""Events about people: messages, reactions, presences, voice states, members."""

from __future__ import annotations

from keywright_discord.traffic import messages, objects
from keywright_discord.traffic.guild_events import Maker
from keywright_discord.traffic.messages import Setting, Speaker
from keywright_discord.traffic.source import Json
from keywright_discord.traffic.world import Home


def _message_create(home: Home) -> Json:
    source = home.source
    if source.chance(0.02):
        return _direct_message(home)
    setting = home.setting()
    made = messages.message(source, setting, home.someone())
    if source.chance(0.15):
        _reply(home, made)
    if source.chance(0.02) and (thread := home.add_thread()) is not None:
        made["thread"] = thread
    return home.remember(made)


def _direct_message(home: Home) -> Json:
    """Return a message without guild and member."""
    person = Speaker(home.someone().user, None)
    setting = Setting(home.source.snowflake(), None, [person], home.world.application)
    return messages.message(home.source, setting, person)


def _reply(home: Home, made: Json) -> None:
    answered = home.messages.any(home.source)
    if answered is None:
        return
    made["type"] = 19
    made["message_reference"] = {
        "type": 0,
        "channel_id": answered["channel_id"],
        "message_id": answered["id"],
        "guild_id": home.id,
    }
    if home.source.chance(0.1):
        made["referenced_message"] = None
    else:
        left_out = ("guild_id", "member", "referenced_message")
        made["referenced_message"] = {name: value for name, value in answered.items() if name not in left_out}


def _message_update(home: Home) -> Json | None:
    found = home.messages.any(home.source)
    if found is None:
        return None
    changed = {"content": home.source.words(5), "edited_timestamp": home.source.time()}
    if home.source.chance(0.3):  # Discord sends embeds that it resolved later alone
        return {name: found[name] for name in ("id", "channel_id", "guild_id")} | {"embeds": []}
    return home.remember({**found, **changed})


def _message_delete(home: Home) -> Json | None:
    found = home.messages.any(home.source)
    if found is None:
        return None
    home.messages.drop(found["id"])
    return {name: found[name] for name in ("id", "channel_id", "guild_id")}


def _message_delete_bulk(home: Home) -> Json | None:
    found = home.messages.any(home.source)
    if found is None:
        return None
    gone = [each["id"] for each in home.messages.values() if each["channel_id"] == found["channel_id"]][:5]
    for identity in gone:
        home.messages.drop(identity)
    return {"ids": gone, "channel_id": found["channel_id"], "guild_id": home.id}


def _reaction_add(home: Home) -> Json | None:
    found = home.messages.any(home.source)
    if found is None:
        return None
    person = home.someone().user["id"]
    burst = home.source.chance(0.1)
    data = {
        "user_id": person,
        "channel_id": found["channel_id"],
        "message_id": found["id"],
        "guild_id": home.id,
        "emoji": messages.reaction_emoji(home.source, home.emojis.any(home.source)),
        "message_author_id": found["author"]["id"],
        "burst": burst,
        "type": int(burst),
    }
    home.reactions.put(str(home.source.number(50)), data)
    return {**data, "member": home.whole_member(person)}


def _reaction_remove(home: Home) -> Json | None:
    found = home.reactions.any(home.source)
    return found and {name: value for name, value in found.items() if name != "message_author_id"}


def _reaction_remove_emoji(home: Home) -> Json | None:
    found = home.reactions.any(home.source)
    return found and {name: found[name] for name in ("channel_id", "guild_id", "message_id", "emoji")}


def _reaction_remove_all(home: Home) -> Json | None:
    found = home.reactions.any(home.source)
    return found and {name: found[name] for name in ("channel_id", "guild_id", "message_id")}


def _poll_vote(home: Home) -> Json | None:
    found = home.messages.any(home.source)
    voter = home.someone().user["id"]
    return found and {
        "user_id": voter,
        "channel_id": found["channel_id"],
        "message_id": found["id"],
        "guild_id": home.id,
        "answer_id": 1,
    }


def _presence_update(home: Home) -> Json:
    person = home.someone().user
    data = objects.presence(home.source, person["id"], offline=0.3) | {"guild_id": home.id}
    if data["status"] == "offline":
        home.presences.drop(person["id"])
    else:
        home.presences.put(person["id"], {name: data[name] for name in data if name != "guild_id"})
    if home.source.chance(0.1):
        data["user"] = {"id": person["id"], "username": person["username"], "avatar": person["avatar"]}
    return data


def _typing_start(home: Home) -> Json:
    person = home.someone().user["id"]
    return {
        "guild_id": home.id,
        "channel_id": home.setting().channel,
        "user_id": person,
        "timestamp": home.source.number(1 << 31),
        "member": home.whole_member(person),
    }


def _member_add(home: Home) -> Json:
    """Return a new member, or now and then a known one: Discord repeats this event."""
    if home.source.chance(0.1):
        person = home.someone().user["id"]
        return home.whole_member(person) | {"guild_id": home.id}
    made = home.world.new_user()
    home.join(made)
    return home.whole_member(made["id"]) | {"guild_id": home.id}


def _member_update(home: Home) -> Json | None:
    """Return an update without `deaf` and `mute`, as Discord sends it, sometimes with a new user name."""
    person = home.members.any_id(home.source)
    known = None if person is None else home.members.get(person)
    if person is None or known is None:
        return None
    home.members.put(person, {**known, "nick": home.source.words(1), "roles": known["roles"][1:]})
    if home.source.chance(0.2):
        home.world.users[person] = {**home.world.users[person], "global_name": home.source.words(1)}
    data = home.whole_member(person) | {"guild_id": home.id}
    return {name: value for name, value in data.items() if name not in ("deaf", "mute")}


def _member_remove(home: Home) -> Json | None:
    person = home.members.any_id(home.source)
    if person is None or person == home.world.bot["id"]:
        return None
    home.leave(person)
    return {"guild_id": home.id, "user": home.world.users[person]}


def _members_chunk(home: Home) -> Json:
    people = home.source.some(home.members.ids, 5)
    seen = [home.presences.get(person) for person in people]
    return {
        "guild_id": home.id,
        "members": [home.whole_member(person) for person in people],
        "chunk_index": 0,
        "chunk_count": 1,
        "not_found": [],
        "presences": [each for each in seen if each is not None],
        "nonce": "n",
    }


def _ban(home: Home) -> Json:
    return {"guild_id": home.id, "user": home.someone().user}


def _voice_state_update(home: Home) -> Json | None:
    person = home.someone().user["id"]
    leaving = home.voice_states.get(person)
    if leaving is not None and home.source.chance(0.6):
        home.voice_states.drop(person)
        state = {**leaving, "channel_id": None}
    else:
        entered = home.add_voice_state(person)
        if entered is None:
            return None
        state = entered
    return {**state, "guild_id": home.id, "member": home.whole_member(person)}


def _invite_create(home: Home) -> Json:
    code = home.source.hexadecimal()[:8]
    home.invites.put(code, code)
    return {
        "code": code,
        "guild_id": home.id,
        "channel_id": home.setting().channel,
        "inviter": home.someone().user,
        "max_age": home.source.pick((0, 0, 604800)),
        "max_uses": 0,
        "uses": 0,
        "temporary": False,
        "created_at": home.source.time(),
        "type": 0,
        "expires_at": None,
    }


def _invite_delete(home: Home) -> Json | None:
    code = home.invites.any_id(home.source)
    if code is None:
        return None
    home.invites.drop(code)
    return {"code": code, "guild_id": home.id, "channel_id": home.setting().channel}


def _interaction_create(home: Home) -> Json:
    if home.source.chance(0.05):
        person = Speaker(home.someone().user, None)
        setting = Setting(home.source.snowflake(), None, [person], home.world.application)
        return messages.interaction(home.source, setting, person)
    return messages.interaction(home.source, home.setting(), home.someone())


def _user_update(home: Home) -> Json:
    bot = home.world.bot
    bot |= {"avatar": home.source.maybe_hash(0.9), "flags": 0}
    return {**bot, "email": "bot@example.com", "verified": True, "mfa_enabled": True}


def _unknown(home: Home) -> Json:
    return {"guild_id": home.id, "novelty": [home.source.random.random()]}


MAKERS: dict[str, Maker] = {
    "MESSAGE_CREATE": _message_create,
    "MESSAGE_UPDATE": _message_update,
    "MESSAGE_DELETE": _message_delete,
    "MESSAGE_DELETE_BULK": _message_delete_bulk,
    "MESSAGE_REACTION_ADD": _reaction_add,
    "MESSAGE_REACTION_REMOVE": _reaction_remove,
    "MESSAGE_REACTION_REMOVE_EMOJI": _reaction_remove_emoji,
    "MESSAGE_REACTION_REMOVE_ALL": _reaction_remove_all,
    "MESSAGE_POLL_VOTE_ADD": _poll_vote,
    "MESSAGE_POLL_VOTE_REMOVE": _poll_vote,
    "PRESENCE_UPDATE": _presence_update,
    "TYPING_START": _typing_start,
    "GUILD_MEMBER_ADD": _member_add,
    "GUILD_MEMBER_UPDATE": _member_update,
    "GUILD_MEMBER_REMOVE": _member_remove,
    "GUILD_MEMBERS_CHUNK": _members_chunk,
    "GUILD_BAN_ADD": _ban,
    "GUILD_BAN_REMOVE": _ban,
    "VOICE_STATE_UPDATE": _voice_state_update,
    "INVITE_CREATE": _invite_create,
    "INVITE_DELETE": _invite_delete,
    "INTERACTION_CREATE": _interaction_create,
    "USER_UPDATE": _user_update,
    "VOICE_SERVER_UPDATE": _unknown,
    "AUTO_MODERATION_ACTION_EXECUTION": _unknown,
    "GUILD_AUDIT_LOG_ENTRY_CREATE": _unknown,
    "SOMETHING_OF_TOMORROW": _unknown,
}
