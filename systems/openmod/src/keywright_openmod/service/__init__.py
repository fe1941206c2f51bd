"""The service of Open Mod: polls a subreddit, publishes extracts, erases deleted data."""
