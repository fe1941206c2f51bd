"""Migration of live data: finding and upgrading old keys, and when old declarations may be dropped."""

from keywright.tools.migrate.bookmark import Bookmark
from keywright.tools.migrate.contraction import Contract, contract
from keywright.tools.migrate.conversion import Conversion, ConversionPage, ConversionRoute, Sweep, convert_all
from keywright.tools.migrate.page_sweep import Refusal, SweepOptions
from keywright.tools.migrate.progress import MigrationPacemaker, MigrationProgress, SweepCounts
from keywright.tools.migrate.sweeper import SweepResult, sweep

__all__ = [
    "Bookmark",
    "Contract",
    "Conversion",
    "ConversionPage",
    "ConversionRoute",
    "MigrationPacemaker",
    "MigrationProgress",
    "Refusal",
    "Sweep",
    "SweepCounts",
    "SweepOptions",
    "SweepResult",
    "contract",
    "convert_all",
    "sweep",
]
