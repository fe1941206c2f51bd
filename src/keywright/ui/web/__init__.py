"""The explorer: a live keyspace, seen through its declaration, in a browser."""

from keywright.ui.web.app import create_app
from keywright.ui.web.serving import serve
from keywright.ui.web.settings import ExplorerSettings

__all__ = ["ExplorerSettings", "create_app", "serve"]
