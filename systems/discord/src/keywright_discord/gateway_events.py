"""Every event of Discord's gateway: kept in the cache, handled by the connection, or ignored.

The events are those of Discord's documentation as of August 2026. `page` makes docs/events.md of them.
"""

from __future__ import annotations

from collections.abc import Iterator
from difflib import get_close_matches
from enum import Enum
from typing import NamedTuple

from keywright.errors import UsageError

__all__ = ["GATEWAY_EVENTS", "GatewayEvent", "Treatment", "event_of", "page"]


class Treatment(Enum):
    """Who acts on an event. Workers can receive every event that is dispatched, whichever it is."""

    KEPT = "kept"
    """The cache changes."""
    CONNECTION = "connection"
    """The gateway connection acts on it; it has no data for a cache."""
    IGNORED = "ignored"
    """Nothing is stored."""


class GatewayEvent(NamedTuple):
    """One event: its name, who acts on it, and what changes or why nothing does."""

    name: str
    treatment: Treatment
    about: str
    dispatched: bool = True
    """Whether it comes with op 0 and a name in `t`, so that it can be published."""


def event_of(name: str) -> GatewayEvent:
    """Return the event of this name, in any case. Raise UsageError for an unknown one, with the nearest."""
    known = GATEWAY_EVENTS.get(name.strip().upper())
    if known is None:
        near = get_close_matches(name.strip().upper(), GATEWAY_EVENTS, 1, cutoff=0.0)[0]
        raise UsageError(
            f"{name!r} is not an event of Discord's gateway. The nearest is {near}. "
            "See systems/discord/docs/events.md."
        )
    return known


def _events() -> Iterator[GatewayEvent]:
    for treatment, table in (
        (Treatment.KEPT, _KEPT),
        (Treatment.CONNECTION, _CONNECTION),
        (Treatment.IGNORED, _IGNORED),
    ):
        for line in table.strip().splitlines():
            name, _, about = line.partition(" ")
            yield GatewayEvent(name, treatment, about.strip(), name not in _OPCODES)


_KEPT = """
READY                              The bot's user and application; guilds that the bot has left are removed.
USER_UPDATE                        The bot's user.
GUILD_CREATE                       The guild with its parts, which replace the stored ones.
GUILD_UPDATE                       The guild; its roles, emojis and stickers replace the stored ones.
GUILD_DELETE                       The guild is removed with its parts, or marked unavailable.
CHANNEL_CREATE                     The channel, if it has a guild.
CHANNEL_UPDATE                     The channel, if it has a guild.
CHANNEL_DELETE                     The channel is removed with its threads, webhooks and invites.
CHANNEL_INFO                       `status` and `voice_start_time` of voice channels.
CHANNEL_PINS_UPDATE                `last_pin_timestamp` of a channel or thread.
VOICE_CHANNEL_STATUS_UPDATE        `status` of a voice channel.
VOICE_CHANNEL_START_TIME_UPDATE    `voice_start_time` of a voice channel.
THREAD_CREATE                      The thread, and the bot's membership of it.
THREAD_UPDATE                      The thread.
THREAD_DELETE                      The thread is removed with its members.
THREAD_LIST_SYNC                   The active threads of a guild or of some channels replace the stored ones.
THREAD_MEMBER_UPDATE               The bot's membership of a thread. DRC only.
THREAD_MEMBERS_UPDATE              Members of a thread (DRC only), guild members, the thread's `member_count`.
GUILD_BAN_ADD                      The user.
GUILD_BAN_REMOVE                   The user.
GUILD_EMOJIS_UPDATE                The emojis of a guild replace the stored ones.
GUILD_STICKERS_UPDATE              The stickers of a guild replace the stored ones.
GUILD_MEMBER_ADD                   The member with its user, and the guild's `member_count`.
GUILD_MEMBER_UPDATE                The member with its user.
GUILD_MEMBER_REMOVE                The member is removed with all it has in the guild; `member_count`.
GUILD_MEMBERS_CHUNK                Members, users, presences; a complete request replaces the members.
GUILD_ROLE_CREATE                  The role.
GUILD_ROLE_UPDATE                  The role.
GUILD_ROLE_DELETE                  The role is removed.
GUILD_SCHEDULED_EVENT_CREATE       The scheduled event.
GUILD_SCHEDULED_EVENT_UPDATE       The scheduled event.
GUILD_SCHEDULED_EVENT_DELETE       The scheduled event is removed.
GUILD_SOUNDBOARD_SOUND_CREATE      The sound, in the guild's `soundboard_sounds`.
GUILD_SOUNDBOARD_SOUND_UPDATE      The sound, in the guild's `soundboard_sounds`.
GUILD_SOUNDBOARD_SOUND_DELETE      The sound is removed from the guild's `soundboard_sounds`.
GUILD_SOUNDBOARD_SOUNDS_UPDATE     The guild's `soundboard_sounds`.
SOUNDBOARD_SOUNDS                  The guild's `soundboard_sounds`.
INTEGRATION_CREATE                 The integration. DRC only.
INTEGRATION_UPDATE                 The integration. DRC only.
INTEGRATION_DELETE                 The integration is removed. DRC only.
INTERACTION_CREATE                 The interaction (DRC only), its user, member and message.
INVITE_CREATE                      The invite (DRC only) and its users.
INVITE_DELETE                      The invite is removed. DRC only.
MESSAGE_CREATE                     The message, users, members, thread; the channel's `last_message_id`.
MESSAGE_UPDATE                     The message; a partial one changes a stored message only.
MESSAGE_DELETE                     The message is removed with its reactions.
MESSAGE_DELETE_BULK                The messages are removed with their reactions.
MESSAGE_REACTION_ADD               The user's reaction (DRC only) and the member.
MESSAGE_REACTION_REMOVE            The user's reaction is removed. DRC only.
MESSAGE_REACTION_REMOVE_ALL        All reactions of a message are removed. DRC only.
MESSAGE_REACTION_REMOVE_EMOJI      All reactions with one emoji are removed. DRC only.
PRESENCE_UPDATE                    The presence; one that is offline is removed.
STAGE_INSTANCE_CREATE              The stage instance.
STAGE_INSTANCE_UPDATE              The stage instance.
STAGE_INSTANCE_DELETE              The stage instance is removed.
TYPING_START                       The member who types.
VOICE_STATE_UPDATE                 The voice state, removed when the user leaves the channel, and the member.
AUTO_MODERATION_RULE_CREATE        The rule. DRC only.
AUTO_MODERATION_RULE_UPDATE        The rule. DRC only.
AUTO_MODERATION_RULE_DELETE        The rule is removed. DRC only.
"""

_CONNECTION = """
HELLO                              Opcode 10: the heartbeat interval.
RECONNECT                          Opcode 7: the connection is renewed and the session resumed.
INVALID_SESSION                    Opcode 9: the session is resumed or begun again.
RESUMED                            The missed events have been sent.
"""

_IGNORED = """
RATE_LIMITED                       About a request of the bot, not about Discord's state.
APPLICATION_COMMAND_PERMISSIONS_UPDATE  Neither layout has a key for permissions of commands.
AUTO_MODERATION_ACTION_EXECUTION   An occurrence; nothing of it lasts.
ENTITLEMENT_CREATE                 Neither layout has a key for entitlements.
ENTITLEMENT_UPDATE                 Neither layout has a key for entitlements.
ENTITLEMENT_DELETE                 Neither layout has a key for entitlements.
GUILD_AUDIT_LOG_ENTRY_CREATE       Neither layout has a key for the audit log.
GUILD_INTEGRATIONS_UPDATE          It names only the guild, not what changed.
GUILD_SCHEDULED_EVENT_USER_ADD     `user_count` is not counted: a repeated event looks like a second user.
GUILD_SCHEDULED_EVENT_USER_REMOVE  `user_count` is not counted: a repeated event looks like a second user.
SUBSCRIPTION_CREATE                Neither layout has a key for subscriptions.
SUBSCRIPTION_UPDATE                Neither layout has a key for subscriptions.
SUBSCRIPTION_DELETE                Neither layout has a key for subscriptions.
VOICE_CHANNEL_EFFECT_SEND          An occurrence; nothing of it lasts.
VOICE_SERVER_UPDATE                A credential for one voice connection of the bot.
WEBHOOKS_UPDATE                    It names only the channel, not the webhook.
MESSAGE_POLL_VOTE_ADD              Votes are not counted: a repeated event looks like a second vote.
MESSAGE_POLL_VOTE_REMOVE           Votes are not counted: a repeated event looks like a second vote.
"""

# Packets with an opcode of their own, which have no `t`.
_OPCODES = ("HELLO", "RECONNECT", "INVALID_SESSION")

GATEWAY_EVENTS: dict[str, GatewayEvent] = {event.name: event for event in _events()}


_TITLES = {
    Treatment.KEPT: "Kept in the cache",
    Treatment.CONNECTION: "Handled by the connection",
    Treatment.IGNORED: "Ignored by the cache",
}
_PAGE = """\
<!-- Made by `keywright_discord.gateway_events.page()`. Change the table there instead of this file. -->
# Gateway events

The {total} events of Discord's gateway, as documented in August 2026: the cache keeps {kept}, the
connection handles {connection}, and {ignored} change nothing. The gateway publishes any of them to workers,
except those with an opcode. Events that Discord has added since are published too, and change nothing.
"""


def page() -> str:
    """Return docs/events.md."""
    events = {each: [e for e in GATEWAY_EVENTS.values() if e.treatment is each] for each in Treatment}
    counts = {each.value: len(found) for each, found in events.items()}
    lines = [_PAGE.format(total=len(GATEWAY_EVENTS), **counts)]
    for treatment, found in events.items():
        lines += [f"## {_TITLES[treatment]}\n", "| event | about |", "|---|---|"]
        lines += [f"| {event.name} | {event.about} |" for event in found] + [""]
    return "\n".join(lines)
