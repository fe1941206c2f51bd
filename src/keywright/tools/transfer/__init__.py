"""Export and import of the keys of a model: lines of JSON, read and written through the declaration."""

from keywright.tools.transfer.exporter import Exported, export_keys
from keywright.tools.transfer.importer import Imported, Plan, import_keys, plan_import
from keywright.tools.transfer.lines import FileHeader, KeyLine

__all__ = [
    "Exported",
    "FileHeader",
    "Imported",
    "KeyLine",
    "Plan",
    "export_keys",
    "import_keys",
    "plan_import",
]
