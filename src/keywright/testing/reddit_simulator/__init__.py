"""A Reddit on this machine, for asyncpraw and other clients of its API: moderation, deletions, outages."""

from keywright.testing.reddit_simulator.faults import Faults
from keywright.testing.reddit_simulator.simulator import RedditSimulator, SimulatorSettings
from keywright.testing.reddit_simulator.world import LogEntry, Submission, User, World

__all__ = ["Faults", "LogEntry", "RedditSimulator", "SimulatorSettings", "Submission", "User", "World"]
