"""Meetup on this machine: its GraphQL API, OAuth with a consent page; and a Discord with users of a bot."""

from keywright_meetup.simulator.discord import SimulatedDiscord
from keywright_meetup.simulator.simulator import MeetupSimulator
from keywright_meetup.simulator.world import MeetupWorld, SimulatedEvent

__all__ = ["MeetupSimulator", "MeetupWorld", "SimulatedDiscord", "SimulatedEvent"]
