"""Discord gateway traffic from a seed: guilds of any size and long streams of events that fit them."""

from keywright.testing.discord_traffic.mixes import EVERYDAY
from keywright.testing.discord_traffic.traffic import Traffic

__all__ = ["EVERYDAY", "Traffic"]
