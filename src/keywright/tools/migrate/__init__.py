"""Migration of live data: finding and upgrading old keys, and when old declarations may be dropped."""

from keywright.tools.migrate.bookmark import Bookmark
from keywright.tools.migrate.contraction import Contract, contract
from keywright.tools.migrate.conversion import Conversion, Page, Route, Sweep, convert_all
from keywright.tools.migrate.progress import Counts, Pace, Progress
from keywright.tools.migrate.sweeper import Options, Refusal, Result, sweep

__all__ = [
    "Bookmark",
    "Contract",
    "Conversion",
    "Counts",
    "Options",
    "Pace",
    "Page",
    "Progress",
    "Refusal",
    "Result",
    "Route",
    "Sweep",
    "contract",
    "convert_all",
    "sweep",
]
