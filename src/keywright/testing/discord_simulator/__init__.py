"""A local Discord: its gateway protocol and the few REST routes a client needs to log in.

Nothing of it reaches the network. Needs `keywright[gateway]`.
"""

from keywright.testing.discord_simulator.codes import CloseCode, Op
from keywright.testing.discord_simulator.intents import PRIVILEGED, Intents
from keywright.testing.discord_simulator.settings import SimulatorSettings
from keywright.testing.discord_simulator.simulator import DiscordSimulator

__all__ = ["PRIVILEGED", "CloseCode", "DiscordSimulator", "Intents", "Op", "SimulatorSettings"]
