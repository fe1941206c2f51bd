"""Reactions in DRC: who reacted, and who with a super reaction."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from keywright import Call, Key, gather_list
from keywright_discord.changes import Change, Mode, React, Unreact
from keywright_discord.draft import Draft, among
from keywright_discord.drc import schema

# A user can react with one emoji both ways; the two are removed one by one.
SUPER, BOTH = b"1", b"2"


def users_read(changes: Sequence[Change]) -> Iterator[tuple[Key, Call[Any]]]:
    """Yield the users of reactions that the changes depend on.

    If some are removed, one more than that is read: so it is known whether any remain, however many there
    are. For each super reaction it is read whether its user reacted before.
    """
    removed: Counter[schema.ReactionUsers] = Counter()
    asked: dict[schema.ReactionUsers, list[str]] = {}
    for change in changes:
        match change:
            case Unreact(emoji=str(emoji), user=str()):
                removed[schema.ReactionUsers(change.message, emoji)] += 1
            case React(burst=True):
                asked.setdefault(schema.ReactionUsers(change.message, change.emoji), []).append(change.user)
    for key in {**removed, **asked}:
        reads: list[Call[Iterable[str]]] = []
        if key in removed:
            reads.append(key.sample(removed[key] + 1))
        if key in asked:
            reads.append(among(key, asked[key]))
        yield key, gather_list(reads).map(lambda found: set().union(*found))


def react(change: React, draft: Draft) -> None:
    users = schema.ReactionUsers(change.message, change.emoji)
    place = schema.SuperReactions(change.message, change.emoji), change.user
    known = draft.get(place)
    if change.burst and known is None:
        draft.put(place, BOTH if draft.contains(users, change.user) else SUPER, Mode.REPLACE)
    elif not change.burst and known == SUPER:
        draft.put(place, BOTH, Mode.REPLACE)
    draft.add(schema.Reactions(change.message), change.emoji)
    draft.add(users, change.user)


def unreact(change: Unreact, draft: Draft) -> None:
    """Remove reactions, and an emoji without any from the index (docs/resolutions.md#a32)."""
    if change.emoji is None:
        for emoji in list(draft.listed(schema.Reactions(change.message))):
            draft.erase(schema.ReactionUsers(change.message, emoji))
            draft.erase(schema.SuperReactions(change.message, emoji))
        draft.erase(schema.Reactions(change.message))
        return
    users = schema.ReactionUsers(change.message, change.emoji)
    supers = schema.SuperReactions(change.message, change.emoji)
    if change.user is not None:
        known = draft.get((supers, change.user))
        if known == BOTH:
            if change.burst:
                draft.drop((supers, change.user))
            else:
                draft.put((supers, change.user), SUPER, Mode.REPLACE)
            return
        if change.burst is (known is None):
            return  # the other reaction is stored, so this one was removed before
        draft.drop((supers, change.user))
        draft.remove(users, change.user)
        if draft.listed(users):
            return
    draft.erase(users)
    draft.erase(supers)
    draft.remove(schema.Reactions(change.message), change.emoji)
