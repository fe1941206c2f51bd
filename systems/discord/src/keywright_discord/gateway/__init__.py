"""The Spectacles gateway: Discord's events into the cache and to a broker, workers' packets to Discord."""
