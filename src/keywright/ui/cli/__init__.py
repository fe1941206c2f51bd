"""The command line: parses, calls, prints. What it prints about comes from the layers below."""

from keywright.ui.cli.app import app, main

__all__ = ["app", "main"]
