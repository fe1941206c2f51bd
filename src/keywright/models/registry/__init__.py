"""The container registry: repository cache, counters, leases, and the database behind them."""
