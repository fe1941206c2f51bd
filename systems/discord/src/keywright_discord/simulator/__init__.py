"""A local Discord: its gateway protocol, and the REST routes that the programs of this repository need.

Nothing of it reaches the network. Opcodes, close codes and intents are those of `keywright_discord.gateway`.
"""

from keywright_discord.gateway.close_codes import CloseCode
from keywright_discord.gateway.intents import PRIVILEGED, Intents
from keywright_discord.gateway.opcodes import Op
from keywright_discord.simulator.settings import SimulatorSettings
from keywright_discord.simulator.simulator import DiscordSimulator

__all__ = ["PRIVILEGED", "CloseCode", "DiscordSimulator", "Intents", "Op", "SimulatorSettings"]
