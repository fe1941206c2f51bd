"""The Discord Redis Cache (DRC), version 1, encoding json."""

from keywright.models.discord.drc import mentions
from keywright.models.discord.drc.schema import bind, drc

__all__ = ["bind", "drc", "mentions"]
