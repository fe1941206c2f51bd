"""The place of every entity's document in DRC."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from keywright import Map, Value
from keywright_discord.changes import Ids, Kind
from keywright_discord.draft import Place
from keywright_discord.drc import schema

STRINGS: dict[Kind, Callable[[Ids], Value[Any]]] = {
    Kind.APPLICATION: lambda ids: schema.Application(ids[0]),
    Kind.INTERACTION: lambda ids: schema.Interaction(ids[0]),
    Kind.MESSAGE: lambda ids: schema.Message(ids[1]),
    Kind.THREAD: lambda ids: schema.Thread(ids[1]),
    Kind.GUILD: lambda ids: schema.Guild(ids[0]),
    Kind.WIDGET: lambda ids: schema.Widget(ids[0]),
    Kind.MEMBER: lambda ids: schema.Member(ids[0], ids[1]),
    Kind.WELCOME_SCREEN: lambda ids: schema.WelcomeScreen(ids[0]),
    Kind.INVITE: lambda ids: schema.Invite(ids[0]),
    Kind.STAGE_INSTANCE: lambda ids: schema.StageInstance(ids[1]),
    Kind.USER: lambda ids: schema.User(ids[0]),
    Kind.PRESENCE: lambda ids: schema.Presence(ids[0], ids[1]),
    Kind.WEBHOOK: lambda ids: schema.Webhook(ids[0]),
}
MAPS: dict[Kind, Callable[[str], Map[str, Any]]] = {
    Kind.COMMAND: schema.Commands,
    Kind.AUTOMOD_RULE: schema.AutomodRules,
    Kind.CHANNEL: schema.Channels,
    Kind.EMOJI: schema.Emojis,
    Kind.INTEGRATION: schema.Integrations,
    Kind.SCHEDULED_EVENT: schema.ScheduledEvents,
    Kind.ROLE: schema.Roles,
    Kind.TEMPLATE: schema.Templates,
    Kind.STICKER: schema.Stickers,
    Kind.VOICE_STATE: schema.VoiceStates,
}


def place_of(kind: Kind, ids: Ids) -> Place:
    """Return the place of an entity's document."""
    string = STRINGS.get(kind)
    if string is not None:
        return string(ids), None
    if kind is Kind.THREAD_MEMBER:
        return schema.ThreadMembers(ids[1]), ids[2]
    return MAPS[kind](ids[0]), ids[1]
