"""The bot between Meetup and Discord: events and their guests, tied to channels, roles and people."""

from keywright_meetup import invariants
from keywright_meetup.schema import meetup

__all__ = ["invariants", "meetup"]
