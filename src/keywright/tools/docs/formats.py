"""The formats of a document, and whether a committed document is up to date."""

from __future__ import annotations

from enum import Enum
from pathlib import Path

import msgspec

from keywright.errors import UsageError
from keywright.tools.docs.document import document_of
from keywright.tools.docs.html import html
from keywright.tools.docs.markdown import markdown
from keywright.tools.model import ModelDescription

__all__ = ["Format", "is_current", "written"]


class Format(Enum):
    MARKDOWN = "markdown"
    HTML = "html"
    JSON = "json"


def written(model: ModelDescription, form: Format, origin: str | None = None) -> str:
    """Return the document. The same declaration, and the same dump, always give the same text.

    `origin` is the command that makes it, if it is not `keywright docs` with the name of the model.
    """
    origin = origin or f"keywright docs {model.name} --format {form.value}"
    if form is Format.MARKDOWN:
        return markdown(document_of(model), origin)
    if form is Format.HTML:
        return html(document_of(model), origin)
    return msgspec.json.format(msgspec.json.encode(model), indent=2).decode() + "\n"


def is_current(text: str, committed: Path) -> bool:
    """Return whether a committed document is up to date, apart from line endings, which git may change."""
    try:
        found = committed.read_text("utf-8")
    except FileNotFoundError:
        return False
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"{committed} cannot be read: {error}. Name a document to compare with.") from error
    return found.splitlines() == text.splitlines()
