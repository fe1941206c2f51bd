"""Migration of live data: what is old, bringing it up to date, and when the old declarations may go."""

from keywright.tools.migrate.bookmark import Bookmark
from keywright.tools.migrate.contracting import Contract, contract
from keywright.tools.migrate.converting import Conversion, Page, convert_all
from keywright.tools.migrate.progress import Counts, Progress
from keywright.tools.migrate.sweeping import Options, Refusal, Result, sweep

__all__ = [
    "Bookmark",
    "Contract",
    "Conversion",
    "Counts",
    "Options",
    "Page",
    "Progress",
    "Refusal",
    "Result",
    "contract",
    "convert_all",
    "sweep",
]
