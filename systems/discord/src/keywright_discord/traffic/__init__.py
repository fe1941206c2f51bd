"""Discord gateway traffic from a seed: guilds of any size and long streams of events that fit them."""

from keywright_discord.traffic.mixes import EVERYDAY
from keywright_discord.traffic.traffic import Traffic

__all__ = ["EVERYDAY", "Traffic"]
