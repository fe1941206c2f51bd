"""A DRC cache written with `json` and redis-py: the same keys, one command per entity.

Each event has its own pipeline; documents to merge with are read by another one before. It supports the
events that the benchmark sends, and stores the same data as Keywright: the benchmark compares them.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

import redis

Json = dict[str, Any]

CHILDREN = (
    "roles",
    "emojis",
    "stickers",
    "guild_scheduled_events",
    "channels",
    "voice_states",
    "members",
    "presences",
    "threads",
    "stage_instances",
    "welcome_screen",
)
MESSAGE_SECONDS = 600


class Merge(NamedTuple):
    """Fields to merge into a stored document; `create` decides whether to create a missing one."""

    name: str
    field: str | None
    document: Json
    create: bool
    listed: tuple[str, str] | None = None


class PlainCache:
    """One method per event."""

    def __init__(self, client: redis.Redis, prefix: str) -> None:
        self.client: Any = client
        self.lead = f"{prefix}:v1json"
        self.private = f"{prefix}:v1json-private"
        self.handlers: dict[str, Callable[[Json], None]] = {
            "GUILD_CREATE": self.guild_create,
            "MESSAGE_CREATE": self.message_create,
            "MESSAGE_UPDATE": self.message_update,
            "MESSAGE_DELETE": self.message_delete,
            "MESSAGE_REACTION_ADD": self.reaction_add,
            "MESSAGE_REACTION_REMOVE": self.reaction_remove,
            "PRESENCE_UPDATE": self.presence_update,
            "TYPING_START": self.typing_start,
            "GUILD_MEMBER_ADD": self.member_add,
            "GUILD_MEMBER_UPDATE": self.member_update,
            "GUILD_MEMBER_REMOVE": self.member_remove,
        }

    def apply(self, event: str, data: bytes) -> None:
        self.handlers[event](json.loads(data))

    def guild_create(self, guild: Json) -> None:
        identity = guild["id"]
        stages = self.client.smembers(f"{self.private}:stage-instances:{identity}")
        known = self.client.smembers(f"{self.lead}:members:{identity}")
        pipe = self.client.pipeline(transaction=False)
        for person in known - {member["user"]["id"].encode() for member in guild["members"]}:
            self._forget_member(pipe, identity, person.decode())
        for channel in guild["channels"]:
            channel["guild_id"] = identity
        for state in guild["voice_states"]:
            state["guild_id"] = identity
        for child in guild["emojis"] + guild["stickers"]:
            self._keep_user(pipe, child, "user")
        for child in guild["guild_scheduled_events"]:
            self._keep_user(pipe, child, "creator")
        self._fill(pipe, f"{self.lead}:roles:{identity}", guild["roles"], "id")
        self._fill(pipe, f"{self.lead}:emojis:{identity}", guild["emojis"], "id")
        self._fill(pipe, f"{self.lead}:stickers:{identity}", guild["stickers"], "id")
        self._fill(pipe, f"{self.lead}:scheduled-events:{identity}", guild["guild_scheduled_events"], "id")
        self._fill(pipe, f"{self.lead}:channels:{identity}", guild["channels"], "id")
        self._fill(pipe, f"{self.lead}:voice-states:{identity}", guild["voice_states"], "user_id")
        for member in guild["members"]:
            user = member.pop("user")
            pipe.set(f"{self.lead}:users:{user['id']}", json.dumps(user))
            pipe.set(f"{self.lead}:members:{identity}:{user['id']}", json.dumps(member))
            pipe.sadd(f"{self.lead}:members:{identity}", user["id"])
        for presence in guild["presences"]:
            self._set_presence(pipe, presence, identity)
        for thread in guild["threads"]:
            thread.pop("member", None)
            pipe.set(f"{self.lead}:threads:{thread['id']}", json.dumps(thread))
            pipe.hset(f"{self.private}:threads:{identity}", thread["id"], thread["parent_id"])
        for channel_id in stages:
            pipe.delete(f"{self.lead}:stage-instances:{channel_id.decode()}")
        pipe.delete(f"{self.private}:stage-instances:{identity}")
        for stage in guild["stage_instances"]:
            pipe.set(f"{self.lead}:stage-instances:{stage['channel_id']}", json.dumps(stage))
            pipe.sadd(f"{self.private}:stage-instances:{identity}", stage["channel_id"])
        kept = {name: value for name, value in guild.items() if name not in CHILDREN}
        pipe.set(f"{self.lead}:guilds:{identity}", json.dumps(kept))
        pipe.sadd(f"{self.lead}:guilds", identity)
        pipe.execute()

    def message_create(self, message: Json) -> None:
        pipe = self.client.pipeline(transaction=False)
        merges = self._normalised(pipe, message)
        pipe.set(f"{self.lead}:messages:{message['id']}", json.dumps(message), ex=MESSAGE_SECONDS)
        if "guild_id" in message:
            last = {"last_message_id": message["id"]}
            channels = f"{self.lead}:channels:{message['guild_id']}"
            merges.append(Merge(channels, message["channel_id"], last, create=False))
            merges.append(Merge(f"{self.lead}:threads:{message['channel_id']}", None, last, create=False))
        self._merge(pipe, merges)
        pipe.execute()

    def message_update(self, message: Json) -> None:
        pipe = self.client.pipeline(transaction=False)
        whole = "author" in message
        merges = self._normalised(pipe, message)
        merges.append(Merge(f"{self.lead}:messages:{message['id']}", None, message, create=whole))
        self._merge(pipe, merges)
        pipe.execute()

    def message_delete(self, message: Json) -> None:
        emojis = self.client.smembers(f"{self.lead}:reactions:{message['id']}")
        pipe = self.client.pipeline(transaction=False)
        for emoji in emojis:
            pipe.delete(f"{self.lead}:reactions:{message['id']}:{emoji.decode()}")
        pipe.delete(f"{self.lead}:reactions:{message['id']}", f"{self.lead}:messages:{message['id']}")
        pipe.execute()

    def reaction_add(self, reaction: Json) -> None:
        pipe = self.client.pipeline(transaction=False)
        self._merge(pipe, self._member(pipe, reaction["member"], reaction["guild_id"], reaction["user_id"]))
        emoji = reaction["emoji"]["id"] or reaction["emoji"]["name"]
        for name, member in (
            (f"{self.lead}:reactions:{reaction['message_id']}", emoji),
            (f"{self.lead}:reactions:{reaction['message_id']}:{emoji}", reaction["user_id"]),
        ):
            pipe.sadd(name, member)
            pipe.expire(name, MESSAGE_SECONDS)
        pipe.execute()

    def reaction_remove(self, reaction: Json) -> None:
        emoji = reaction["emoji"]["id"] or reaction["emoji"]["name"]
        users = f"{self.lead}:reactions:{reaction['message_id']}:{emoji}"
        left = {person.decode() for person in self.client.srandmember(users, 2)}
        pipe = self.client.pipeline(transaction=False)
        pipe.srem(users, reaction["user_id"])
        if not left - {reaction["user_id"]}:
            pipe.srem(f"{self.lead}:reactions:{reaction['message_id']}", emoji)
        pipe.execute()

    def presence_update(self, presence: Json) -> None:
        pipe = self.client.pipeline(transaction=False)
        user = presence["user"]
        if len(user) > 1:
            self._merge(pipe, [Merge(f"{self.lead}:users:{user['id']}", None, user, create=False)])
        self._set_presence(pipe, presence, presence["guild_id"])
        pipe.execute()

    def typing_start(self, typing: Json) -> None:
        pipe = self.client.pipeline(transaction=False)
        self._merge(pipe, self._member(pipe, typing["member"], typing["guild_id"], typing["user_id"]))
        pipe.execute()

    def member_add(self, member: Json) -> None:
        guild, user = member["guild_id"], member.pop("user")
        pipe = self.client.pipeline(transaction=False)
        self._count(pipe, guild, user["id"], 1)
        pipe.set(f"{self.lead}:users:{user['id']}", json.dumps(user))
        pipe.set(f"{self.lead}:members:{guild}:{user['id']}", json.dumps(member))
        pipe.sadd(f"{self.lead}:members:{guild}", user["id"])
        pipe.execute()

    def member_update(self, member: Json) -> None:
        pipe = self.client.pipeline(transaction=False)
        self._merge(pipe, self._member(pipe, member, member["guild_id"], member["user"]["id"]))
        pipe.execute()

    def member_remove(self, gone: Json) -> None:
        guild, user = gone["guild_id"], gone["user"]
        pipe = self.client.pipeline(transaction=False)
        self._count(pipe, guild, user["id"], -1)
        pipe.set(f"{self.lead}:users:{user['id']}", json.dumps(user))
        self._forget_member(pipe, guild, user["id"])
        pipe.execute()

    def _normalised(self, pipe: Any, message: Json) -> list[Merge]:
        """Split a message, and the message it replies to. Return the documents to merge."""
        merges: list[Merge] = []
        guild = message.get("guild_id")
        if "author" in message:
            author = message["author"]
            message["author"] = author["id"]
            if "webhook_id" in message:
                message["webhook_author"] = author
            else:
                pipe.set(f"{self.lead}:users:{author['id']}", json.dumps(author))
            if guild is not None and "member" in message:
                merges += self._member(pipe, message.pop("member"), guild, author["id"])
        named = []
        for mention in message.get("mentions", ()):
            member = mention.pop("member", None)
            pipe.set(f"{self.lead}:users:{mention['id']}", json.dumps(mention))
            if guild is not None and member is not None:
                merges += self._member(pipe, member, guild, mention["id"])
            named.append(mention["id"])
        if "mentions" in message:
            message["mentions"] = named
        answered = message.get("referenced_message")
        if answered is not None:
            if message["message_reference"].get("guild_id") == guild is not None:
                answered.setdefault("guild_id", guild)
            merges += self._normalised(pipe, answered)
            merges.append(Merge(f"{self.lead}:messages:{answered['id']}", None, answered, create=True))
            message["referenced_message"] = answered["id"]
        for name in ("interaction", "interaction_metadata"):
            if name in message:
                merges += self._invoked(pipe, message[name], guild)
        if "thread" in message:
            thread = message["thread"]
            merges.append(Merge(f"{self.lead}:threads:{thread['id']}", None, thread, create=True))
            pipe.hset(f"{self.private}:threads:{thread['guild_id']}", thread["id"], thread["parent_id"])
            message["thread"] = thread["id"]
        return merges

    def _invoked(self, pipe: Any, interaction: Json, guild: str | None) -> list[Merge]:
        merges: list[Merge] = []
        person = interaction["user"]["id"]
        for name in ("user", "target_user"):
            self._keep_user(pipe, interaction, name)
        if guild is not None and "member" in interaction:
            merges += self._member(pipe, interaction.pop("member"), guild, person)
        if "triggering_interaction_metadata" in interaction:
            merges += self._invoked(pipe, interaction["triggering_interaction_metadata"], guild)
        return merges

    def _member(self, pipe: Any, member: Json, guild: str, person: str) -> list[Merge]:
        member.pop("permissions", None)
        self._keep_user(pipe, member, "user")
        member.pop("user", None)
        name = f"{self.lead}:members:{guild}:{person}"
        return [Merge(name, None, member, create=True, listed=(f"{self.lead}:members:{guild}", person))]

    def _merge(self, pipe: Any, merges: list[Merge]) -> None:
        """Read the stored documents in one pipeline, and add the merged ones to another."""
        reading = self.client.pipeline(transaction=False)
        for merge in merges:
            if merge.field is None:
                reading.get(merge.name)
            else:
                reading.hget(merge.name, merge.field)
        places = [(merge.name, merge.field) for merge in merges]
        stored = dict(zip(places, reading.execute(), strict=True))
        for merge, place in zip(merges, places, strict=True):
            if stored[place] is None and not merge.create:
                continue
            document = json.dumps(json.loads(stored[place] or b"{}") | merge.document)
            stored[place] = document
            if merge.field is not None:
                pipe.hset(merge.name, merge.field, document)
            elif merge.name.startswith(f"{self.lead}:messages:"):
                pipe.set(merge.name, document, ex=MESSAGE_SECONDS)
            else:
                pipe.set(merge.name, document)
            if merge.listed is not None:
                pipe.sadd(*merge.listed)

    def _count(self, pipe: Any, guild: str, person: str, by: int) -> None:
        names = [f"{self.lead}:guilds:{guild}", f"{self.lead}:members:{guild}:{person}"]
        document, member = self.client.mget(names)
        if document is not None and (member is None) == (by > 0):
            found = json.loads(document)
            found["member_count"] = max(0, found["member_count"] + by)
            pipe.set(names[0], json.dumps(found))

    def _forget_member(self, pipe: Any, guild: str, person: str) -> None:
        pipe.delete(f"{self.lead}:members:{guild}:{person}", f"{self.lead}:presence:{guild}:{person}")
        pipe.srem(f"{self.lead}:members:{guild}", person)
        pipe.srem(f"{self.private}:presences:{guild}", person)
        pipe.hdel(f"{self.lead}:voice-states:{guild}", person)

    def _fill(self, pipe: Any, name: str, children: Iterable[Json], by: str) -> None:
        pipe.delete(name)
        for child in children:
            pipe.hset(name, child[by], json.dumps(child))

    def _keep_user(self, pipe: Any, holder: Json, field: str) -> None:
        user = holder.get(field)
        if isinstance(user, dict):
            pipe.set(f"{self.lead}:users:{user['id']}", json.dumps(user))
            holder[field] = user["id"]

    def _set_presence(self, pipe: Any, presence: Json, guild: str) -> None:
        person = presence["user"]["id"]
        name = f"{self.lead}:presence:{guild}:{person}"
        if presence["status"] == "offline":
            pipe.delete(name)
            pipe.srem(f"{self.private}:presences:{guild}", person)
            return
        pipe.set(name, json.dumps({**presence, "user": person, "guild_id": guild}))
        pipe.sadd(f"{self.private}:presences:{guild}", person)


def hydrated(client: Any, prefix: str, messages: list[str]) -> list[Json]:
    """Return messages with their authors, members and mentions: one pipeline for each step."""
    lead = f"{prefix}:v1json"
    pipe = client.pipeline(transaction=False)
    for message in messages:
        pipe.get(f"{lead}:messages:{message}")
    found = [json.loads(body) for body in pipe.execute()]
    pipe = client.pipeline(transaction=False)
    for message in found:
        for person in (message["author"], *message["mentions"]):
            pipe.get(f"{lead}:users:{person}")
            pipe.get(f"{lead}:members:{message['guild_id']}:{person}")
    bodies = iter(pipe.execute())
    for message in found:
        people = []
        for person in (message["author"], *message["mentions"]):
            user, member = next(bodies), next(bodies)
            people.append(
                (json.loads(user or b'{"id":"%b"}' % person.encode()), member and json.loads(member))
            )
        message["author"], member = people[0]
        if member is not None:
            message["member"] = member
        message["mentions"] = [user | ({"member": about} if about else {}) for user, about in people[1:]]
    return found
