"""A Spectacles cache in plain dictionaries, written from the event table and the documented rules.

It holds every kind of object by id, remembers whose each is, and searches by going through all of them:
meant to be obviously right, not fast. An object that is held is never changed, only replaced.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

Json = dict[str, Any]

PRIVATE = "spectacles-private:"
APART = ("voice_states", "roles", "emojis", "channels", "members", "presences", "threads")


class SpectaclesReference:
    """What each event leaves.

    On a cluster `member_count` stays as the guild last had it: an event is not atomic there, and one
    that is applied again would be counted twice.
    """

    def __init__(self, *, cluster: bool = False) -> None:
        self.counts = not cluster
        self.known: set[str] = set()
        self.users: dict[str, Json] = {}
        self.guilds: dict[str, Json] = {}
        self.members: dict[tuple[str, str], Json] = {}  # guild, user
        self.voice_states: dict[tuple[str, str], Json] = {}  # guild, user
        self.roles: dict[tuple[str, str], Json] = {}  # guild, role
        self.emojis: dict[tuple[str, str], Json] = {}  # guild, emoji
        self.channels: dict[tuple[str, str], Json] = {}  # guild, channel or thread
        self.parents: dict[tuple[str, str], str] = {}  # guild, thread
        self.messages: dict[tuple[str, str], Json] = {}  # channel, message
        self.spoken_in: set[tuple[str, str]] = set()  # guild, channel; though its messages may be gone
        self.presences: dict[str, Json] = {}
        self.shown: set[tuple[str, str]] = set()  # guild, user
        self.departed: set[tuple[str, str]] = set()  # guild, user
        self.received: dict[tuple[str, str | None], set[str]] = {}  # guild, nonce

    def apply(self, event: str, data: Any) -> None:
        handler = getattr(self, f"on_{event.lower()}", None)
        if handler is not None:
            handler(data)

    def public(self) -> dict[str, Any]:
        """Return the keys of the table, as a survey of Redis does."""
        keys: dict[str, Any] = {
            "USERS": self.users,
            "GUILDS": self.guilds,
            "CHANNELS": {channel: body for (_, channel), body in self.channels.items()},
            "EMOJIS": {emoji: body for (_, emoji), body in self.emojis.items()},
            **_per_first("MEMBERS", self.members),
            **_per_first("VOICE_STATES", self.voice_states),
            **_per_first("ROLES", self.roles),
            **_sets("CHANNELS", self.channels),
            **_sets("EMOJIS", self.emojis),
            **{f"PRESENCES:{user}": {user: body} for user, body in self.presences.items()},
            **{f"MESSAGES:{place}:{message}": body for (place, message), body in self.messages.items()},
        }
        return {name: content for name, content in keys.items() if content}

    def private(self) -> dict[str, Any]:
        """Return the indexes, by which the cache finds the keys of a guild, a channel or a user."""
        keys: dict[str, Any] = {
            "guilds": self.known,
            **_per_first("threads", {ids: int(parent) for ids, parent in self.parents.items()}),
            **_sets("presences", self.shown),
            **_sets("presence-guilds", ((user, guild) for guild, user in self.shown)),
            **_sets("messages", self.messages),
            **_sets("message-channels", self.spoken_in),
        }
        return {PRIVATE + name: content for name, content in keys.items() if content}

    # People.

    def user(self, given: Json) -> str:
        identity: str = given["id"]
        body = {name: value for name, value in given.items() if name != "member"}
        if "username" in body:
            self.users[identity] = body
        elif identity in self.users:
            self.users[identity] = {**self.users[identity], **body}
        return identity

    def own_user(self, given: Json) -> None:
        self.user({name: value for name, value in given.items() if name != "email"})

    def on_store_webhook(self, d: Json) -> None:
        """Not an event: a program stores what the REST API returned. The table has no webhooks."""
        self.user(d["user"])

    def on_store_webhooks(self, d: Json) -> None:
        for each in d["webhooks"]:
            self.on_store_webhook(each)

    def member(self, guild: str, given: Json, user: str = "", *, whole: bool = False) -> None:
        body = {name: value for name, value in given.items() if name != "permissions"}
        if given.get("user"):
            user = self.user(given["user"])
        known = self.members.get((guild, user))
        if known is None or whole:
            self.members[guild, user] = body
            return
        if "username" not in (given.get("user") or {}):
            body.pop("user", None)
        self.members[guild, user] = {**known, **body}

    def forget_member(self, guild: str, user: str) -> None:
        self.members.pop((guild, user), None)
        self.voice_states.pop((guild, user), None)
        self.hide(guild, user)

    def presence(self, guild: str, given: Json) -> None:
        user = given["user"]["id"]
        if user in self.users:
            self.users[user] = {**self.users[user], **given["user"]}
        if given.get("status") == "offline":
            self.presences.pop(user, None)
            self.shown.discard((guild, user))
        else:
            self.presences[user] = {**given, "guild_id": guild}
            self.shown.add((guild, user))

    def hide(self, guild: str, user: str) -> None:
        """Remove a guild from those that show a user; the presence is removed with the last."""
        if (guild, user) in self.shown:
            self.shown.remove((guild, user))
            if all(each != user for _, each in self.shown):
                self.presences.pop(user, None)

    def voice_state(self, guild: str, given: Json) -> None:
        user = given["user_id"]
        if given.get("member"):
            self.member(guild, given["member"], user)
        if given.get("channel_id"):
            self.voice_states[guild, user] = {**given, "guild_id": guild}
        else:
            self.voice_states.pop((guild, user), None)

    # Places and what is said there.

    def channel(self, guild: str, given: Json) -> None:
        self.channels[guild, given["id"]] = {**given, "guild_id": guild}

    def thread(self, guild: str, given: Json, *, whole: bool = False) -> None:
        ids = guild, given["id"]
        self.thread_member(guild, given.get("member") or {})
        known = {} if whole else self.channels.get(ids, {})
        self.channels[ids] = {**known, **given, "guild_id": guild}
        if given.get("parent_id"):
            self.parents[ids] = given["parent_id"]

    def thread_member(self, guild: str, given: Json) -> None:
        """Store the member and presence of a thread member, which has no key itself."""
        if given.get("member"):
            self.member(guild, given["member"], given["user_id"])
        if given.get("presence"):
            self.presence(guild, given["presence"])

    def forget_channel(self, guild: str, channel: str) -> None:
        """Remove a channel or a thread."""
        self.channels.pop((guild, channel), None)
        self.parents.pop((guild, channel), None)
        self.spoken_in.discard((guild, channel))
        for place, message in list(self.messages):
            if place == channel:
                del self.messages[place, message]

    def patch_channel(self, guild: str, channel: str, changed: Json) -> None:
        if (guild, channel) in self.channels:
            self.channels[guild, channel] = {**self.channels[guild, channel], **changed}

    def message(self, given: Json, *, merge: bool) -> None:
        guild = given.get("guild_id")
        if given.get("author") and not given.get("webhook_id"):
            self.user(given["author"])
        if guild and given.get("author") and given.get("member"):
            self.member(guild, given["member"], given["author"]["id"])
        for each in given.get("mentions", []):
            self.user(each)
            if guild and each.get("member"):
                self.member(guild, each["member"], each["id"])
        if given.get("referenced_message"):
            same = guild and given.get("message_reference", {}).get("guild_id") == guild
            home = {"guild_id": guild} if same else {}
            self.message({**home, **given["referenced_message"]}, merge=True)
        for field in ("interaction", "interaction_metadata"):
            self.invoked(guild, given.get(field) or {})
        if given.get("thread"):
            self.thread(guild or given["thread"]["guild_id"], given["thread"])
        if guild:
            self.spoken_in.add((guild, given["channel_id"]))
        ids = given["channel_id"], given["id"]
        self.messages[ids] = {**(self.messages.get(ids, {}) if merge else {}), **given}

    def invoked(self, guild: str | None, given: Json) -> None:
        for field in ("user", "target_user"):
            if given.get(field):
                self.user(given[field])
        if guild and given.get("member"):
            self.member(guild, given["member"], given["user"]["id"])
        if given.get("triggering_interaction_metadata"):
            self.invoked(guild, given["triggering_interaction_metadata"])

    # Guilds.

    def on_ready(self, d: Json) -> None:
        self.own_user(d["user"])
        shard, shards = d.get("shard", (0, 1))
        listed = {each["id"] for each in d["guilds"]}
        for guild in (self.known | self.guilds.keys()) - listed:
            if (int(guild) >> 22) % shards == shard:
                self.forget_guild(guild)
        self.known |= listed

    def on_user_update(self, d: Json) -> None:
        self.own_user(d)

    def on_guild_create(self, d: Json) -> None:
        self.known.add(d["id"])
        if not d.get("unavailable"):
            self.guilds[d["id"]] = _without_children(d)
            self.departed = {each for each in self.departed if each[0] != d["id"]}
            self.children(d["id"], d)

    def on_guild_update(self, d: Json) -> None:
        self.known.add(d["id"])
        self.guilds[d["id"]] = {**self.guilds.get(d["id"], {}), **_without_children(d)}
        self.children(d["id"], d)

    def children(self, guild: str, d: Json) -> None:
        self.places(guild, d)
        if "roles" in d:
            _forget(self.roles, guild)
            self.roles |= {(guild, each["id"]): each for each in d["roles"]}
        if "emojis" in d:
            self.on_guild_emojis_update({"guild_id": guild, "emojis": d["emojis"]})
        for each in d.get("stickers", []):
            self.creator(each, "user")
        for each in d.get("guild_scheduled_events", []):
            self.creator(each, "creator")
        if "voice_states" in d:
            _forget(self.voice_states, guild)
            for each in d["voice_states"]:
                self.voice_state(guild, each)
        self.people(guild, d)

    def places(self, guild: str, d: Json) -> None:
        """Replace channels and threads by those that a guild lists."""
        if "channels" not in d:
            return
        listed = {each["id"] for field in ("channels", "threads") for each in d.get(field, [])}
        for home, channel in list(self.channels):
            if home == guild and channel not in listed:
                self.forget_channel(guild, channel)
        for each in d["channels"]:
            self.channel(guild, each)
        for each in d.get("threads", []):
            self.thread(guild, each, whole=True)

    def people(self, guild: str, d: Json) -> None:
        members = d.get("members", [])
        if "members" in d and len(members) == d.get("member_count"):  # the list is whole
            listed = {each["user"]["id"] for each in members}
            for home, user in list(self.members):
                if home == guild and user not in listed:
                    self.forget_member(guild, user)
        for each in members:
            self.member(guild, each, whole=True)
        if "presences" in d:
            listed = {each["user"]["id"] for each in d["presences"]}
            for home, user in list(self.shown):
                if home == guild and user not in listed:
                    self.hide(guild, user)
            for each in d["presences"]:
                self.presence(guild, each)

    def creator(self, given: Json, field: str) -> None:
        if given.get(field):
            self.user(given[field])

    def on_guild_delete(self, d: Json) -> None:
        guild = d["id"]
        if not d.get("unavailable"):
            self.forget_guild(guild)
        elif guild in self.guilds:
            self.guilds[guild] = {**self.guilds[guild], "unavailable": True}

    def forget_guild(self, guild: str) -> None:
        self.known.discard(guild)
        self.guilds.pop(guild, None)
        self.departed = {each for each in self.departed if each[0] != guild}
        for home, channel in list(self.channels):
            if home == guild:
                self.forget_channel(guild, channel)
        for ids, message in list(self.messages.items()):
            if message.get("guild_id") == guild:
                del self.messages[ids]
        self.spoken_in = {ids for ids in self.spoken_in if ids[0] != guild}
        for home, user in list(self.shown):
            if home == guild:
                self.hide(guild, user)
        for held in (self.members, self.voice_states, self.roles, self.emojis):
            _forget(held, guild)

    # Channels and threads.

    def on_channel_create(self, d: Json) -> None:
        if d.get("guild_id"):
            self.channel(d["guild_id"], d)

    def on_channel_update(self, d: Json) -> None:
        known = self.channels.get((d["guild_id"], d["id"]), {})
        apart: Json = {name: known[name] for name in ("status", "voice_start_time") if name in known}
        self.channel(d["guild_id"], {**apart, **d})

    def on_channel_delete(self, d: Json) -> None:
        guild, channel = d["guild_id"], d["id"]
        inside = [ids[1] for ids, parent in self.parents.items() if ids[0] == guild and parent == channel]
        for each in (channel, *inside):
            self.forget_channel(guild, each)
        self.unlist(guild, "stage_instances", "channel_id", channel)

    def on_channel_pins_update(self, d: Json) -> None:
        if d.get("guild_id"):
            pinned = {"last_pin_timestamp": d.get("last_pin_timestamp")}
            self.patch_channel(d["guild_id"], d["channel_id"], pinned)

    def on_channel_info(self, d: Json) -> None:
        for each in d["channels"]:
            changed = {name: each[name] for name in ("status", "voice_start_time") if name in each}
            self.patch_channel(d["guild_id"], each["id"], changed)

    def on_voice_channel_status_update(self, d: Json) -> None:
        self.patch_channel(d["guild_id"], d["id"], {"status": d["status"]})

    def on_voice_channel_start_time_update(self, d: Json) -> None:
        self.patch_channel(d["guild_id"], d["id"], {"voice_start_time": d["voice_start_time"]})

    def on_thread_create(self, d: Json) -> None:
        self.thread(d["guild_id"], d)

    on_thread_update = on_thread_create

    def on_thread_delete(self, d: Json) -> None:
        self.forget_channel(d["guild_id"], d["id"])

    def on_thread_list_sync(self, d: Json) -> None:
        guild, channels = d["guild_id"], d.get("channel_ids")
        listed = {each["id"] for each in d["threads"]}
        for (home, thread), parent in list(self.parents.items()):
            if home == guild and thread not in listed and (channels is None or parent in channels):
                self.forget_channel(guild, thread)
        for each in d["threads"]:
            self.thread(guild, each, whole=True)

    def on_thread_members_update(self, d: Json) -> None:
        for each in d.get("added_members", []):
            self.thread_member(d["guild_id"], each)
        self.patch_channel(d["guild_id"], d["id"], {"member_count": d["member_count"]})

    # Members.

    def count(self, guild: str, by: int) -> None:
        known = self.guilds.get(guild, {})
        if self.counts and "member_count" in known:
            self.guilds[guild] = {**known, "member_count": max(0, known["member_count"] + by)}

    def on_guild_member_add(self, d: Json) -> None:
        ids = d["guild_id"], d["user"]["id"]
        if ids not in self.members or self.members[ids]["joined_at"] != d["joined_at"]:
            self.count(d["guild_id"], 1)
        self.departed.discard(ids)
        self.member(d["guild_id"], d, whole=True)

    def on_guild_member_update(self, d: Json) -> None:
        self.member(d["guild_id"], d)

    def on_guild_member_remove(self, d: Json) -> None:
        guild, user = d["guild_id"], self.user(d["user"])
        if (guild, user) in self.members or (guild, user) not in self.departed:
            self.count(guild, -1)
        if "member_count" in self.guilds.get(guild, {}):
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
            if self.counts and len(received) == self.guilds.get(guild, {}).get("member_count"):
                for home, user in list(self.members):
                    if home == guild and user not in received:
                        self.forget_member(guild, user)
        for each in d["members"]:
            self.member(guild, each, whole=True)
        if "presences" in d:
            for person in people - {each["user"]["id"] for each in d["presences"]}:
                self.hide(guild, person)
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

    # Parts of a guild, with keys of their own or inline.

    def on_guild_role_create(self, d: Json) -> None:
        self.roles[d["guild_id"], d["role"]["id"]] = d["role"]

    on_guild_role_update = on_guild_role_create

    def on_guild_role_delete(self, d: Json) -> None:
        self.roles.pop((d["guild_id"], d["role_id"]), None)

    def on_guild_emojis_update(self, d: Json) -> None:
        _forget(self.emojis, d["guild_id"])
        for each in d["emojis"]:
            self.creator(each, "user")
            self.emojis[d["guild_id"], each["id"]] = each

    def on_guild_stickers_update(self, d: Json) -> None:
        for each in d["stickers"]:
            self.creator(each, "user")
        if d["guild_id"] in self.guilds:
            self.inline(d["guild_id"], "stickers", d["stickers"])

    def inline(self, guild: str, field: str, listed: list[Json]) -> None:
        self.guilds[guild] = {**self.guilds[guild], field: listed}

    def enlist(self, field: str, by: str, given: Json) -> None:
        """Put an element into a list inside a guild, if there is one, at its old position or the end."""
        listed = self.guilds.get(given["guild_id"], {}).get(field)
        if listed is not None:
            places = {each[by]: each for each in listed} | {given[by]: given}
            self.inline(given["guild_id"], field, list(places.values()))

    def unlist(self, guild: str, field: str, by: str, identity: str) -> None:
        listed = self.guilds.get(guild, {}).get(field)
        if listed is not None:
            self.inline(guild, field, [each for each in listed if each[by] != identity])

    def on_guild_scheduled_event_create(self, d: Json) -> None:
        self.creator(d, "creator")
        self.enlist("guild_scheduled_events", "id", d)

    on_guild_scheduled_event_update = on_guild_scheduled_event_create

    def on_guild_scheduled_event_delete(self, d: Json) -> None:
        self.unlist(d["guild_id"], "guild_scheduled_events", "id", d["id"])

    def on_stage_instance_create(self, d: Json) -> None:
        self.enlist("stage_instances", "channel_id", d)

    on_stage_instance_update = on_stage_instance_create

    def on_stage_instance_delete(self, d: Json) -> None:
        self.unlist(d["guild_id"], "stage_instances", "channel_id", d["channel_id"])

    # Soundboard sounds, inside the guild.

    def sounds(self, guild: str, change: Callable[[dict[str, Json]], object]) -> None:
        known = self.guilds.get(guild, {})
        if "soundboard_sounds" in known:
            listed = {each["sound_id"]: each for each in known["soundboard_sounds"]}
            change(listed)
            self.inline(guild, "soundboard_sounds", list(listed.values()))

    def on_guild_soundboard_sound_create(self, d: Json) -> None:
        self.sounds(d["guild_id"], lambda listed: listed.update({d["sound_id"]: d}))

    on_guild_soundboard_sound_update = on_guild_soundboard_sound_create

    def on_guild_soundboard_sound_delete(self, d: Json) -> None:
        self.sounds(d["guild_id"], lambda listed: listed.pop(d["sound_id"], None))

    def on_guild_soundboard_sounds_update(self, d: Json) -> None:
        if d["guild_id"] in self.guilds:
            self.inline(d["guild_id"], "soundboard_sounds", d["soundboard_sounds"])

    on_soundboard_sounds = on_guild_soundboard_sounds_update

    # Messages and what else is said.

    def on_message_create(self, d: Json) -> None:
        self.message(d, merge=False)
        if d.get("guild_id"):
            self.patch_channel(d["guild_id"], d["channel_id"], {"last_message_id": d["id"]})

    def on_message_update(self, d: Json) -> None:
        if d.get("author") or (d["channel_id"], d["id"]) in self.messages:
            self.message(d, merge=True)

    def on_message_delete(self, d: Json) -> None:
        self.messages.pop((d["channel_id"], d["id"]), None)

    def on_message_delete_bulk(self, d: Json) -> None:
        for message in d["ids"]:
            self.messages.pop((d["channel_id"], message), None)

    # The people of an event whose entity has no key are stored.

    def on_integration_create(self, d: Json) -> None:
        self.creator(d, "user")
        self.creator(d.get("application") or {}, "bot")

    on_integration_update = on_integration_create

    def on_message_reaction_add(self, d: Json) -> None:
        if d.get("guild_id") and d.get("member"):
            self.member(d["guild_id"], d["member"], d["user_id"])

    def on_invite_create(self, d: Json) -> None:
        for field in ("inviter", "target_user"):
            self.creator(d, field)

    def on_interaction_create(self, d: Json) -> None:
        guild = d.get("guild_id")
        self.creator(d, "user")
        before = dict(self.members)
        if guild and d.get("member"):
            self.member(guild, d["member"])
        if d.get("message"):
            self.message({**({"guild_id": guild} if guild else {}), **d["message"]}, merge=True)
        resolved = (d.get("data") or {}).get("resolved") or {}
        for each in resolved.get("users", {}).values():
            self.user(each)
        for user, each in resolved.get("members", {}).items():
            if guild:
                self.member(guild, each, user)
        if guild not in self.known:  # the app is of a user, and the bot is not in the guild
            self.members = before


def _without_children(d: Json) -> Json:
    return {name: value for name, value in d.items() if name not in APART}


def _forget(held: dict[tuple[str, str], Json], guild: str) -> None:
    for ids in list(held):
        if ids[0] == guild:
            del held[ids]


def _per_first(name: str, held: dict[tuple[str, str], Any]) -> dict[str, dict[str, Any]]:
    """Return a hash for each first id, by the second."""
    keys: dict[str, dict[str, Any]] = {}
    for (first, second), body in held.items():
        keys.setdefault(f"{name}:{first}", {})[second] = body
    return keys


def _sets(name: str, pairs: Iterable[tuple[str, str]]) -> dict[str, set[str]]:
    """Return a set for each first id, of the second."""
    keys: dict[str, set[str]] = {}
    for first, second in pairs:
        keys.setdefault(f"{name}:{first}", set()).add(second)
    return keys
