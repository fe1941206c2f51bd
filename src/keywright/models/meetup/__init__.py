"""The bot between Meetup and Discord: events and their guests, tied to channels, roles and people."""

from keywright.models.meetup import links, mentions
from keywright.models.meetup.schema import meetup

__all__ = ["links", "meetup", "mentions"]
