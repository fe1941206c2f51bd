"""Reactions in DRC: who reacted, and who with a super reaction."""

from __future__ import annotations

from keywright.operations import Steps
from keywright_discord.changes import Mode, React, Unreact
from keywright_discord.draft import Draft
from keywright_discord.drc import schema

# A user can react with one emoji both ways; the two are removed one by one.
SUPER, BOTH = b"1", b"2"


def react(change: React, draft: Draft) -> Steps[None]:
    users = schema.ReactionUsers(change.message, change.emoji)
    place = schema.SuperReactions(change.message, change.emoji), change.user
    known = draft.get(place)
    if change.burst and known is None:
        reacted = yield users.has(change.user)
        draft.put(place, BOTH if reacted else SUPER, Mode.REPLACE)
    elif not change.burst and known == SUPER:
        draft.put(place, BOTH, Mode.REPLACE)
    draft.add(schema.Reactions(change.message), change.emoji)
    draft.add(users, change.user)


def unreact(change: Unreact, draft: Draft) -> Steps[None]:
    """Remove reactions, and an emoji without any from the index (docs/resolutions.md#a32)."""
    if change.emoji is None:
        emojis = yield schema.Reactions(change.message).members()
        for emoji in emojis:
            draft.erase(schema.ReactionUsers(change.message, emoji))
            draft.erase(schema.SuperReactions(change.message, emoji))
        draft.erase(schema.Reactions(change.message))
        return
    users = schema.ReactionUsers(change.message, change.emoji)
    supers = schema.SuperReactions(change.message, change.emoji)
    if change.user is not None:
        known = yield supers.get(change.user)
        if known == int(BOTH):
            if change.burst:
                draft.drop((supers, change.user))
            else:
                draft.put((supers, change.user), SUPER, Mode.REPLACE)
            return
        if change.burst is (known is None):
            return  # the other reaction is stored, so this one was removed before
        draft.drop((supers, change.user))
        remaining = yield users.sample(2)
        draft.remove(users, change.user)
        if set(remaining) - {change.user}:
            return
    draft.erase(users)
    draft.erase(supers)
    draft.remove(schema.Reactions(change.message), change.emoji)
