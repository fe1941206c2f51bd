"""How fast Keywright is next to redis-py and redis-om: `python -m benchmarks`, or `make bench`."""
