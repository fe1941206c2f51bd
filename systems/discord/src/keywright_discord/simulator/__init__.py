"""A local Discord: its gateway protocol and the few REST routes a client needs to log in.

Nothing of it reaches the network. Needs `keywright[gateway]`.
"""

from keywright_discord.simulator.codes import CloseCode, Op
from keywright_discord.simulator.intents import PRIVILEGED, Intents
from keywright_discord.simulator.settings import SimulatorSettings
from keywright_discord.simulator.simulator import DiscordSimulator

__all__ = ["PRIVILEGED", "CloseCode", "DiscordSimulator", "Intents", "Op", "SimulatorSettings"]
