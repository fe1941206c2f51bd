"""Reads of every entity of DRC by its ids, as it is stored: nested entities are ids."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from keywright import Call, Map
from keywright_discord.document_reads import Entities, Entity, Ids, Object
from keywright_discord.draft import Place
from keywright_discord.drc import schema
from keywright_discord.references import Holes, References


class DrcPlaces:
    """The places in DRC of the documents that others refer to."""

    def user(self, user: str) -> Place:
        return schema.User(user), None

    def member(self, guild: str, user: str) -> Place:
        return schema.Member(guild, user), None

    def message(self, channel: str, message: str) -> Place:
        return schema.Message(message), None

    def thread(self, thread: str) -> Place:
        return schema.Thread(thread), None

    def thread_member(self, thread: str, user: str) -> Place | None:
        return schema.ThreadMembers(thread), user


def entities(bot: str | None = None) -> dict[str, Entity]:
    """Return every entity of DRC by name, for reads by id."""
    references = References(DrcPlaces(), bot)
    return {**_strings(references), **_fields_of_hashes(references)}


def _strings(to: References) -> dict[str, Entity]:
    return {
        "application": _string(schema.Application, "application", holes=_whole(to.of_application)),
        "guild": _string(schema.Guild, "guild"),
        "interaction": _string(schema.Interaction, "interaction", holes=_whole(to.of_interaction)),
        "invite": _string(schema.Invite, "code", holes=_people(to, "inviter", "target_user")),
        "member": _string(schema.Member, "guild", "user", holes=lambda ids, d: to.of_member(ids[1], d)),
        "message": _string(schema.Message, "message", holes=_whole(to.of_message)),
        "presence": _string(schema.Presence, "guild", "user", holes=_whole(to.of_presence)),
        "stage-instance": _string(schema.StageInstance, "channel"),
        "thread": _string(schema.Thread, "thread", holes=lambda ids, d: to.of_thread(ids[0], d)),
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
        # Their guild is a field of the thread, which `DrcHydrated` reads along with them.
        "thread-member": _field(schema.ThreadMembers, "thread", "user"),
        "voice-state": _field(
            schema.VoiceStates, "guild", "user", holes=lambda ids, d: to.of_voice_state(ids[0], ids[1], d)
        ),
    }


class DrcReads:
    """Entities of DRC as they are stored. Each call returns None for one that is not stored."""

    def __init__(self) -> None:
        self._known = Entities(entities())

    def get(self, entity: str, *ids: str) -> Call[Object | None]:
        """Return any entity by its name, as in `get("member", guild, user)`. Raise UsageError if the entity
        is unknown or has other ids."""
        return self._known.get(entity, *ids)

    def application(self, application: str) -> Call[Object | None]:
        return self._known.get("application", application)

    def automod_rule(self, guild: str, rule: str) -> Call[Object | None]:
        return self._known.get("automod-rule", guild, rule)

    def channel(self, guild: str, channel: str) -> Call[Object | None]:
        return self._known.get("channel", guild, channel)

    def command(self, application: str, command: str) -> Call[Object | None]:
        return self._known.get("command", application, command)

    def emoji(self, guild: str, emoji: str) -> Call[Object | None]:
        return self._known.get("emoji", guild, emoji)

    def guild(self, guild: str) -> Call[Object | None]:
        return self._known.get("guild", guild)

    def integration(self, guild: str, integration: str) -> Call[Object | None]:
        return self._known.get("integration", guild, integration)

    def interaction(self, interaction: str) -> Call[Object | None]:
        return self._known.get("interaction", interaction)

    def invite(self, code: str) -> Call[Object | None]:
        return self._known.get("invite", code)

    def member(self, guild: str, user: str) -> Call[Object | None]:
        return self._known.get("member", guild, user)

    def message(self, message: str) -> Call[Object | None]:
        return self._known.get("message", message)

    def messages(self, messages: Iterable[str]) -> Call[list[Object | None]]:
        """Return many messages in the order of the ids, in one round trip."""
        return self._known.get_many("message", single(messages))

    def presence(self, guild: str, user: str) -> Call[Object | None]:
        return self._known.get("presence", guild, user)

    def role(self, guild: str, role: str) -> Call[Object | None]:
        return self._known.get("role", guild, role)

    def scheduled_event(self, guild: str, event: str) -> Call[Object | None]:
        return self._known.get("scheduled-event", guild, event)

    def stage_instance(self, channel: str) -> Call[Object | None]:
        return self._known.get("stage-instance", channel)

    def sticker(self, guild: str, sticker: str) -> Call[Object | None]:
        return self._known.get("sticker", guild, sticker)

    def template(self, guild: str, code: str) -> Call[Object | None]:
        return self._known.get("template", guild, code)

    def thread(self, thread: str) -> Call[Object | None]:
        return self._known.get("thread", thread)

    def thread_member(self, thread: str, user: str) -> Call[Object | None]:
        return self._known.get("thread-member", thread, user)

    def user(self, user: str) -> Call[Object | None]:
        return self._known.get("user", user)

    def users(self, users: Iterable[str]) -> Call[list[Object | None]]:
        """Return many users in the order of the ids, in one round trip."""
        return self._known.get_many("user", single(users))

    def voice_state(self, guild: str, user: str) -> Call[Object | None]:
        return self._known.get("voice-state", guild, user)

    def webhook(self, webhook: str) -> Call[Object | None]:
        """Return a webhook; its `token` is a secret."""
        return self._known.get("webhook", webhook)

    def welcome_screen(self, guild: str) -> Call[Object | None]:
        return self._known.get("welcome-screen", guild)

    def widget(self, guild: str) -> Call[Object | None]:
        return self._known.get("widget", guild)


def _string(key: Callable[..., Any], *ids: str, holes: Any = None) -> Entity:
    return Entity(ids, lambda *given: (key(*given), None), holes)


def _field(key: Callable[[str], Map[str, Any]], *ids: str, holes: Any = None) -> Entity:
    return Entity(ids, lambda above, field: (key(above), field), holes)


def _whole(of: Callable[[Object], Holes]) -> Callable[[Ids, Object], Holes]:
    """Return the holes of a document that do not depend on its ids."""
    return lambda _, found: of(found)


def _people(to: References, *names: str) -> Callable[[Ids, Object], Holes]:
    return lambda _, found: to.of_people(found, *names)


def single(ids: Iterable[str]) -> list[Ids]:
    """Return single ids as tuples."""
    return [(each,) for each in ids]
