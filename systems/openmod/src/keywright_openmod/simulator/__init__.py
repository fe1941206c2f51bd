"""A simulated Reddit for asyncpraw and other clients of its API: moderation, deletions, outages."""

from keywright_openmod.simulator.faults import Faults
from keywright_openmod.simulator.simulator import RedditSimulator, SimulatorSettings
from keywright_openmod.simulator.world import LogEntry, SimulatedSubmission, SimulatedUser, World

__all__ = [
    "Faults",
    "LogEntry",
    "RedditSimulator",
    "SimulatedSubmission",
    "SimulatedUser",
    "SimulatorSettings",
    "World",
]
