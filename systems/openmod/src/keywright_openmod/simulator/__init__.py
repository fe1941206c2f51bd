"""A simulated Reddit for asyncpraw and other clients of its API: moderation, deletions, outages."""

from keywright_openmod.simulator.faults import RedditFaults
from keywright_openmod.simulator.simulator import RedditSimulator, RedditSimulatorSettings
from keywright_openmod.simulator.world import LogEntry, RedditWorld, SimulatedSubmission, SimulatedUser
from keywright_openmod.simulator.world_file import read_world, write_world

__all__ = [
    "LogEntry",
    "RedditFaults",
    "RedditSimulator",
    "RedditSimulatorSettings",
    "RedditWorld",
    "SimulatedSubmission",
    "SimulatedUser",
    "read_world",
    "write_world",
]
