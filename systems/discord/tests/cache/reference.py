"""A DRC cache in plain dictionaries, written from the event table alone: what Redis must hold.

It decodes everything, searches by going through all keys, and is meant to be obviously right, not fast.
"""

from __future__ import annotations

from collections.abc import Callable
from copy import deepcopy
from typing import Any

Json = dict[str, Any]
CHILDREN = {
    "channels": "channels",
    "roles": "roles",
    "emojis": "emojis",
    "stickers": "stickers",
    "guild_scheduled_events": "scheduled-events",
}
OTHER_CHILDREN = (*("threads", "members", "voice_states", "presences", "stage_instances", "welcome_screen"),)
GUILD_HASHES = (
    *("automod-rules", "channels", "emojis", "integrations", "scheduled-events"),
    *("roles", "templates", "stickers", "voice-states"),
)


class Reference:
    """`strings`, `hashes` and `sets` by the name of the key after `<prefix>:v1json:`.

    On a cluster `member_count` stays as the guild last had it: an event is not atomic there, and one
    that is applied again would be counted twice.
    """

    def __init__(self, *, cluster: bool = False) -> None:
        self.counts = not cluster
        self.bot: str | None = None
        self.strings: dict[str, Json] = {}
        self.hashes: dict[str, dict[str, Json]] = {}
        self.sets: dict[str, set[str]] = {}
        self.guild_of_thread: dict[str, str] = {}
        self.departed: set[tuple[str, str]] = set()  # guild, user
        self.received: dict[tuple[str, str | None], set[str]] = {}  # guild, nonce
        self.supers: dict[tuple[str, str], set[tuple[str, bool]]] = {}  # message, emoji: user, super or not

    def apply(self, event: str, data: Any) -> None:
        handler = getattr(self, f"on_{event.lower()}", None)
        if handler is not None:
            handler(deepcopy(data))

    def layout(self) -> dict[str, Any]:
        """Return every key with its value, as `survey` does."""
        kept = {name: entries for name, entries in self.hashes.items() if entries}
        return {**self.strings, **kept, **{name: members for name, members in self.sets.items() if members}}

    # Entities.

    def user(self, given: Json) -> str:
        given.pop("member", None)
        name = f"users:{given['id']}"
        if "username" in given:
            self.strings[name] = given
        elif name in self.strings:
            self.strings[name] |= given
        return str(given["id"])

    def member(self, guild: str, given: Json, user: str = "", *, whole: bool = False) -> str:
        given.pop("permissions", None)
        if given.get("user"):
            user = self.user(given.pop("user"))
        name = f"members:{guild}:{user}"
        known = {} if whole else self.strings.get(name, {})
        self.strings[name] = {**known, **given}
        self.sets.setdefault(f"members:{guild}", set()).add(user)
        return user

    def forget_member(self, guild: str, user: str) -> None:
        self.sets.get(f"members:{guild}", set()).discard(user)
        self.strings.pop(f"members:{guild}:{user}", None)
        self.strings.pop(f"presence:{guild}:{user}", None)
        self.hashes.get(f"voice-states:{guild}", {}).pop(user, None)
        for thread, home in self.guild_of_thread.items():
            if home == guild:
                self.hashes.get(f"thread-members:{thread}", {}).pop(user, None)

    def keep_members(self, guild: str, listed: set[str]) -> None:
        for user in self.sets.get(f"members:{guild}", set()) - listed:
            self.forget_member(guild, user)

    def presence(self, guild: str, given: Json) -> None:
        user = given["user"]["id"]
        if f"users:{user}" in self.strings:
            self.strings[f"users:{user}"] |= given["user"]
        name = f"presence:{guild}:{user}"
        if given.get("status") == "offline":
            self.strings.pop(name, None)
        else:
            self.strings[name] = {**given, "guild_id": guild, "user": user}

    def voice_state(self, guild: str, given: Json) -> None:
        user = given["user_id"]
        if given.get("member"):
            self.member(guild, given.pop("member"), user)
        states = self.hashes.setdefault(f"voice-states:{guild}", {})
        if given.get("channel_id"):
            states[user] = {**given, "guild_id": guild}
        else:
            states.pop(user, None)

    def thread(self, guild: str, given: Json, *, whole: bool = False) -> str:
        identity = given["id"]
        own = given.pop("member", None)
        if own:
            self.thread_member(guild, identity, own)
        known = {} if whole else self.strings.get(f"threads:{identity}", {})
        self.strings[f"threads:{identity}"] = {**known, **given, "guild_id": guild}
        self.guild_of_thread[identity] = guild
        return str(identity)

    def thread_member(self, guild: str, thread: str, given: Json) -> None:
        user = given.get("user_id") or self.bot
        if given.get("member"):
            user = self.member(guild, given["member"], user or "")
        if given.get("presence"):
            self.presence(guild, given["presence"])
        if user:
            kept = {name: value for name, value in given.items() if name not in ("member", "presence")}
            members = self.hashes.setdefault(f"thread-members:{thread}", {})
            members[user] = {**kept, "id": thread, "user_id": user}
            self.guild_of_thread[thread] = guild

    def forget_thread(self, thread: str) -> None:
        self.strings.pop(f"threads:{thread}", None)
        self.hashes.pop(f"thread-members:{thread}", None)
        self.guild_of_thread.pop(thread, None)

    def child(self, kind: str, guild: str, given: Json, *, merge: bool = False) -> None:
        for person in ("user", "creator"):
            if isinstance(given.get(person), dict):
                given[person] = self.user(given[person])
        entries = self.hashes.setdefault(f"{kind}:{guild}", {})
        entries[given["id"]] = {**(entries.get(given["id"], {}) if merge else {}), **given}

    def forget_child(self, kind: str, guild: str, identity: str) -> None:
        self.hashes.get(f"{kind}:{guild}", {}).pop(identity, None)

    def patch_place(self, guild: str, identity: str, changed: Json) -> None:
        """Patch a channel or a thread."""
        channels = self.hashes.get(f"channels:{guild}", {})
        if identity in channels:
            channels[identity] |= changed
        if f"threads:{identity}" in self.strings:
            self.strings[f"threads:{identity}"] |= changed

    def message(self, given: Json, *, merge: bool) -> str:
        guild = given.get("guild_id")
        if given.get("author"):
            author = given["author"]
            given["author"] = author["id"] if given.get("webhook_id") else self.user(author)
            if given.get("webhook_id"):
                given["webhook_author"] = author
            if given.get("member") and guild:
                self.member(guild, given.pop("member"), given["author"])
        if given.get("mentions"):
            given["mentions"] = [self.mention(guild, each) for each in given["mentions"]]
        if given.get("referenced_message"):
            inner = given["referenced_message"]
            if guild and given.get("message_reference", {}).get("guild_id") == guild:
                inner.setdefault("guild_id", guild)
            given["referenced_message"] = self.message(inner, merge=True)
        for field in ("interaction", "interaction_metadata"):
            if given.get(field):
                self.invoked(guild, given[field])
        if given.get("thread"):
            given["thread"] = self.thread(guild or given["thread"]["guild_id"], given["thread"])
        name = f"messages:{given['id']}"
        self.strings[name] = {**(self.strings.get(name, {}) if merge else {}), **given}
        return str(given["id"])

    def mention(self, guild: str | None, given: Json) -> str:
        inner = given.pop("member", None)
        if inner and guild:
            self.member(guild, inner, given["id"])
        return self.user(given)

    def invoked(self, guild: str | None, given: Json) -> None:
        for field in ("user", "target_user"):
            if given.get(field):
                given[field] = self.user(given[field])
        if given.get("member") and guild:
            self.member(guild, given.pop("member"), given["user"])
        if given.get("triggering_interaction_metadata"):
            self.invoked(guild, given["triggering_interaction_metadata"])

    def forget_message(self, message: str) -> None:
        self.strings.pop(f"messages:{message}", None)
        self.on_message_reaction_remove_all({"message_id": message})

    # Guilds.

    def on_ready(self, d: Json) -> None:
        d["user"].pop("email", None)
        self.bot = self.user(d["user"])
        shard, shards = d.get("shard", (0, 1))
        listed = {each["id"] for each in d["guilds"]}
        for guild in self.sets.get("guilds", set()) - listed:
            if (int(guild) >> 22) % shards == shard:
                self.forget_guild(guild)
        self.sets.setdefault("guilds", set()).update(listed)
        name = f"applications:{d['application']['id']}"
        self.strings[name] = {**self.strings.get(name, {}), **d["application"]}

    def on_user_update(self, d: Json) -> None:
        d.pop("email", None)
        self.user(d)

    def on_guild_create(self, d: Json) -> None:
        self.sets.setdefault("guilds", set()).add(d["id"])
        if d.get("unavailable"):
            return
        self.strings[f"guilds:{d['id']}"] = self.without_children(d)
        self.departed = {each for each in self.departed if each[0] != d["id"]}
        self.children(d)

    def on_guild_update(self, d: Json) -> None:
        self.sets.setdefault("guilds", set()).add(d["id"])
        name = f"guilds:{d['id']}"
        self.strings[name] = {**self.strings.get(name, {}), **self.without_children(d)}
        self.children(d)

    def without_children(self, d: Json) -> Json:
        return {name: value for name, value in d.items() if name not in {*CHILDREN, *OTHER_CHILDREN}}

    def children(self, d: Json) -> None:
        guild = d["id"]
        for field, kind in CHILDREN.items():
            if field in d:
                self.hashes[f"{kind}:{guild}"] = {}
                for each in d[field]:
                    self.child(kind, guild, {**each, "guild_id": guild} if kind == "channels" else each)
        if "voice_states" in d:
            self.hashes[f"voice-states:{guild}"] = {}
            for each in d["voice_states"]:
                self.voice_state(guild, each)
        if "members" in d and len(d["members"]) == d.get("member_count"):  # the list is whole
            self.keep_members(guild, {each["user"]["id"] for each in d["members"]})
        for each in d.get("members", []):
            self.member(guild, each, whole=True)
        if "presences" in d:
            for name in list(self.strings):
                if name.startswith(f"presence:{guild}:"):
                    del self.strings[name]
            for each in d["presences"]:
                self.presence(guild, each)
        if "channels" in d:
            self.forget_of_channels(guild, lambda channel: channel not in self.hashes[f"channels:{guild}"])
            for thread, home in list(self.guild_of_thread.items()):
                if home == guild:
                    self.forget_thread(thread)
        for each in d.get("threads", []):
            self.thread(guild, each, whole=True)
        if "stage_instances" in d:
            self.forget_stages(guild)
            for each in d["stage_instances"]:
                self.on_stage_instance_create({**each, "guild_id": guild})

    def on_guild_delete(self, d: Json) -> None:
        if not d.get("unavailable"):
            self.forget_guild(d["id"])
        elif f"guilds:{d['id']}" in self.strings:
            self.strings[f"guilds:{d['id']}"]["unavailable"] = True

    def forget_of_channels(self, guild: str, is_gone: Callable[[str], bool]) -> None:
        """Remove webhooks and invites without an end of channels that are gone."""
        for name, value in list(self.strings.items()):
            of_channel = name.startswith("webhooks:") or (
                name.startswith("invites:") and not value["max_age"]
            )
            if of_channel and value["guild_id"] == guild and is_gone(value["channel_id"]):
                del self.strings[name]

    def on_store_webhook(self, d: Json) -> None:
        """Not an event: a program stores what the REST API returned."""
        d["user"] = self.user(d["user"])
        self.strings[f"webhooks:{d['id']}"] = d

    def on_store_webhooks(self, d: Json) -> None:
        """Not an event: the complete list of a guild, which the REST API returned."""
        for name, value in list(self.strings.items()):
            if name.startswith("webhooks:") and value["guild_id"] == d["guild_id"]:
                del self.strings[name]
        for each in d["webhooks"]:
            self.on_store_webhook(each)

    def forget_guild(self, guild: str) -> None:
        self.forget_of_channels(guild, lambda _: True)
        self.sets.get("guilds", set()).discard(guild)
        self.departed = {each for each in self.departed if each[0] != guild}
        self.forget_stages(guild)
        for kind in GUILD_HASHES:
            self.hashes.pop(f"{kind}:{guild}", None)
        for kind in ("guilds", "widget", "welcome-screen"):
            self.strings.pop(f"{kind}:{guild}", None)
        self.sets.pop(f"members:{guild}", None)
        for name in list(self.strings):
            if name.startswith((f"members:{guild}:", f"presence:{guild}:")):
                del self.strings[name]
        for thread, home in list(self.guild_of_thread.items()):
            if home == guild:
                self.forget_thread(thread)

    def forget_stages(self, guild: str) -> None:
        for name, value in list(self.strings.items()):
            if name.startswith("stage-instances:") and value["guild_id"] == guild:
                del self.strings[name]

    # Channels and threads.

    def on_channel_create(self, d: Json) -> None:
        if d.get("guild_id"):
            self.child("channels", d["guild_id"], d)

    def on_channel_update(self, d: Json) -> None:
        known = self.hashes.get(f"channels:{d['guild_id']}", {}).get(d["id"], {})
        apart: Json = {name: known[name] for name in ("status", "voice_start_time") if name in known}
        self.child("channels", d["guild_id"], {**apart, **d})

    def on_channel_delete(self, d: Json) -> None:
        self.forget_child("channels", d["guild_id"], d["id"])
        self.strings.pop(f"stage-instances:{d['id']}", None)
        self.forget_of_channels(d["guild_id"], lambda channel: channel == d["id"])
        for thread in list(self.guild_of_thread):
            if self.strings.get(f"threads:{thread}", {}).get("parent_id") == d["id"]:
                self.forget_thread(thread)

    def on_channel_pins_update(self, d: Json) -> None:
        if d.get("guild_id"):
            pinned = {"last_pin_timestamp": d.get("last_pin_timestamp")}
            self.patch_place(d["guild_id"], d["channel_id"], pinned)

    def on_channel_info(self, d: Json) -> None:
        for each in d["channels"]:
            changed = {name: each[name] for name in ("status", "voice_start_time") if name in each}
            self.patch_place(d["guild_id"], each["id"], changed)

    def on_voice_channel_status_update(self, d: Json) -> None:
        self.patch_place(d["guild_id"], d["id"], {"status": d["status"]})

    def on_voice_channel_start_time_update(self, d: Json) -> None:
        self.patch_place(d["guild_id"], d["id"], {"voice_start_time": d["voice_start_time"]})

    def on_thread_create(self, d: Json) -> None:
        self.thread(d["guild_id"], d)

    on_thread_update = on_thread_create

    def on_thread_delete(self, d: Json) -> None:
        self.forget_thread(d["id"])

    def on_thread_list_sync(self, d: Json) -> None:
        guild, channels = d["guild_id"], d.get("channel_ids")
        listed = {each["id"] for each in d["threads"]}
        for thread, home in list(self.guild_of_thread.items()):
            parent = self.strings.get(f"threads:{thread}", {}).get("parent_id")
            if thread in listed or (home == guild and (channels is None or parent in channels)):
                self.forget_thread(thread)
        for each in d["threads"]:
            self.thread(guild, each, whole=True)
        for each in d.get("members", []):
            self.thread_member(guild, each["id"], each)

    def on_thread_member_update(self, d: Json) -> None:
        self.thread_member(d["guild_id"], d["id"], d)

    def on_thread_members_update(self, d: Json) -> None:
        thread = d["id"]
        for each in d.get("added_members", []):
            self.thread_member(d["guild_id"], thread, each)
        for user in d.get("removed_member_ids", []):
            self.hashes.get(f"thread-members:{thread}", {}).pop(user, None)
        if f"threads:{thread}" in self.strings:
            self.strings[f"threads:{thread}"]["member_count"] = d["member_count"]

    # Members.

    def count(self, guild: str, by: int) -> None:
        known = self.strings.get(f"guilds:{guild}", {})
        if self.counts and "member_count" in known:
            known["member_count"] = max(0, known["member_count"] + by)

    def on_guild_member_add(self, d: Json) -> None:
        guild, user = d["guild_id"], d["user"]["id"]
        known = self.strings.get(f"members:{guild}:{user}")
        if known is None or known["joined_at"] != d["joined_at"]:
            self.count(guild, 1)
        self.departed.discard((guild, user))
        self.member(guild, d, whole=True)

    def on_guild_member_update(self, d: Json) -> None:
        self.member(d["guild_id"], d)

    def on_guild_member_remove(self, d: Json) -> None:
        guild, user = d["guild_id"], self.user(d["user"])
        if f"members:{guild}:{user}" in self.strings or (guild, user) not in self.departed:
            self.count(guild, -1)
        if "member_count" in self.strings.get(f"guilds:{guild}", {}):
            self.departed.add((guild, user))
        self.forget_member(guild, user)

    def on_guild_members_chunk(self, d: Json) -> None:
        guild, request = d["guild_id"], (d["guild_id"], d.get("nonce"))
        people = {each["user"]["id"] for each in d["members"]}
        received = self.received.setdefault(request, set())
        if d["chunk_index"] == 0:
            received.clear()
        received |= people
        if d["chunk_index"] == d["chunk_count"] - 1:
            del self.received[request]
            if self.counts and len(received) == self.strings.get(f"guilds:{guild}", {}).get("member_count"):
                self.keep_members(guild, received)
        for each in d["members"]:
            self.member(guild, each, whole=True)
        if "presences" in d:
            for person in people:
                self.strings.pop(f"presence:{guild}:{person}", None)
            for each in d["presences"]:
                self.presence(guild, each)

    def on_guild_ban_add(self, d: Json) -> None:
        self.user(d["user"])

    on_guild_ban_remove = on_guild_ban_add

    def on_presence_update(self, d: Json) -> None:
        self.presence(d["guild_id"], d)

    def on_voice_state_update(self, d: Json) -> None:
        if d.get("guild_id"):
            self.voice_state(d["guild_id"], d)

    def on_typing_start(self, d: Json) -> None:
        if d.get("guild_id") and d.get("member"):
            self.member(d["guild_id"], d["member"], d["user_id"])

    # Children of a guild.

    def on_guild_role_create(self, d: Json) -> None:
        self.child("roles", d["guild_id"], d["role"])

    on_guild_role_update = on_guild_role_create

    def on_guild_role_delete(self, d: Json) -> None:
        self.forget_child("roles", d["guild_id"], d["role_id"])

    def on_guild_emojis_update(self, d: Json) -> None:
        self.hashes[f"emojis:{d['guild_id']}"] = {}
        for each in d["emojis"]:
            self.child("emojis", d["guild_id"], each)

    def on_guild_stickers_update(self, d: Json) -> None:
        self.hashes[f"stickers:{d['guild_id']}"] = {}
        for each in d["stickers"]:
            self.child("stickers", d["guild_id"], each)

    def on_integration_create(self, d: Json) -> None:
        application = d.get("application") or {}
        if application.get("bot"):
            application["bot"] = self.user(application["bot"])
        self.child("integrations", d["guild_id"], d, merge=True)

    on_integration_update = on_integration_create

    def on_integration_delete(self, d: Json) -> None:
        self.forget_child("integrations", d["guild_id"], d["id"])

    def on_auto_moderation_rule_create(self, d: Json) -> None:
        self.child("automod-rules", d["guild_id"], d)

    on_auto_moderation_rule_update = on_auto_moderation_rule_create

    def on_auto_moderation_rule_delete(self, d: Json) -> None:
        self.forget_child("automod-rules", d["guild_id"], d["id"])

    def on_guild_scheduled_event_create(self, d: Json) -> None:
        self.child("scheduled-events", d["guild_id"], d)

    on_guild_scheduled_event_update = on_guild_scheduled_event_create

    def on_guild_scheduled_event_delete(self, d: Json) -> None:
        self.forget_child("scheduled-events", d["guild_id"], d["id"])

    def on_stage_instance_create(self, d: Json) -> None:
        self.strings[f"stage-instances:{d['channel_id']}"] = d

    on_stage_instance_update = on_stage_instance_create

    def on_stage_instance_delete(self, d: Json) -> None:
        self.strings.pop(f"stage-instances:{d['channel_id']}", None)

    # Soundboard sounds, inside the guild.

    def sounds(self, guild: str, change: Callable[[dict[str, Json]], object]) -> None:
        known = self.strings.get(f"guilds:{guild}", {})
        if "soundboard_sounds" in known:
            listed = {each["sound_id"]: each for each in known["soundboard_sounds"]}
            change(listed)
            known["soundboard_sounds"] = list(listed.values())

    def on_guild_soundboard_sound_create(self, d: Json) -> None:
        self.sounds(d["guild_id"], lambda listed: listed.update({d["sound_id"]: d}))

    on_guild_soundboard_sound_update = on_guild_soundboard_sound_create

    def on_guild_soundboard_sound_delete(self, d: Json) -> None:
        self.sounds(d["guild_id"], lambda listed: listed.pop(d["sound_id"], None))

    def on_guild_soundboard_sounds_update(self, d: Json) -> None:
        if f"guilds:{d['guild_id']}" in self.strings:
            self.strings[f"guilds:{d['guild_id']}"]["soundboard_sounds"] = d["soundboard_sounds"]

    on_soundboard_sounds = on_guild_soundboard_sounds_update

    # Messages and what else is said.

    def on_message_create(self, d: Json) -> None:
        guild, channel, identity = d.get("guild_id"), d["channel_id"], d["id"]
        self.message(d, merge=False)
        if guild:
            self.patch_place(guild, channel, {"last_message_id": identity})

    def on_message_update(self, d: Json) -> None:
        if d.get("author") or f"messages:{d['id']}" in self.strings:
            self.message(d, merge=True)

    def on_message_delete(self, d: Json) -> None:
        self.forget_message(d["id"])

    def on_message_delete_bulk(self, d: Json) -> None:
        for message in d["ids"]:
            self.forget_message(message)

    def on_message_reaction_add(self, d: Json) -> None:
        if d.get("guild_id") and d.get("member"):
            self.member(d["guild_id"], d["member"])
        emoji = d["emoji"]["id"] or d["emoji"]["name"]
        self.supers.setdefault((d["message_id"], emoji), set()).add((d["user_id"], d["burst"]))
        self.sets.setdefault(f"reactions:{d['message_id']}", set()).add(emoji)
        self.sets.setdefault(f"reactions:{d['message_id']}:{emoji}", set()).add(d["user_id"])

    def on_message_reaction_remove(self, d: Json) -> None:
        emoji = d["emoji"]["id"] or d["emoji"]["name"]
        both_ways = self.supers.get((d["message_id"], emoji), set())
        both_ways.discard((d["user_id"], d["burst"]))
        users = self.sets.get(f"reactions:{d['message_id']}:{emoji}", set())
        users &= {user for user, _ in both_ways}
        if not users:
            self.on_message_reaction_remove_emoji(d)

    def on_message_reaction_remove_emoji(self, d: Json) -> None:
        emoji = d["emoji"]["id"] or d["emoji"]["name"]
        self.supers.pop((d["message_id"], emoji), None)
        self.sets.pop(f"reactions:{d['message_id']}:{emoji}", None)
        self.sets.get(f"reactions:{d['message_id']}", set()).discard(emoji)

    def on_message_reaction_remove_all(self, d: Json) -> None:
        self.supers = {ids: kept for ids, kept in self.supers.items() if ids[0] != d["message_id"]}
        for name in list(self.sets):
            if name == f"reactions:{d['message_id']}" or name.startswith(f"reactions:{d['message_id']}:"):
                del self.sets[name]

    def on_invite_create(self, d: Json) -> None:
        for person in ("inviter", "target_user"):
            if d.get(person):
                d[person] = self.user(d[person])
        self.strings[f"invites:{d['code']}"] = d

    def on_invite_delete(self, d: Json) -> None:
        self.strings.pop(f"invites:{d['code']}", None)

    def on_interaction_create(self, d: Json) -> None:
        guild = d.get("guild_id")
        if guild and guild not in self.sets.get("guilds", set()):
            self.on_interaction_elsewhere(d)
            return
        if d.get("user"):
            d["user"] = self.user(d["user"])
        if guild and d.get("member"):
            d["user"] = self.member(guild, d.pop("member"))
        if d.get("message"):
            if guild:
                d["message"].setdefault("guild_id", guild)
            d["message"] = self.message(d["message"], merge=True)
        resolved = (d.get("data") or {}).get("resolved") or {}
        if "users" in resolved:
            resolved["users"] = [self.user(each) for each in resolved["users"].values()]
        if guild and "members" in resolved:
            named = resolved["members"]
            resolved["members"] = [self.member(guild, each, user) for user, each in named.items()]
        self.strings[f"interactions:{d['id']}"] = d

    def on_interaction_elsewhere(self, d: Json) -> None:
        """Where the bot is not, its people stay in the interaction, which expires."""
        stored = deepcopy(d)
        person = d.get("user") or d["member"]["user"]
        stored["user"] = self.user(person)
        if d.get("message"):
            d["message"].setdefault("guild_id", d["guild_id"])
            stored["message"] = self.message(self.without_members(d["message"]), merge=True)
        for each in ((d.get("data") or {}).get("resolved") or {}).get("users", {}).values():
            self.user(each)
        self.strings[f"interactions:{d['id']}"] = stored

    def without_members(self, given: Json) -> Json:
        """Return a message without its members, those of mentions and of the interaction that it answers."""
        given.pop("member", None)
        for each in given.get("mentions", []):
            each.pop("member", None)
        for field in ("interaction", "interaction_metadata"):
            (given.get(field) or {}).pop("member", None)
        return given
