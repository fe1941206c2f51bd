"""Meetup on this machine: events and RSVPs behind its GraphQL API, and OAuth with a consent page."""

from keywright_meetup.simulator.simulator import MeetupSimulator
from keywright_meetup.simulator.world import MeetupWorld, SimulatedEvent

__all__ = ["MeetupSimulator", "MeetupWorld", "SimulatedEvent"]
