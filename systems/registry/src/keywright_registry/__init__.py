"""The container registry: repository cache, counters, leases, and the metadata database behind them."""
