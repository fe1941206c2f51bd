"""The explorer: browse a live keyspace, decoded with its declaration."""

from keywright.errors import dependencies_of

with dependencies_of("the explorer", install="keywright[explorer]"):
    from keywright.explorer.app import create_app
    from keywright.explorer.server import serve
    from keywright.explorer.settings import ExplorerSettings, Tour

__all__ = ["ExplorerSettings", "Tour", "create_app", "serve"]
