"""The running bot between Meetup and Discord: linking pages, sync in both directions, expiry, tokens."""
