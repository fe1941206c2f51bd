"""The site for language models: `llms.txt` lists the pages and `llms-full.txt` has their text."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from pathlib import Path

from website.markdown import title_of
from website.navigation import Item, paths_in

__all__ = ["full_text", "overview"]

SUMMARY = (
    "Keywright is a Python library for Redis and Valkey. One class declares each key: its name, type, value "
    "and expiry. The declaration gives a typed client, relations that writes keep, a static proof of the "
    "keyspace, documentation, an audit of live data, repair, migration, access rules and a web explorer."
)


def overview(pages: Path, items: Sequence[Item]) -> str:
    """Return `llms.txt`: a summary, and each section with its pages."""
    lines = ["# Keywright", "", f"> {SUMMARY}", ""]
    for item in items:
        if isinstance(item, dict):
            ((title, inner),) = item.items()
            lines += [f"## {title}", ""]
            lines += [_line(pages, path) for path in paths_in(inner if isinstance(inner, list) else [inner])]
            lines.append("")
    return "\n".join(lines)


def full_text(pages: Path, items: Sequence[Item]) -> str:
    """Return the text of all pages of the navigation, each below its path."""
    return "\n\n".join(
        f"<!-- {path} -->\n\n{(pages / path).read_text('utf-8').strip()}"
        for path in dict.fromkeys(paths_in(items))
    )


def _line(pages: Path, path: str) -> str:
    text = (pages / path).read_text("utf-8")
    about = next(_paragraphs(text), "")
    return f"- [{title_of(text)}]({_address(path)}){': ' if about else ''}{about}"


def _address(path: str) -> str:
    """Return the address of a page below the site; README.md is the index of its folder."""
    return f"{re.sub(r'README$', 'index', path.removesuffix('.md'))}.html"


def _paragraphs(text: str) -> Iterator[str]:
    """Yield the first sentence of each paragraph of prose."""
    for part in text.split("\n\n"):
        plain = " ".join(part.split())
        if plain and not plain.startswith(("#", "|", "```", "-", "!", ">", "<", ":")):
            plain = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", plain)
            yield re.split(r"(?<=[.:]) ", plain)[0].rstrip(":")
