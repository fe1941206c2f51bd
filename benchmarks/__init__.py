"""Benchmarks of Keywright against redis-py and redis-om: `python -m benchmarks`, or `make bench`."""
