"""Recover what dead writers left: `python -m soak.loads.recovery URL`, as a service does periodically."""

from __future__ import annotations

import sys
from datetime import timedelta

from keywright import connect, recover
from soak.loads.keyspace import space

if __name__ == "__main__":
    with connect(sys.argv[1]) as db:
        print(db.run(recover(space, grace=timedelta(0))))
    print("ready", flush=True)
