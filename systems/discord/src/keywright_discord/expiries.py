"""The expiries of a cache as its user chooses them: for each kind of entity, or none.

The documents leave them open, except a few defaults. In DRC an entity that is a string expires for itself;
one that is a field of a hash, such as a channel, expires with the hash of its guild, after the last write to
it. In the Spectacles layout only messages can expire, since the others share one hash.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta
from typing import TypeAlias

from keywright import Binding, Expiry, Key, expires_in
from keywright.errors import UsageError
from keywright_discord.changes import Kind
from keywright_discord.drc import schema as drc
from keywright_discord.layouts import LAYOUTS
from keywright_discord.spectacles import schema as spectacles

__all__ = ["NO_EXPIRY", "Expiries", "cache_bindings", "check_expiries", "of_layout"]

Expiries: TypeAlias = Mapping[Kind, timedelta | None]
"""By kind; None for no expiry. Kinds that are not named keep their default."""

NO_EXPIRY = "none"

_DRC: Mapping[Kind, tuple[type[Key], ...]] = {
    Kind.APPLICATION: (drc.Application,),
    Kind.COMMAND: (drc.Commands,),
    Kind.INTERACTION: (drc.Interaction,),
    Kind.AUTOMOD_RULE: (drc.AutomodRules,),
    Kind.CHANNEL: (drc.Channels,),
    Kind.MESSAGE: (drc.Message,),
    Kind.THREAD: (drc.Thread,),
    Kind.THREAD_MEMBER: (drc.ThreadMembers,),
    Kind.EMOJI: (drc.Emojis,),
    Kind.GUILD: (drc.Guild,),
    Kind.WIDGET: (drc.Widget,),
    Kind.MEMBER: (drc.Member,),
    Kind.INTEGRATION: (drc.Integrations,),
    Kind.WELCOME_SCREEN: (drc.WelcomeScreen,),
    Kind.SCHEDULED_EVENT: (drc.ScheduledEvents,),
    Kind.ROLE: (drc.Roles,),
    Kind.TEMPLATE: (drc.Templates,),
    Kind.INVITE: (drc.Invite,),
    Kind.STAGE_INSTANCE: (drc.StageInstance,),
    Kind.STICKER: (drc.Stickers,),
    Kind.USER: (drc.User,),
    Kind.VOICE_STATE: (drc.VoiceStates,),
    Kind.PRESENCE: (drc.Presence,),
    Kind.WEBHOOK: (drc.Webhook,),
    Kind.REACTION: (drc.Reactions, drc.ReactionUsers),
}


def of_layout(layout: str) -> frozenset[Kind]:
    """Return the kinds whose expiry a layout lets choose."""
    return frozenset({Kind.MESSAGE}) if layout == "spectacles" else frozenset(_DRC)


def check_expiries(layout: str, expiries: Expiries) -> None:
    """Raise UsageError for a kind that cannot expire in this layout."""
    for kind in expiries:
        if kind not in of_layout(layout):
            known = ", ".join(sorted(each.value for each in of_layout(layout)))
            raise UsageError(
                f"{kind.value} cannot have an expiry in the layout {layout}. Choose expiries of: {known}."
            )


def cache_bindings(layout: str, prefix: str | None, expiries: Expiries) -> tuple[Binding, ...]:
    """Return the bindings of a cache with these expiries. Raise UsageError as `check_expiries` does."""
    check_expiries(layout, expiries)
    if not expiries:
        return LAYOUTS[layout].bind(prefix)
    if layout == "spectacles":
        return spectacles.bind(prefix, message_ttl=expiries[Kind.MESSAGE])
    chosen = dict(expiries)
    if Kind.MESSAGE in chosen:  # reactions go with their message unless they are named themselves
        chosen.setdefault(Kind.REACTION, chosen[Kind.MESSAGE])
    expiry: dict[type[Key], Expiry | None] = {
        key: None if length is None else expires_in(length)
        for kind, length in chosen.items()
        for key in _DRC[kind]
    }
    return drc.bind(prefix, expiry=expiry)
