"""Open Mod: what moderators of a subreddit do, disclosed in public extracts, and forgotten when it must."""

from keywright_openmod import mentions
from keywright_openmod.schema import openmod

__all__ = ["mentions", "openmod"]
