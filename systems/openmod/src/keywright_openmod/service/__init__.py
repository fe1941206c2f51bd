"""Open Mod as a service: reads a subreddit's moderation, publishes extracts, forgets what was deleted."""
