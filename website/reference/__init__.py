"""The pages of the reference, made from docstrings, commands and declarations when the site is built."""

from __future__ import annotations

from website.reference.commands import command_pages
from website.reference.python import python_pages
from website.reference.tables import table_pages

__all__ = ["reference_pages"]


def reference_pages() -> dict[str, str]:
    """Return the text of each page of the reference by its place on the site."""
    return {**python_pages(), **command_pages(), **table_pages()}
