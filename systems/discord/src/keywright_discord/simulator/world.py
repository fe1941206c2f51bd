"""The content of the simulated Discord: one bot and its guilds, from a seed."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import islice
from typing import Any

from keywright.errors import UsageError
from keywright_discord.simulator.session import SimulatedShard
from keywright_discord.traffic import Traffic
from keywright_discord.traffic.messages import message
from keywright_discord.traffic.objects import STAGE, TEXT, VOICE, voice_state
from keywright_discord.traffic.world import Home

__all__ = ["SimulatedWorld"]

Json = dict[str, Any]

_FLAGS = 565248  # the application may use the three privileged intents
_ANSWERS = ("READY", "RESUMED", "GUILD_MEMBERS_CHUNK", "VOICE_SERVER_UPDATE")
# The generator makes these with invented fields only, which client libraries cannot parse.
_MADE_UP = (
    "GUILD_SOUNDBOARD_SOUNDS_UPDATE",
    "AUTO_MODERATION_ACTION_EXECUTION",
    "GUILD_AUDIT_LOG_ENTRY_CREATE",
)
_MIX = dict.fromkeys((*_ANSWERS[1:], *_MADE_UP), 0.0)


class SimulatedWorld:
    """The guilds of one bot. The same seed and calls give the same world; reads do not change it."""

    def __init__(self, seed: int, *, guilds: int, members: int) -> None:
        self._traffic = Traffic(seed)
        self._guilds = guilds
        self._members = members
        for _ in range(guilds):
            self._traffic.guild(members)

    @property
    def bot(self) -> Json:
        """The bot's own user, as /users/@me and READY have it."""
        own = {"email": None, "verified": True, "mfa_enabled": False, "flags": 0, "locale": "en-US"}
        return {**self._traffic.world.bot, **own}

    @property
    def application(self) -> Json:
        return {"id": self._traffic.world.application, "flags": _FLAGS}

    @property
    def guilds(self) -> list[str]:
        return self._traffic.guilds

    def guilds_of(self, shard: SimulatedShard) -> list[str]:
        return [guild for guild in self._traffic.guilds if shard.has(guild)]

    def new_guild(self, members: int) -> Json:
        """Return the `d` of the GUILD_CREATE of a guild that the bot joins now."""
        return self._traffic.guild(members)

    def leave(self, guild: str) -> None:
        self._traffic.world.homes.drop(guild)

    def guild_create(self, guild: str) -> Json | None:
        """Return the guild as it is now, or None if it is unavailable or the bot has left it."""
        home = self._traffic.world.homes.get(guild)
        if home is None or not home.available:
            return None
        # A read must not change later events.
        chance = home.source.random.getstate()
        created = home.created()
        home.source.random.setstate(chance)
        return created

    def message(self, content: str, *, guild: str) -> Json:
        """Return the `d` of a MESSAGE_CREATE by a member, in a text channel."""
        home = self._home(guild)
        made = message(home.source, home.setting(), home.someone())
        rarities = (
            "webhook_id",
            "poll",
            "sticker_items",
            "application_id",
            "interaction",
            "interaction_metadata",
        )
        plain = {name: value for name, value in made.items() if name not in rarities}
        author = home.someone()
        said: Json = {"author": author.user, "member": author.member, "mentions": [], "type": 0}
        where = next((each["id"] for each in home.channels.values() if each["type"] == TEXT), home.id)
        return plain | said | {"content": content, "channel_id": where}

    def members(self, guild: str) -> dict[str, Json]:
        """Return all members by user id, each with its user."""
        home = self._home(guild)
        return {person: home.whole_member(person) for person in home.members.ids}

    def presences(self, guild: str, people: list[str]) -> list[Json]:
        found = (self._home(guild).presences.get(person) for person in people)
        return [presence for presence in found if presence is not None]

    def new_id(self) -> str:
        """Return an id that nothing has yet."""
        return self._traffic.world.source.snowflake()

    def voice_channels(self, guild: str) -> list[str]:
        return [each["id"] for each in self._home(guild).channels.values() if each["type"] in (VOICE, STAGE)]

    def move_bot(self, guild: str, channel: str | None, *, muted: bool, deaf: bool) -> Json | None:
        """Return the `d` of the bot's VOICE_STATE_UPDATE, or None if it leaves without being in a channel."""
        home = self._home(guild)
        bot = str(self._traffic.bot)
        before = home.voice_states.get(bot)
        if channel is None and before is None:
            return None
        state = {**(before or voice_state(home.source, bot, "")), "channel_id": channel}
        state |= {"self_mute": muted, "self_deaf": deaf}
        if channel is None:
            home.voice_states.drop(bot)
        else:
            home.voice_states.put(bot, state)
        return {**state, "guild_id": guild, "member": home.whole_member(bot)}

    def events(
        self, count: int | None = None, *, mix: Mapping[str, float] | None = None
    ) -> Iterator[tuple[str, Any]]:
        """Yield everyday traffic of these guilds, `count` events or without end; `mix` overrides weights."""
        wanted = {**_MIX, **(mix or {})}
        return islice(self._endless(wanted), count)

    def _endless(self, mix: Mapping[str, float]) -> Iterator[tuple[str, Any]]:
        while True:
            for event, data in self._traffic.events(
                1000, guilds=self._guilds, members=self._members, mix=mix
            ):
                if event not in _ANSWERS:
                    yield event, self._completed(event, data)

    def _completed(self, event: str, data: Any) -> Any:
        """Return complete objects where Discord sends them today; the generator also makes partial ones."""
        if event in ("MESSAGE_CREATE", "MESSAGE_UPDATE") and "guild_id" in data:
            home = self._home(data["guild_id"])
            known = {} if "author" in data else home.messages.get(data["id"]) or {}
            return self._current_message(home, {**known, **data})
        if event == "PRESENCE_UPDATE" and len(data["user"]) > 1:
            return {**data, "user": self._traffic.world.users[data["user"]["id"]]}
        return data

    def _current_message(self, home: Home, message: Json) -> Json:
        """Return a message with its people, thread and answered message as they are now, without those that
        have gone."""
        current: Json = self._with_current_people(home, message)
        if answered := message.get("referenced_message"):
            found = home.messages.get(answered["id"])
            kept = {} if found is None else {name: found[name] for name in answered if name in found}
            current["referenced_message"] = self._with_current_people(home, kept) or None
        if "thread" in message:
            thread = home.threads.get(message["thread"]["id"])
            current = {name: value for name, value in current.items() if name != "thread"}
            current |= {} if thread is None else {"thread": thread}
        return current

    def _with_current_people(self, home: Home, value: Any) -> Any:
        if isinstance(value, list):
            return [self._with_current_people(home, each) for each in value]
        if not isinstance(value, dict):
            return value
        found = {name: self._with_current_people(home, each) for name, each in value.items()}
        is_user = "username" in found
        if is_user:
            found |= self._traffic.world.users.get(found["id"], {})
        if "member" in found:
            person = found if is_user else found.get("author") or found["user"]
            member = home.members.get(person["id"])
            found = {name: each for name, each in found.items() if name != "member"}
            found |= {} if member is None else {"member": member}
        return found

    def _home(self, guild: str) -> Home:
        home = self._traffic.world.homes.get(guild)
        if home is None:
            raise UsageError(f"the bot is in no guild {guild}. Choose one of `world.guilds`.")
        return home
