"""Reads of DRC: every entity by its ids, and every list that the key reference allows."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from keywright import Call, Key, Map, gather, gather_list
from keywright.operations import Steps, bound_context, procedure
from keywright_discord.document_reads import (
    Address,
    Entity,
    Hole,
    Id,
    Ids,
    Object,
    drop_dead,
    fill,
    living,
    snowflake,
)
from keywright_discord.drc import schema
from keywright_discord.raw_json import reference
from keywright_discord.reader import Reader
from keywright_discord.references import Holes, References

USERS, MESSAGES, THREADS = (schema.User,), (schema.Message,), (schema.Thread,)


class DrcAddresses:
    """The addresses in DRC of the documents that others refer to."""

    def user(self, user: str) -> Address:
        return USERS, user

    def member(self, guild: str, user: str) -> Address:
        return (schema.Member, guild), user

    def message(self, channel: str, message: str) -> Address:
        return MESSAGES, message

    def thread(self, thread: str) -> Address:
        return THREADS, thread

    def thread_member(self, thread: str, user: str) -> Address | None:
        return schema.ThreadMembers(thread), user


def entities(bot: str | None = None) -> dict[str, Entity]:
    """Return every entity of DRC by name, for reads by id."""
    references = References(DrcAddresses(), bot)
    return {**_strings(references), **_fields_of_hashes(references)}


def _strings(to: References) -> dict[str, Entity]:
    return {
        "application": _string(schema.Application, "application", holes=_whole(to.of_application)),
        "guild": _string(schema.Guild, "guild"),
        "interaction": _string(schema.Interaction, "interaction", holes=_whole(to.of_interaction)),
        "invite": _string(schema.Invite, "code", holes=_people(to, "inviter", "target_user")),
        "member": _string(
            schema.Member, "guild", "user", holes=lambda ids, d, holes: to.of_member(ids[1], d, holes)
        ),
        "message": _string(schema.Message, "message", holes=_whole(to.of_message)),
        "presence": _string(schema.Presence, "guild", "user", holes=_whole(to.of_presence)),
        "stage-instance": _string(schema.StageInstance, "channel"),
        "thread": _string(
            schema.Thread, "thread", holes=lambda ids, d, holes: to.of_thread(ids[0], d, holes)
        ),
        "user": _string(schema.User, "user"),
        "webhook": _string(schema.Webhook, "webhook", holes=_people(to, "user")),
        "welcome-screen": _string(schema.WelcomeScreen, "guild"),
        "widget": _string(schema.Widget, "guild"),
    }


def _fields_of_hashes(to: References) -> dict[str, Entity]:
    return {
        "automod-rule": _field(schema.AutomodRules, "guild", "rule"),
        "channel": _field(schema.Channels, "guild", "channel"),
        "command": _field(schema.Commands, "application", "command"),
        "emoji": _field(schema.Emojis, "guild", "emoji", holes=_people(to, "user")),
        "integration": _field(schema.Integrations, "guild", "integration", holes=_whole(to.of_integration)),
        "role": _field(schema.Roles, "guild", "role"),
        "scheduled-event": _field(schema.ScheduledEvents, "guild", "event", holes=_people(to, "creator")),
        "sticker": _field(schema.Stickers, "guild", "sticker", holes=_people(to, "user")),
        "template": _field(schema.Templates, "guild", "code", holes=_people(to, "creator")),
        # Their guild is a field of the thread, which `DrcReader` reads along with them.
        "thread-member": _field(schema.ThreadMembers, "thread", "user"),
        "voice-state": _field(
            schema.VoiceStates,
            "guild",
            "user",
            holes=lambda ids, d, holes: to.of_voice_state(ids[0], ids[1], d, holes),
        ),
    }


class DrcReader(Reader):
    """Reads of a DRC cache; a hydrated thread shows the membership of `bot`.

    No key lists messages, invites, webhooks, interactions or users (docs/resolutions.md#a30).
    """

    def __init__(self, *, hydrate: bool = True, bot: Id | None = None) -> None:
        own = None if bot is None else snowflake("bot", bot)
        super().__init__(entities(own), hydrate=hydrate)
        self._references = References(DrcAddresses(), own)

    def get(self, entity: str, *ids: Id) -> Call[Object | None]:
        """Return any entity by its name and the ids of its key, as in `get("message", message)`.

        A channel may be a thread. Raise UsageError if the entity is unknown or has other ids.
        """
        known = self._known.ids(entity, ids)
        if entity == "channel":
            return self.channel(*known)
        if entity == "thread":
            return self.thread(*known)
        return self.thread_member(*known) if entity == "thread-member" else self._one(entity, *known)

    @procedure
    def guilds(self) -> Steps[dict[str, Object]]:
        """Return the stored guilds. The others stay in the index, which lists where the bot is."""
        ids = sorted((yield schema.Guilds().members()), key=int)
        found = yield schema.Guild.get_many(ids)
        return {each: body for each, body in zip(ids, found, strict=True) if body is not None}

    def channels(self, guild: Id) -> Call[dict[str, Object]]:
        """Return the channels of a guild; threads are not among them."""
        return schema.Channels(snowflake("guild", guild)).all()

    def channel(self, guild: Id | None, channel: Id) -> Call[Object | None]:
        """Return a channel or a thread. `guild` is that of an event, None for a direct message."""
        thread = self._one("thread", channel)
        if guild is None:
            return thread
        either = gather(self._known.get("channel", guild, channel), thread)
        return either.map(lambda found: found[1] if found[0] is None else found[0])

    def threads(self, guild: Id) -> Call[dict[str, Object]]:
        """Return the threads of a guild that have a parent channel."""
        index = schema.ThreadIndex(snowflake("guild", guild))
        return self._all("thread", living(index, self._references.at.thread))

    def thread(self, thread: Id) -> Call[Object | None]:
        """Return a thread with the bot's own membership as `member`, and all known ones as `members`."""
        return (
            self._thread_with_members(snowflake("thread", thread))
            if self._hydrate
            else self._one("thread", thread)
        )

    @procedure
    def _thread_with_members(self, thread: str) -> Steps[Object | None]:
        found, members = yield gather(self._one("thread", thread), self.thread_members(thread))
        if found is not None:
            found["members"] = list(members.values())
        return found  # type: ignore[no-any-return]  # what a procedure sends back is not typed

    def thread_members(self, thread: Id) -> Call[dict[str, Object]]:
        """Return the known members of a thread by user id, each with its guild member and user."""
        identity = snowflake("thread", thread)
        listing = schema.ThreadMembers(identity).all()
        return self._members_of(identity, listing) if self._hydrate else listing

    def thread_member(self, thread: Id, user: Id) -> Call[Object | None]:
        """Return a member of a thread with its guild member and user."""
        identity, person = snowflake("thread", thread), snowflake("user", user)
        listing = schema.ThreadMembers(identity).get_many([person])
        found = self._members_of(identity, listing) if self._hydrate else listing
        return found.map(lambda members: members.get(person))

    @procedure
    def _members_of(self, thread: str, listing: Call[dict[str, Object]]) -> Steps[dict[str, Object]]:
        """Return hydrated thread members; their guild is a field of the thread, which is read along."""
        context = yield bound_context()
        found, members = yield gather(schema.Thread(thread).get(), listing)
        guild = None if found is None else reference(found.get("guild_id"))
        holes: list[Hole] = []
        for user, each in members.items():
            self._references.of_thread_member(guild, user, each, holes)
        yield from fill(holes, context)
        return members  # type: ignore[no-any-return]  # what a procedure sends back is not typed

    def roles(self, guild: Id) -> Call[dict[str, Object]]:
        """Return the roles of a guild."""
        return schema.Roles(snowflake("guild", guild)).all()

    def emojis(self, guild: Id) -> Call[dict[str, Object]]:
        """Return the custom emojis of a guild, each with the user who added it."""
        return self._fields("emoji", schema.Emojis, guild)

    def emoji(self, guild: Id, emoji: Id) -> Call[Object | None]:
        """Return a custom emoji with the user who added it."""
        return self._one("emoji", guild, emoji)

    def members(self, guild: Id) -> Call[dict[str, Object]]:
        """Return the known members of a guild by user id, each with its user.

        Expired ones are removed from the index.
        """
        identity = snowflake("guild", guild)
        listing = living(schema.Members(identity), lambda user: ((schema.Member, identity), user))
        return self._all("member", listing, identity)

    def presences(self, guild: Id) -> Call[dict[str, Object]]:
        """Return the presences of a guild by user id, each with its user."""
        identity = snowflake("guild", guild)
        listing = living(schema.PresenceIndex(identity), lambda user: ((schema.Presence, identity), user))
        return self._all("presence", listing, identity)

    def presence(self, guild: Id, user: Id) -> Call[Object | None]:
        """Return the presence of a user in a guild, with the user. None means offline."""
        return self._one("presence", guild, user)

    def voice_states(self, guild: Id) -> Call[dict[str, Object]]:
        """Return the voice states of a guild by user id, each with its member."""
        return self._fields("voice-state", schema.VoiceStates, guild)

    def messages(self, messages: Iterable[tuple[Id, Id]]) -> Call[list[Object | None]]:
        """Return many messages by channel and id, in their order, in at most three round trips.

        The key of a message has no channel, so that is not looked at.
        """
        return self._many("message", [(message,) for _, message in messages])

    def reactions(self, message: Id) -> Call[dict[str, set[str]]]:
        """Return the users of every emoji of a message, by the id of a custom emoji or by its characters.

        An emoji without users is removed from the index.
        """
        return self._reactions(snowflake("message", message))

    @procedure
    def _reactions(self, message: str) -> Steps[dict[str, set[str]]]:
        index = schema.Reactions(message)
        emojis = sorted((yield index.members()))
        users = yield gather_list(schema.ReactionUsers(message, each).members() for each in emojis)
        found = dict(zip(emojis, users, strict=True))
        gone = [each for each in emojis if not found[each]]
        yield from drop_dead(index, {each: ((schema.ReactionUsers, message), each) for each in gone})
        return {each: who for each, who in found.items() if who}

    def reaction_users(self, message: Id, emoji: str) -> Call[set[str]]:
        """Return the users seen to react with an emoji, given as a custom emoji's id or as characters."""
        return schema.ReactionUsers(snowflake("message", message), emoji).members()

    def super_reaction_users(self, message: Id, emoji: str) -> Call[set[str]]:
        """Return those of them whose reaction is a super reaction, or one of two."""
        return schema.SuperReactions(snowflake("message", message), emoji).all().map(set)

    def stickers(self, guild: Id) -> Call[dict[str, Object]]:
        """Return the custom stickers of a guild, each with the user who added it."""
        return self._fields("sticker", schema.Stickers, guild)

    def sticker(self, guild: Id, sticker: Id) -> Call[Object | None]:
        """Return a custom sticker with the user who added it."""
        return self._one("sticker", guild, sticker)

    def scheduled_events(self, guild: Id) -> Call[dict[str, Object]]:
        """Return the scheduled events of a guild, each with its creator."""
        return self._fields("scheduled-event", schema.ScheduledEvents, guild)

    def scheduled_event(self, guild: Id, event: Id) -> Call[Object | None]:
        """Return a scheduled event with its creator."""
        return self._one("scheduled-event", guild, event)

    def stage_instances(self, guild: Id) -> Call[dict[str, Object]]:
        """Return the stage instances of a guild by channel id."""
        index = schema.StageIndex(snowflake("guild", guild))
        return living(index, lambda channel: ((schema.StageInstance,), channel))

    def stage_instance(self, channel: Id) -> Call[Object | None]:
        """Return the stage instance of a channel."""
        return self._one("stage-instance", channel)

    def integrations(self, guild: Id) -> Call[dict[str, Object]]:
        """Return the integrations of a guild, each with the user who added it and the bot."""
        return self._fields("integration", schema.Integrations, guild)

    def integration(self, guild: Id, integration: Id) -> Call[Object | None]:
        """Return an integration with the user who added it, and the bot of its application."""
        return self._one("integration", guild, integration)

    def automod_rules(self, guild: Id) -> Call[dict[str, Object]]:
        """Return the auto moderation rules of a guild."""
        return schema.AutomodRules(snowflake("guild", guild)).all()

    def automod_rule(self, guild: Id, rule: Id) -> Call[Object | None]:
        """Return an auto moderation rule of a guild."""
        return self._one("automod-rule", guild, rule)

    def interaction(self, interaction: Id) -> Call[Object | None]:
        """Return an interaction with its user, member and message, and the people in its options.

        Its `token` is a secret.
        """
        return self._one("interaction", interaction)

    def invite(self, code: str) -> Call[Object | None]:
        """Return an invite with its inviter and target."""
        return self._one("invite", code)

    def application(self, application: Id) -> Call[Object | None]:
        """Return an application with its owner, bot and the users of its team."""
        return self._one("application", application)

    def commands(self, application: Id) -> Call[dict[str, Object]]:
        """Return the commands of an application, global ones and those of guilds."""
        return schema.Commands(snowflake("application", application)).all()

    def command(self, application: Id, command: Id) -> Call[Object | None]:
        """Return a command of an application."""
        return self._one("command", application, command)

    def templates(self, guild: Id) -> Call[dict[str, Object]]:
        """Return the templates of a guild by code, each with its creator."""
        return self._fields("template", schema.Templates, guild)

    def template(self, guild: Id, code: str) -> Call[Object | None]:
        """Return a template with its creator."""
        return self._one("template", guild, code)

    def webhook(self, webhook: Id) -> Call[Object | None]:
        """Return a webhook with its creator; its `token` is a secret."""
        return self._one("webhook", webhook)

    def welcome_screen(self, guild: Id) -> Call[Object | None]:
        """Return the welcome screen of a guild."""
        return self._one("welcome-screen", guild)

    def widget(self, guild: Id) -> Call[Object | None]:
        """Return the widget of a guild."""
        return self._one("widget", guild)

    def _guild_index(self) -> schema.Guilds:
        return schema.Guilds()

    def _fields(self, entity: str, key: Callable[[str], Map[str, Any]], guild: Id) -> Call[dict[str, Object]]:
        """Return the fields of a hash of a guild."""
        identity = snowflake("guild", guild)
        return self._all(entity, key(identity).all(), identity)


def _string(key: type[Key], *ids: str, holes: Any = None) -> Entity:
    return Entity(ids, lambda *given: ((key, *given[:-1]), given[-1]), holes)


def _field(key: Callable[[str], Map[str, Any]], *ids: str, holes: Any = None) -> Entity:
    return Entity(ids, lambda above, field: (key(above), field), holes)


def _whole(of: Callable[[Object, Holes], None]) -> Callable[[Ids, Object, Holes], None]:
    """Return what adds the holes of a document that do not depend on its ids."""
    return lambda _, found, holes: of(found, holes)


def _people(to: References, *names: str) -> Callable[[Ids, Object, Holes], None]:
    return lambda _, found, holes: to.of_people(found, holes, *names)
