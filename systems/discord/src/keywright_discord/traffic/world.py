"""The simulated world that events are about, so that they mostly refer to entities that exist."""

from __future__ import annotations

from collections.abc import Iterable

from keywright_discord.traffic import objects
from keywright_discord.traffic.messages import Setting, Speaker
from keywright_discord.traffic.objects import FORUM, MEDIA, NEWS, STAGE, TEXT, VOICE
from keywright_discord.traffic.source import Bag, Json, Source

_REMEMBERED = 200  # messages of a guild that later events may refer to
_LARGE = 250


class World:
    """The bot, all users it has met, and the guilds it is in."""

    def __init__(self, source: Source) -> None:
        self.source = source
        self.users: dict[str, Json] = {}
        self.homes: Bag[Home] = Bag()
        self.bot = self.new_user(bot=True)
        self.application = self.bot["id"]

    def new_user(self, *, bot: bool = False) -> Json:
        identity = self.source.snowflake()
        self.users[identity] = objects.user(self.source, identity, bot=bot)
        return self.users[identity]


class Home:
    """The state of one guild on Discord's side."""

    def __init__(self, world: World, members: int) -> None:
        self.world = world
        self.source = source = world.source
        self.id = source.snowflake()
        self.available = True
        self.roles: Bag[Json] = Bag()
        self.channels: Bag[Json] = Bag()
        self.threads: Bag[Json] = Bag()
        self.emojis: Bag[Json] = Bag()
        self.stickers: Bag[Json] = Bag()
        self.sounds: Bag[Json] = Bag()
        self.members: Bag[Json] = Bag()
        self.voice_states: Bag[Json] = Bag()
        self.presences: Bag[Json] = Bag()
        self.stages: Bag[Json] = Bag()
        self.events: Bag[Json] = Bag()
        self.rules: Bag[Json] = Bag()
        self.integrations: Bag[Json] = Bag()
        self.invites: Bag[str] = Bag()
        self.messages: Bag[Json] = Bag()
        self.reactions: Bag[Json] = Bag()
        self._furnish(members)

    def _furnish(self, members: int) -> None:
        source = self.source
        small = min(members, 60)
        self.roles.put(self.id, objects.role(source, self.id, 0) | {"name": "@everyone"})
        for place in range(1, 3 + small // 4):
            self.add_role(place)
        self.join(self.world.bot)
        while len(self.members) < members:
            self.join(self.world.new_user())
        kinds = [TEXT, VOICE, STAGE, FORUM, NEWS]
        kinds += [source.pick(objects.CHANNEL_TYPES) for _ in range(small // 2)]
        for kind in kinds:
            self.add_channel(kind)
        for _ in range(2 + small // 6):
            self.add_thread()
            self.add_emoji()
        for _ in range(1 + small // 20):
            self.add_sticker()
            self.add_event()
        for person in source.some(self.members.ids, members // 10 + 1):
            self.add_voice_state(person)
        for person in source.some(self.members.ids, members // 5 + 1):
            self.presences.put(person, objects.presence(source, person))
        self.props = self._properties()

    def _properties(self) -> Json:
        source = self.source
        return {
            "id": self.id,
            "name": source.words(2),
            "icon": source.maybe_hash(0.8),
            "splash": None,
            "discovery_splash": None,
            "banner": None,
            "description": source.words(8),
            "owner_id": self.members.any_id(source),
            "region": "deprecated",
            "afk_channel_id": None,
            "afk_timeout": 300,
            "verification_level": 1,
            "default_message_notifications": 0,
            "explicit_content_filter": 2,
            "features": source.some(objects.FEATURES, 4),
            "mfa_level": 0,
            "system_channel_id": None,
            "system_channel_flags": 0,
            "rules_channel_id": None,
            "public_updates_channel_id": None,
            "preferred_locale": "en-US",
            "premium_tier": 1,
            "premium_subscription_count": source.number(20),
            "nsfw_level": 0,
            "nsfw": False,
            "premium_progress_bar_enabled": False,
            "vanity_url_code": None,
            "max_members": 500000,
            "max_video_channel_users": 25,
            "incidents_data": None,
            "hub_type": None,
            "application_id": None,
            "home_header": None,
            "latest_onboarding_question_id": None,
        }

    def join(self, person: Json) -> Json:
        return self.members.put(person["id"], objects.member(self.source, self.roles.ids))

    def leave(self, person: str) -> None:
        for bag in (self.members, self.voice_states, self.presences):
            bag.drop(person)

    def add_role(self, place: int) -> Json:
        identity = self.source.snowflake()
        return self.roles.put(identity, objects.role(self.source, identity, place))

    def add_channel(self, kind: int | None = None) -> Json:
        identity = self.source.snowflake()
        kind = self.source.pick(objects.CHANNEL_TYPES) if kind is None else kind
        given = objects.overwrites(self.source, self.roles.ids, self.members.ids)
        return self.channels.put(identity, objects.channel(self.source, identity, kind, given))

    def drop_channel(self, identity: str) -> None:
        self.channels.drop(identity)
        self.stages.drop(identity)
        for thread in [each for each in self.threads.values() if each["parent_id"] == identity]:
            self.threads.drop(thread["id"])

    def add_thread(self) -> Json | None:
        parent = self.one_channel(TEXT, NEWS, FORUM, MEDIA)
        if parent is None:
            return None
        identity = self.source.snowflake()
        owner = self.members.any_id(self.source) or self.world.bot["id"]
        return self.threads.put(identity, objects.thread(self.source, identity, self.id, parent, owner))

    def add_emoji(self) -> Json:
        identity = self.source.snowflake()
        creator = self.someone().user if self.source.chance(0.5) else None
        return self.emojis.put(identity, objects.emoji(self.source, identity, creator))

    def add_sticker(self) -> Json:
        identity = self.source.snowflake()
        creator = self.someone().user if self.source.chance(0.5) else None
        return self.stickers.put(identity, objects.sticker(self.source, identity, self.id, creator))

    def add_sound(self) -> Json:
        identity = self.source.snowflake()
        return self.sounds.put(identity, objects.sound(self.source, identity, self.id, self.someone().user))

    def add_event(self) -> Json:
        identity = self.source.snowflake()
        made = objects.scheduled_event(self.source, identity, self.id, self.someone().user)
        return self.events.put(identity, made)

    def add_voice_state(self, person: str) -> Json | None:
        where = self.one_channel(VOICE, STAGE)
        if where is None:
            return None
        return self.voice_states.put(person, objects.voice_state(self.source, person, where["id"]))

    def remember(self, message: Json) -> Json:
        if len(self.messages) >= _REMEMBERED:
            self.messages.drop(self.messages.ids[self.source.number(_REMEMBERED)])
        return self.messages.put(message["id"], message)

    def one_channel(self, *kinds: int) -> Json | None:
        """Return a channel of one of these types, or None after a few tries, so that the cost is bounded."""
        for _ in range(8):
            found = self.channels.any(self.source)
            if found is not None and found["type"] in kinds:
                return found
        return None

    def someone(self) -> Speaker:
        person = self.members.any_id(self.source) or self.world.bot["id"]
        return Speaker(self.world.users[person], self.members.get(person))

    def setting(self) -> Setting:
        """Return a text channel or a thread, and people in it."""
        where = self.threads.any_id(self.source) if self.source.chance(0.3) else None
        if where is None:
            found = self.one_channel(TEXT, NEWS)
            where = found["id"] if found is not None else self.id
        present = [self.someone() for _ in range(3)]
        return Setting(where, self.id, present, self.world.application)

    def whole_member(self, person: str) -> Json:
        return {"user": self.world.users[person], **(self.members.get(person) or {})}

    def created(self) -> Json:
        """Return the `d` of a GUILD_CREATE; children lack `guild_id` where Discord omits it."""
        source = self.source
        return {
            **self.props,
            "joined_at": source.past(),
            "large": len(self.members) >= _LARGE,
            "unavailable": False,
            "geo_restricted": False,
            "member_count": len(self.members),
            "lazy": True,
            "version": source.number(1 << 40),
            "guild_hashes": {"version": 1, "roles": {"omitted": False, "hash": "+q2LtT4HV9o"}},
            "application_command_counts": {"1": 3},
            "embedded_activities": [],
            "soundboard_sounds": list(self.sounds.values()),
            "roles": list(self.roles.values()),
            "emojis": list(self.emojis.values()),
            "stickers": list(self.stickers.values()),
            "channels": list(self.channels.values()),
            "threads": [self._joined(each) for each in self.threads.values()],
            "members": [self.whole_member(person) for person in self.members.ids],
            "voice_states": list(self.voice_states.values()),
            "presences": list(self.presences.values()),
            "stage_instances": list(self.stages.values()),
            "guild_scheduled_events": list(self.events.values()),
        }

    def _joined(self, thread: Json) -> Json:
        if int(thread["id"]) % 3:
            return thread
        return {**thread, "member": objects.thread_member(self.source)}

    def updated(self) -> Json:
        """Return the `d` of a GUILD_UPDATE, without the fields that only GUILD_CREATE has."""
        children: dict[str, Iterable[Json]] = {
            "roles": self.roles.values(),
            "emojis": self.emojis.values(),
            "stickers": self.stickers.values(),
        }
        return {**self.props, **{name: list(each) for name, each in children.items()}}
