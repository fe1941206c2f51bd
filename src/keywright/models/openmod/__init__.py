"""Open Mod: what moderators of a subreddit do, disclosed in public extracts, and forgotten when it must."""

from keywright.models.openmod import mentions
from keywright.models.openmod.schema import openmod

__all__ = ["mentions", "openmod"]
