"""Every key of the bot between Meetup and Discord, in the order and the words of its document.

Relations and references stand below the keys they join; additions to the document come last. Ids of users,
channels and roles are exact to 64 bits; times are RFC 3339. Keys have no hash tags, so on a cluster the two
sides of a link live in different slots: keys that belong together are written by one script on a single
server, and through the journal on a cluster. Tokens are secrets, and sealed where the database is opened with
a keyring.
"""

from __future__ import annotations

import secrets
from datetime import datetime, timedelta
from typing import Annotated, Literal

import msgspec

from keywright import (
    U64,
    Id,
    Json,
    Keyspace,
    Lease,
    Map,
    Record,
    SealedIfBound,
    Secret,
    Set,
    SnowflakeId,
    Value,
    expires_in,
    index,
    invariant,
    many_to_one,
    one_to_one,
    refers,
)

meetup = Keyspace("meetup", "State of a bot that ties Meetup events to Discord channels.")

EventId = Id
SeriesId = Id
MeetupId = U64
DiscordId = SnowflakeId
ChannelId = SnowflakeId
RoleId = SnowflakeId
Token = Annotated[Secret[str], SealedIfBound]
SeriesType = Literal["campaign", "adventure"]

LINKING_EXPIRY = expires_in(timedelta(minutes=10))
CSRF_EXPIRY = expires_in(timedelta(hours=1))


def new_id() -> str:
    """Return a random id as the bot makes them for series, linking and cookies: 16 bytes in 22 characters.

    It does not begin with a dash, which a command would take for an option.
    """
    while (made := secrets.token_urlsafe(16)).startswith("-"):
        pass
    return made


class EventDetails(msgspec.Struct, frozen=True):
    """An event as its page on Meetup shows it."""

    name: str
    """Title of the event as it appears on Meetup."""
    time: datetime
    """Date and time of the event in RFC 3339 format."""
    link: str
    """URL of the Meetup event page."""
    urlname: str
    """'urlname' of the Meetup group that the event belongs to."""


class Tokens(msgspec.Struct, frozen=True):
    """The OAuth2 tokens with which the bot acts for a Meetup user."""

    access_token: Token
    """OAuth2 access token for this Meetup user."""
    refresh_token: Token
    """OAuth2 refresh token for this Meetup user."""


# Meetup Events


class MeetupEvents(Set[EventId], key="meetup_events", space=meetup):
    """All currently tracked Meetup events."""


class EventGuests(Set[MeetupId], key="meetup_event:<event>:meetup_users", space=meetup):
    """The guests of an event: users who RSVP'd 'yes'."""

    event: EventId


class EventHosts(Set[MeetupId], key="meetup_event:<event>:meetup_hosts", space=meetup):
    """The hosts of an event."""

    event: EventId


class SeriesOfEvent(Value[SeriesId], key="meetup_event:<event>:event_series", space=meetup):
    """The series an event belongs to. See SeriesEvents for the inverse."""

    event: EventId


class MeetupEvent(Record[EventDetails], key="meetup_event:<event>", space=meetup):
    """A tracked event: title, date and time, page and group as they are on Meetup."""

    event: EventId


event_parts = [
    refers(EventGuests, MeetupEvent, lambda key, _: [key.event], name="event"),
    refers(EventHosts, MeetupEvent, lambda key, _: [key.event], name="event"),
    refers(SeriesOfEvent, MeetupEvent, lambda key, _: [key.event], name="event"),
    refers(MeetupEvent, SeriesOfEvent, lambda key, _: [key.event], name="series"),
]


# Meetup Users


class MeetupUsers(Set[MeetupId], key="meetup_users", space=meetup):
    """The linked Meetup users."""


class DiscordUserOfMeetupUser(Value[DiscordId], key="meetup_user:<user>:discord_user", space=meetup):
    """The Discord user that a Meetup user is linked to. See MeetupUserOfDiscordUser for the inverse."""

    user: MeetupId


class UserTokens(Record[Tokens], key="meetup_user:<user>:oauth2_tokens", space=meetup):
    """The OAuth2 tokens of a linked Meetup user, where they were granted."""

    user: MeetupId


token_owner = refers(UserTokens, DiscordUserOfMeetupUser, lambda key, _: [key.user], name="linked user")
refers(EventGuests, DiscordUserOfMeetupUser, lambda _, users: users, name="linked guests", required=False)
refers(EventHosts, DiscordUserOfMeetupUser, lambda _, users: users, name="linked hosts", required=False)


# Discord Users


class DiscordUsers(Set[DiscordId], key="discord_users", space=meetup):
    """The linked Discord users."""


class MeetupUserOfDiscordUser(Value[MeetupId], key="discord_user:<user>:meetup_user", space=meetup):
    """The Meetup user that a Discord user is linked to. See DiscordUserOfMeetupUser for the inverse."""

    user: DiscordId


people = one_to_one(
    DiscordUserOfMeetupUser, inverse=MeetupUserOfDiscordUser, index=MeetupUsers, inverse_index=DiscordUsers
)


# Event Series


class EventSeries(Set[SeriesId], key="event_series", space=meetup):
    """All currently tracked event series."""


class SeriesEvents(Set[EventId], key="event_series:<series>:meetup_events", space=meetup):
    """The tracked events of a series. See SeriesOfEvent for the inverse."""

    series: SeriesId


series_of_event = many_to_one(SeriesOfEvent, inverse=SeriesEvents, index=MeetupEvents)


class ChannelOfSeries(Value[ChannelId], key="event_series:<series>:discord_channel", space=meetup):
    """The bot controlled channel of a series. See SeriesOfChannel for the inverse."""

    series: SeriesId


class TypeOfSeries(Value[SeriesType], key="event_series:<series>:type", space=meetup):
    """'campaign' or 'adventure'. Every series has one, so a series exists if its type does."""

    series: SeriesId


tracked_series = index(TypeOfSeries, by=EventSeries)

series_parts = [
    refers(SeriesEvents, TypeOfSeries, lambda key, _: [key.series], name="type of the series"),
    refers(ChannelOfSeries, TypeOfSeries, lambda key, _: [key.series], name="type of the series"),
]


# Discord Channels


class DiscordChannels(Set[ChannelId], key="discord_channels", space=meetup):
    """All bot controlled Discord channels."""


class SeriesOfChannel(Value[SeriesId], key="discord_channel:<channel>:event_series", space=meetup):
    """The series a channel belongs to. See ChannelOfSeries for the inverse."""

    channel: ChannelId


# No indexes here: a series is tracked, and a channel known, whether or not it has the other.
channel_of_series = one_to_one(ChannelOfSeries, inverse=SeriesOfChannel)


class GuestRoleOfChannel(Value[RoleId], key="discord_channel:<channel>:discord_role", space=meetup):
    """The guest role of a channel. See ChannelOfGuestRole for the inverse."""

    channel: ChannelId


class HostRoleOfChannel(Value[RoleId], key="discord_channel:<channel>:discord_host_role", space=meetup):
    """The host role of a channel. See ChannelOfHostRole for the inverse."""

    channel: ChannelId


class RemovedHosts(Set[DiscordId], key="discord_channel:<channel>:removed_hosts", space=meetup):
    """Hosts who were manually removed: they may still be in the channel, but are not made hosts any more."""

    channel: ChannelId


class RemovedUsers(Set[DiscordId], key="discord_channel:<channel>:removed_users", space=meetup):
    """Users who were manually removed: they are not added back to the channel any more."""

    channel: ChannelId


class OrphanedChannels(Set[ChannelId], key="orphaned_discord_channels", space=meetup):
    """Channels that the bot made and that Discord has yet to confirm as deleted."""


channel_parts = [
    refers(part, DiscordChannels, lambda key, _: [((), key.channel)], name="known channel")
    for part in (SeriesOfChannel, RemovedHosts, RemovedUsers)
]
role_owners = [
    refers(GuestRoleOfChannel, DiscordChannels, lambda key, _: [((), key.channel)], name="known channel"),
    refers(HostRoleOfChannel, DiscordChannels, lambda key, _: [((), key.channel)], name="known channel"),
    refers(HostRoleOfChannel, GuestRoleOfChannel, lambda key, _: [key.channel], name="guest role"),
]


# Discord Roles


class DiscordRoles(Set[RoleId], key="discord_roles", space=meetup):
    """All bot controlled guest roles."""


class DiscordHostRoles(Set[RoleId], key="discord_host_roles", space=meetup):
    """All bot controlled host roles."""


class ChannelOfGuestRole(Value[ChannelId], key="discord_role:<role>:discord_channel", space=meetup):
    """The channel a guest role belongs to. See GuestRoleOfChannel for the inverse."""

    role: RoleId


class ChannelOfHostRole(Value[ChannelId], key="discord_host_role:<role>:discord_channel", space=meetup):
    """The channel a host role belongs to. See HostRoleOfChannel for the inverse."""

    role: RoleId


class OrphanedRoles(Set[RoleId], key="orphaned_discord_roles", space=meetup):
    """Roles of both kinds that the bot made and that Discord has yet to confirm as deleted."""


guest_role = one_to_one(GuestRoleOfChannel, inverse=ChannelOfGuestRole, inverse_index=DiscordRoles)

host_role = one_to_one(HostRoleOfChannel, inverse=ChannelOfHostRole, inverse_index=DiscordHostRoles)


# Linking


class MeetupLinking(
    Value[DiscordId], key="meetup_linking:<linking>:discord_user", space=meetup, expiry=LINKING_EXPIRY
):
    """The Discord user for whom a short-lived linking id was made; it works once."""

    linking: Id


class Csrf(Value[Token], key="csrf:<cookie>", space=meetup, expiry=CSRF_EXPIRY):
    """The CSRF token of a transient user during the linking, whose linking id names it; it works once."""

    cookie: Id


# OAuth2 Organizer Token


class AccessToken(Value[Token], key="meetup_access_token", space=meetup):
    """OAuth2 access token of someone who is organizer in all our Meetup groups."""


class RefreshToken(Value[Token], key="meetup_refresh_token", space=meetup):
    """OAuth2 refresh token of the same organizer."""


class RefreshTime(Value[datetime], key="meetup_access_token_refresh_time", space=meetup):
    """When the next refresh of the organizer's tokens is due."""


# Additions: three times that the bot writes, and that its document leaves out.


class ExpirationTime(Value[datetime], key="discord_channel:<channel>:expiration_time", space=meetup):
    """When a channel has served its series: from then on its hosts are asked to end it."""

    channel: ChannelId


class LastReminderTime(
    Value[datetime], key="discord_channel:<channel>:last_expiration_reminder_time", space=meetup
):
    """When the hosts of an expired channel were last asked to end it."""

    channel: ChannelId


class DeletionTime(Value[datetime], key="discord_channel:<channel>:deletion_time", space=meetup):
    """When a channel that was ended is to be deleted."""

    channel: ChannelId


channel_times = [
    refers(time, DiscordChannels, lambda key, _: [((), key.channel)], name="known channel")
    for time in (ExpirationTime, LastReminderTime, DeletionTime)
]


# Additions: ours.

RoleKind = Literal["guest_role", "host_role"]
Made = Literal["channel", "guest_role", "host_role"]


class GivenRole(msgspec.Struct, frozen=True):
    """A role that a member of the guild had. Somebody who lacks it later was removed by hand."""

    role: str
    """The id of the role: one that replaces it is given to everybody again."""
    joined_at: str | None
    """When the member joined the guild, as Discord writes it: who leaves and comes back was not removed."""


class AddedUsers(
    Map[DiscordId, Annotated[GivenRole, Json]], key="discord_channel:<channel>:added_users", space=meetup
):
    """The guests of a channel whom a sync found with the guest role, or gave it to."""

    channel: ChannelId


class AddedHosts(
    Map[DiscordId, Annotated[GivenRole, Json]], key="discord_channel:<channel>:added_hosts", space=meetup
):
    """The hosts of a channel whom a sync found with the host role, or gave it to."""

    channel: ChannelId


added_parts = [
    refers(part, DiscordChannels, lambda key, _: [((), key.channel)], name="known channel")
    for part in (AddedUsers, AddedHosts)
]


class Target(msgspec.Struct, frozen=True, array_like=True):
    """An object that the bot makes on Discord: a channel for a series, a role for a channel."""

    made: Made
    """The sort of object."""
    owner: str
    """The series of a channel, the channel of a role."""


class Intent(msgspec.Struct, frozen=True):
    """Who makes it, and since when."""

    mark: str
    """Part of the topic or the name of the object, so that it can be found on Discord."""
    since: datetime
    """When it was begun."""


class Provisioning(
    Map[Annotated[Target, Json], Annotated[Intent, Json]], key="discord_provisioning", space=meetup
):
    """Objects that are being made on Discord: recorded before Discord is asked, dropped when it is done."""


class MisnamedOrphans(Set[RoleId], key="orphaned_roles", space=meetup):
    """Orphaned roles under the name that earlier versions of the bot used. `keywright repair` moves them."""


class OrganizerLease(Lease, key="lock:meetup_refresh_token", space=meetup):
    """Held by the process that refreshes the organizer's tokens."""


class UserTokensLease(Lease, key="lock:meetup_user:<user>:oauth2_tokens", space=meetup):
    """Held by the process that refreshes the tokens of one user."""

    user: MeetupId


class TaskLease(Lease, key="lock:meetup_task:<task>", space=meetup):
    """Held by the one bot that runs a task, such as a sync."""

    task: Id


# Invariants: they hold between any two operations, whichever process writes or dies. `invariants.py` has the
# checks.

linked_people = invariant(
    "linked-people",
    "Links of people are mutual and unique; both people are in their index; only linked users have tokens.",
    settles=[people, token_owner],
)
whole_events = invariant(
    "whole-events",
    "An event has whole details, a series that knows it and a place in the index, or no key at all.",
    settles=[series_of_event, *event_parts],
)
series_types = invariant(
    "series-types",
    "A tracked series has a type, and is a campaign once it has several events.",
    [SeriesEvents],
    settles=[tracked_series, *series_parts],
)
known_channels = invariant(
    "known-channels",
    "A series and its channel are mutual and unique, and the channel is known. "
    "Removed and added people and times are those of known channels.",
    settles=[channel_of_series, *channel_parts, *channel_times, *added_parts],
)
roles_in_use = invariant(
    "roles-in-use",
    "A known channel and each of its roles are mutual and unique; a host role comes with a guest role; no "
    "role is of both kinds. Every other role that a key names is an orphan.",
    [HostRoleOfChannel],
    settles=[guest_role, host_role, *role_owners],
)
unused_orphans = invariant(
    "unused-orphans",
    "Orphans are not in use, and those of earlier versions are kept with the others.",
    [OrphanedChannels, OrphanedRoles, MisnamedOrphans],
)
unplaced_channels = invariant(
    "unplaced-channels", "A known channel belongs to a series.", [DiscordChannels], note=True
)
