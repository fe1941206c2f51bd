"""Older shapes, former codecs and former names, and how each is brought up to date."""
