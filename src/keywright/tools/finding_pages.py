"""The pages of findings: what each code means, how it arises and what repair does.

They are docs/findings/*.md of the repository, which a wheel has as keywright/findings.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable
from functools import cache
from importlib.resources import files
from importlib.resources.abc import Traversable
from pathlib import Path
from typing import Any, NamedTuple

import keywright
from keywright.errors import UsageError
from keywright.keyspace.proof.rules import PROOFS, keyspaces_share_no_name
from keywright.tools.audit.findings import CODES

__all__ = ["FindingPage", "all_pages", "page_named"]

CHECK = "check.md"
_SECTION = re.compile(r"^## (?P<code>[a-z-]+)\n(?P<text>.*?)(?=^## |\Z)", re.MULTILINE | re.DOTALL)
_LINK = re.compile(r"\[([^\]]*)\]\([^)\s]*\)")


class FindingPage(NamedTuple):
    """One code. `source` is the command that reports it, `text` is Markdown."""

    code: str
    word: str
    title: str
    level: str
    source: str
    text: str

    def as_data(self) -> dict[str, Any]:
        return self._asdict()


def page_named(name: str) -> FindingPage:
    """Return the page of a code (KW402), of its word, or of a code or a rule of `keywright check`."""
    pages = all_pages()
    wanted = name.strip().lower().replace("_", "-").replace(" ", "-")
    for page in pages:
        if wanted in (page.code.lower(), page.word):
            return page
    known = [text for page in pages for text in (page.code, page.word)]
    near = difflib.get_close_matches(name.upper(), known, 1, 0.7)
    near = near or difflib.get_close_matches(wanted, known, 1)
    hint = f"Did you mean {near[0]}?" if near else "`keywright explain` lists all of them."
    raise UsageError(f"{name!r} is not the code of a finding. {hint}")


@cache
def all_pages() -> tuple[FindingPage, ...]:
    """Return the pages of all codes: those of the audit, those of the check, and the rules of the check."""
    return (*_of_audit(), *_of_check(), *_rules())


def _of_audit() -> Iterable[FindingPage]:
    for code in CODES.values():
        text = _without_links(_read(f"{code.code}.md"))
        yield FindingPage(code.code, code.word, code.title, code.level, "audit", text)


def _of_check() -> Iterable[FindingPage]:
    for section in _SECTION.finditer(_read(CHECK)):
        code, text = section["code"], _without_links(section["text"].strip())
        note = text.startswith("A note: ")
        title = re.split(r"(?<=[a-z)`])[.:;](?:\s|$)", text.removeprefix("A note: "), maxsplit=1)[0]
        title = " ".join(title.split())
        level = "note" if note else "error"
        yield FindingPage(code, code, title[:1].lower() + title[1:], level, "check", f"# {code}\n\n{text}\n")


def _rules() -> Iterable[FindingPage]:
    for rule in (*PROOFS, keyspaces_share_no_name):
        name = rule.__name__.replace("_", "-")
        summary, _, rest = (rule.__doc__ or "").partition("\n")
        text = f"# {name}\n\nA rule of `keywright check`: {summary}\n\n{' '.join(rest.split())}".rstrip()
        yield FindingPage(name, name, summary.rstrip("."), "rule", "check", f"{text}\n")


def _read(name: str) -> str:
    return _folder().joinpath(name).read_text("utf-8")


@cache
def _folder() -> Traversable:
    shipped = files(keywright).joinpath("findings")
    if shipped.is_dir():
        return shipped
    return Path(str(keywright.__file__)).parents[2] / "docs" / "findings"  # a checkout


def _without_links(text: str) -> str:
    """Return the text with the words of each link only: they lead to pages that are not installed."""
    return _LINK.sub(r"\1", text)
