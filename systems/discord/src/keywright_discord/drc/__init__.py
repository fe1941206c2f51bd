"""The Discord Redis Cache (DRC), version 1, encoding json."""

from keywright_discord.drc.schema import bind, drc

__all__ = ["bind", "drc"]
