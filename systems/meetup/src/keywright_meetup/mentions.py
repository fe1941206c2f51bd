"""What the keys of the bot rest on beside their relations: an event its details, a series its type.

Required where the invariants of `auditing` say so, so that the audit of any keyspace finds them broken.
"""

from __future__ import annotations

from keywright import refers
from keywright_meetup import schema

refers(schema.EventGuests, schema.MeetupEvent, lambda key, _: [key.event], name="event")
refers(schema.EventHosts, schema.MeetupEvent, lambda key, _: [key.event], name="event")
refers(schema.SeriesOfEvent, schema.MeetupEvent, lambda key, _: [key.event], name="event")
refers(schema.MeetupEvent, schema.SeriesOfEvent, lambda key, _: [key.event], name="series")
refers(schema.SeriesEvents, schema.TypeOfSeries, lambda key, _: [key.series], name="type of the series")
refers(schema.ChannelOfSeries, schema.TypeOfSeries, lambda key, _: [key.series], name="type of the series")
refers(schema.UserTokens, schema.DiscordUserOf, lambda key, _: [key.user], name="linked user")
refers(schema.EventGuests, schema.DiscordUserOf, lambda _, users: users, name="linked guests", required=False)
refers(schema.EventHosts, schema.DiscordUserOf, lambda _, users: users, name="linked hosts", required=False)
