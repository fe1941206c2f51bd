"""Links between Meetup users and Discord users: one to one, decided by the database, ended without a trace.

A linking id and a CSRF token expire from the moment they are made, and work once. Tokens of a user exist only
while the user is linked: they are stored with the link and deleted with it.
"""

from __future__ import annotations

import hmac
from collections.abc import Iterable

from keywright import Call, Secret, gather
from keywright.errors import TakenError
from keywright.operations import Steps, Writes, commit, optimistic, procedure
from keywright_meetup.schema import (
    Csrf,
    DiscordId,
    DiscordUserOfMeetupUser,
    DiscordUsers,
    MeetupId,
    MeetupLinking,
    MeetupUserOfDiscordUser,
    MeetupUsers,
    Tokens,
    UserTokens,
    new_id,
    people,
)

__all__ = [
    "begin_linking",
    "discord_users_of",
    "keep_csrf",
    "link",
    "look_up_linking",
    "redeem_csrf",
    "store_tokens",
    "take_linking",
    "unlink",
    "unlink_discord",
]

_of_discord = people.reversed()


@procedure
def begin_linking(discord_user: DiscordId) -> Steps[str]:
    """Return a new linking id for a Discord user; it expires. Call it again after a linking that failed.

    Raise TakenError if the user is linked already.
    """
    partner = yield _of_discord.of(discord_user)
    if partner is not None:
        raise TakenError(people.name, discord_user, partner, "another Meetup user")
    linking = new_id()
    yield MeetupLinking(linking).set(discord_user)
    return linking


def look_up_linking(linking: str) -> Call[DiscordId | None]:
    """Return the Discord user of a linking id, or None once it expired. Neither renews nor uses it."""
    return MeetupLinking(linking).get()


def take_linking(linking: str) -> Call[DiscordId | None]:
    """Return the Discord user of a linking id and delete the id. Of two that take it, one gets None."""
    return MeetupLinking(linking).take()


def keep_csrf(linking: str, token: Secret[str]) -> Call[None]:
    """Store the CSRF token of a linking id, in place of an older one: each linking id has one at most."""
    return Csrf(linking).set(token).map(lambda _: None)


def redeem_csrf(linking: str, token: Secret[str]) -> Call[bool]:
    """Return whether this is the CSRF token of a linking id. It is deleted either way."""
    return Csrf(linking).take().map(lambda kept: kept is not None and _same(kept, token))


def link(meetup_user: MeetupId, discord_user: DiscordId, tokens: Tokens | None = None) -> Call[bool]:
    """Link the two, with the tokens in the same step. Return False if they were linked already.

    Raise TakenError, and change nothing, if either is linked to another: of two calls that race for the same
    user, one raises it. The tokens of a link that exists are replaced if new ones are passed.
    """
    granted: Writes = [] if tokens is None else [UserTokens(meetup_user).write(tokens)]

    def attempt() -> Steps[bool | None]:
        found = yield gather(
            DiscordUserOfMeetupUser(meetup_user).get(), MeetupUserOfDiscordUser(discord_user).get()
        )
        held_discord, held_meetup = found
        if held_discord not in (None, discord_user):
            raise TakenError(people.name, meetup_user, held_discord, discord_user)
        if held_meetup not in (None, meetup_user):
            raise TakenError(people.name, discord_user, held_meetup, meetup_user)
        linked = held_discord is not None and held_meetup is not None
        if linked and not granted:
            return False
        checks = [people.holds(meetup_user, held_discord), _of_discord.holds(discord_user, held_meetup)]
        writes = granted if linked else [*people.joined(meetup_user, discord_user), *granted]
        return not linked if (yield commit("link", checks, writes)) else None

    return optimistic("link", attempt)


def store_tokens(meetup_user: MeetupId, tokens: Tokens) -> Call[bool]:
    """Replace the tokens of a linked user. Return False, and store nothing, if the user is not linked."""

    def attempt() -> Steps[bool | None]:
        partner = yield DiscordUserOfMeetupUser(meetup_user).get()
        if partner is None:
            return False
        checks = [people.holds(meetup_user, partner)]
        return True if (yield commit("tokens", checks, [UserTokens(meetup_user).write(tokens)])) else None

    return optimistic("store tokens", attempt)


def unlink(meetup_user: MeetupId) -> Call[bool]:
    """End a Meetup user's link, with both index entries and the tokens. Return whether there was one.

    A Discord user who was linked to another meanwhile keeps that link.
    """

    def attempt() -> Steps[bool | None]:
        partner = yield DiscordUserOfMeetupUser(meetup_user).get()
        if partner is None:
            return False
        return (yield from _end(meetup_user, partner))

    return optimistic("unlink", attempt)


def unlink_discord(discord_user: DiscordId) -> Call[bool]:
    """End a Discord user's link, as `unlink` does."""

    def attempt() -> Steps[bool | None]:
        partner = yield MeetupUserOfDiscordUser(discord_user).get()
        if partner is None:
            return False
        return (yield from _end(partner, discord_user))

    return optimistic("unlink", attempt)


def _end(meetup_user: MeetupId, discord_user: DiscordId) -> Steps[bool | None]:
    """End the link between the two; half a link that names a third user stays. None if it ended meanwhile."""
    held = yield gather(
        DiscordUserOfMeetupUser(meetup_user).get(), MeetupUserOfDiscordUser(discord_user).get()
    )
    ours_to_discord, ours_to_meetup = held
    checks = [people.holds(meetup_user, ours_to_discord), _of_discord.holds(discord_user, ours_to_meetup)]
    writes: Writes = []
    if ours_to_discord == discord_user:
        forget = [DiscordUserOfMeetupUser(meetup_user).delete(), UserTokens(meetup_user).delete()]
        writes += [*forget, MeetupUsers().remove(meetup_user)]
    if ours_to_meetup == meetup_user:
        writes += [MeetupUserOfDiscordUser(discord_user).delete(), DiscordUsers().remove(discord_user)]
    return True if writes and (yield commit("unlink", checks, writes)) else None


def discord_users_of(users: Iterable[MeetupId]) -> Call[dict[MeetupId, DiscordId]]:
    """Return the Discord users of those Meetup users who are linked, in one round trip."""
    asked = list(users)
    return DiscordUserOfMeetupUser.get_many(asked).map(
        lambda found: {
            user: partner for user, partner in zip(asked, found, strict=True) if partner is not None
        }
    )


def _same(one: Secret[str], other: Secret[str]) -> bool:
    return hmac.compare_digest(one.reveal().encode(), other.reveal().encode())
