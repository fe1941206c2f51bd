"""The Spectacles cache: Discord's objects as they came, mostly in hashes by id."""

from keywright_discord.spectacles.schema import bind, spectacles

__all__ = ["bind", "spectacles"]
