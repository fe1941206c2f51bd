"""Discord's REST API on this machine: a guild with channels, roles, members and messages, and its limits."""

from keywright_service.testing.discord_rest_simulator.limits import Limits
from keywright_service.testing.discord_rest_simulator.simulator import DiscordRestSimulator
from keywright_service.testing.discord_rest_simulator.world import Guild

__all__ = ["DiscordRestSimulator", "Guild", "Limits"]
