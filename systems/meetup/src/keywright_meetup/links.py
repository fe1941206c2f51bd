"""How the keys relate. Declared once; the other modules write relations through what is here."""

from __future__ import annotations

from keywright import many_to_one, one_to_one
from keywright_meetup.schema import (
    ChannelOfGuestRole,
    ChannelOfHostRole,
    ChannelOfSeries,
    DiscordChannels,
    DiscordHostRoles,
    DiscordRoles,
    DiscordUserOf,
    DiscordUsers,
    GuestRoleOf,
    HostRoleOf,
    MeetupEvents,
    MeetupUserOf,
    MeetupUsers,
    SeriesEvents,
    SeriesOfChannel,
    SeriesOfEvent,
)

__all__ = ["channel_of_series", "guest_role", "host_role", "people", "series_of_event"]

people = one_to_one(DiscordUserOf, inverse=MeetupUserOf, index=MeetupUsers, inverse_index=DiscordUsers)

series_of_event = many_to_one(SeriesOfEvent, inverse=SeriesEvents, index=MeetupEvents)

# No index of series here: a series is tracked whether or not it has a channel.
channel_of_series = one_to_one(ChannelOfSeries, inverse=SeriesOfChannel, inverse_index=DiscordChannels)

guest_role = one_to_one(GuestRoleOf, inverse=ChannelOfGuestRole, inverse_index=DiscordRoles)

host_role = one_to_one(HostRoleOf, inverse=ChannelOfHostRole, inverse_index=DiscordHostRoles)
