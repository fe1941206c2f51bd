"""The same small tasks with Keywright and with other clients, for docs/compare.

    python -m benchmarks.peers [NAME…]

Each module `with_…` solves the tasks as the documentation of its client shows, on a private server; `tasks`
checks the results, also while the connection is cut after each command. The tests run Keywright and redis-py;
`make peers` runs all, in the environment of the benchmarks.
"""
