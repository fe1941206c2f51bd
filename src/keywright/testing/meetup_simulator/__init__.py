"""Meetup on this machine: events and RSVPs behind its GraphQL API, and OAuth with a consent page."""

from keywright.testing.meetup_simulator.simulator import MeetupSimulator
from keywright.testing.meetup_simulator.world import MeetupWorld, SimulatedEvent

__all__ = ["MeetupSimulator", "MeetupWorld", "SimulatedEvent"]
