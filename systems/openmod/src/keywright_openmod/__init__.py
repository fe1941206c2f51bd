"""Open Mod: a public moderation log for Reddit, with its content deletion policy."""

from keywright_openmod.schema import openmod

__all__ = ["openmod"]
