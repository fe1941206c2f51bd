"""Migration of live data: finding and upgrading old keys, and when old declarations may be dropped."""

from keywright.tools.migrate.bookmark import Bookmark
from keywright.tools.migrate.contraction import Contract, contract
from keywright.tools.migrate.conversion import Conversion, ConversionPage, ConversionRoute, Sweep, convert_all
from keywright.tools.migrate.progress import MigrationPace, MigrationProgress, SweepCounts
from keywright.tools.migrate.sweeper import Refusal, SweepOptions, SweepResult, sweep

__all__ = [
    "Bookmark",
    "Contract",
    "Conversion",
    "ConversionPage",
    "ConversionRoute",
    "MigrationPace",
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
