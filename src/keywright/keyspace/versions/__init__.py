"""Older shapes, former codecs and former names, and the upgrade of each."""
