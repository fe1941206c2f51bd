"""Markdown of GitHub as Markdown of the generator: links, alerts and info strings of blocks."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

__all__ = ["as_site", "links_in", "title_of"]

_FENCE = re.compile(r"^(```+|~~~+)[^\n]*\n.*?^\1[ \t]*$", re.MULTILINE | re.DOTALL)
_INFO = re.compile(r'^(```+)(\w+)((?: title="[^"]+")?)(?: (?:replace|written))?$', re.MULTILINE)
_CODE = re.compile(r"(`+)(?!`).+?(?<!`)\1(?!`)", re.DOTALL)
_TARGET = re.compile(r"(\]\()([^)\s]+)((?: \"[^\"]*\")?\))|((?:src|srcset|href)=\")([^\"]+)(\")")
_ALERT = re.compile(r"^> \[!(\w+)\]\n((?:^>.*\n?)*)", re.MULTILINE)
_ALERTS = {"NOTE": "note", "TIP": "tip", "IMPORTANT": "info", "WARNING": "warning", "CAUTION": "danger"}
_TITLE = re.compile(r"^# (.+)$", re.MULTILINE)


def title_of(text: str) -> str:
    """Return the first heading of a page, without marks. Raise ValueError if it has none."""
    found = _TITLE.search(text)
    if found is None:
        raise ValueError(f"a page has no `# Title`: {text[:60]!r}")
    return re.sub(r"\[([^\]]*)\]\([^)]*\)|[`*]", r"\1", found[1]).strip()


def as_site(text: str, moved: Callable[[str], str]) -> str:
    """Return a page for the generator. `moved` returns the new target of each relative link."""
    parts = []
    for is_code, part in _parts(text):
        parts.append(_INFO.sub(r"\1\2\3", part) if is_code else _alerts(_moved(part, moved)))
    return "".join(parts)


def links_in(text: str) -> list[str]:
    """Return the targets of all links of a page."""
    return [
        found[2] or found[5]
        for is_code, part in _parts(text)
        if not is_code
        for found in _TARGET.finditer(_CODE.sub("", part))
    ]


def _parts(text: str) -> Iterator[tuple[bool, str]]:
    """Yield the parts of a page: whether it is a fenced block, and its text."""
    end = 0
    for found in _FENCE.finditer(text):
        yield False, text[end : found.start()]
        yield True, found[0]
        end = found.end()
    yield False, text[end:]


def _moved(prose: str, moved: Callable[[str], str]) -> str:
    """Return the prose with moved links; code spans stay as they are."""
    kept: list[str] = []

    def keep(found: re.Match[str]) -> str:
        kept.append(found[0])
        return f"\0{len(kept) - 1}\0"

    def replace(found: re.Match[str]) -> str:
        before, target, after = found[1] or found[4], found[2] or found[5], found[3] or found[6]
        return f"{before}{moved(target)}{after}"

    hidden = _TARGET.sub(replace, _CODE.sub(keep, prose))
    return re.sub("\0(\\d+)\0", lambda found: kept[int(found[1])], hidden)


def _alerts(prose: str) -> str:
    def box(found: re.Match[str]) -> str:
        lines = [line.removeprefix(">").removeprefix(" ") for line in found[2].splitlines()]
        inner = "\n".join(f"    {line}".rstrip() for line in lines)
        return f"!!! {_ALERTS[found[1].upper()]}\n\n{inner}\n"

    return _ALERT.sub(box, prose)
