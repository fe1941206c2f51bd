"""The navigation of the site: sections of pages, in the order of docs/navigation.toml."""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Iterator, Sequence
from pathlib import Path

from website.markdown import title_of

__all__ = ["Item", "navigation", "paths_in", "toml"]

Item = str | dict[str, "Item | list[Item]"]
"""A page, or a section with its title and its items."""

_LINK = re.compile(r"\]\(([\w./-]+\.md)\)")


def navigation(pages: Path) -> list[Item]:
    """Return the navigation of the pages in a folder. Raise ValueError for a listed page that is missing.

    Entries of the file are pages, folders (`howto/`) and sections. A folder without pages is left out.
    """
    listed = tomllib.loads((pages / "navigation.toml").read_text("utf-8"))
    return [item for section in listed["section"] for item in _section(pages, section)]


def paths_in(items: Sequence[Item]) -> Iterator[str]:
    """Yield every page of a navigation."""
    for item in items:
        if isinstance(item, str):
            yield item
        else:
            for inner in item.values():
                yield from paths_in(inner if isinstance(inner, list) else [inner])


def toml(items: Sequence[Item]) -> str:
    """Return a navigation as a value of the configuration of the generator."""
    shown = []
    for item in items:
        if isinstance(item, str):
            shown.append(json.dumps(item))
        else:
            ((title, inner),) = item.items()
            value = toml(inner) if isinstance(inner, list) else json.dumps(inner)
            shown.append(f"{{ {json.dumps(title)} = {value} }}")
    return f"[{', '.join(shown)}]"


def _section(pages: Path, section: dict[str, object]) -> Iterator[Item]:
    entries = section["pages"]
    assert isinstance(entries, list)
    items = [item for entry in entries for item in _entry(pages, entry)]
    title = section.get("title")
    if isinstance(title, str):
        if items:
            yield {title: items}
    else:
        yield from items


def _entry(pages: Path, entry: str | dict[str, object]) -> Iterator[Item]:
    if isinstance(entry, dict):
        yield from _section(pages, entry)
    elif entry.endswith("/"):
        yield from _folder(pages, entry.rstrip("/"))
    elif "*" in entry:
        yield from (_page(pages, each.relative_to(pages).as_posix()) for each in sorted(pages.glob(entry)))
    elif (pages / entry).is_file():
        yield _page(pages, entry)
    else:
        raise ValueError(f"docs/navigation.toml lists {entry}, which does not exist. Remove the line.")


def _folder(pages: Path, folder: str) -> Iterator[Item]:
    """Yield the index of a folder, then the pages in the order of its links, then all others by name."""
    found = {page.name for page in (pages / folder).glob("*.md")}
    index = next((name for name in ("README.md", "index.md") if name in found), None)
    order: list[str] = []
    if index is not None:
        order = [index, *_LINK.findall((pages / folder / index).read_text("utf-8"))]
    for name in dict.fromkeys([*order, *sorted(found)]):
        if name in found:
            yield _page(pages, f"{folder}/{name}")


def _page(pages: Path, path: str) -> Item:
    return {title_of((pages / path).read_text("utf-8")): path}
