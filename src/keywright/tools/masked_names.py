"""Masked names in the report of an audit, and the keys that they stand for.

A report has the template of a key and six digits of a digest of its name, no more. To find the key again,
the names of the server are hashed and compared. Two names may have the same digits: of a million names about
one in sixteen lookups finds a second one, which the template mostly tells apart.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from keywright.engine import AsyncDatabase
from keywright.errors import UsageError
from keywright.keyspace import Keyspace
from keywright.tools.audit.findings import masked_name
from keywright.tools.audit.matcher import Matcher
from keywright.tools.key_walks import OnProgress, names_tagged
from keywright.tools.pace import GENTLE, Pace

__all__ = ["MaskedName", "masked_in", "resolved"]

LARGEST = 256 << 20
_TAG = re.compile(r"#?(?P<tag>[0-9a-f]{6})")


class MaskedName(NamedTuple):
    """A masked name of one report. `name` is the full one, if the report was made with --show-ids."""

    tag: str
    templates: tuple[str, ...]
    model: str
    database: int | None = None
    name: bytes | None = None

    @property
    def shown(self) -> str:
        return f"#{self.tag}"


def masked_in(path: Path, text: str) -> MaskedName:
    """Return a masked name as a report has it: `#f1ec88`. Raise UsageError if it has none."""
    written = _TAG.fullmatch(text.rpartition(" ")[2])
    if written is None:
        raise UsageError(f"{text!r} is not a masked name. Write it as the report does: '#f1ec88'.")
    tag = written["tag"]
    found = [each for each in _names(_report(path)) if each.tag == tag]
    if not found:
        raise UsageError(f"{path} has no key that is masked as #{tag}. Name one of its findings.")
    templates = tuple(dict.fromkeys(template for each in found for template in each.templates))
    return found[0]._replace(templates=templates)


async def resolved(
    db: AsyncDatabase,
    spaces: Sequence[Keyspace],
    masked: MaskedName,
    *,
    pace: Pace = GENTLE,
    on_progress: OnProgress | None = None,
) -> list[bytes]:
    """Return the stored names that a masked name may stand for: those of its template, if there are any."""
    if masked.name is not None:
        return [masked.name]
    names = await names_tagged(db, masked.tag, pace=pace, on_progress=on_progress)
    if len(names) < 2:
        return names
    matcher = Matcher(spaces, db.context)
    of_template = [
        name
        for name in names
        if (kind := matcher.kind_of(name)) is not None
        and any(each.endswith(kind.declaration.template.source) for each in masked.templates)
    ]
    return of_template or names


def _report(path: Path) -> Any:
    try:
        with path.open("rb") as file:
            data = file.read(LARGEST + 1)
    except OSError as error:
        raise UsageError(f"{path} cannot be read: {error.strerror}. Name the report of an audit.") from error
    if len(data) > LARGEST:
        raise UsageError(f"{path} has more than {LARGEST >> 20} MiB. Name the report of an audit.")
    try:
        report = msgspec.json.decode(data)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise _no_report(path) from error
    if not isinstance(report, dict) or not isinstance(report.get("model"), str):
        raise _no_report(path)
    return report


def _no_report(path: Path) -> UsageError:
    return UsageError(f"{path} is not the report of an audit. Make one: --format json --output FILE.")


def _names(report: dict[str, Any]) -> Iterator[MaskedName]:
    """Yield the masked names of a report, and of its databases."""
    for part in report.get("databases") or [report]:
        if not isinstance(part, dict):
            continue
        number = part.get("database")
        database = number if isinstance(number, int) else None
        rows = [
            *((row.get("template"), row.get("key")) for row in _rows(part, "findings")),
            *((row.get("template"), row.get("largest")) for row in _rows(part, "templates")),
        ]
        for template, key in rows:
            if isinstance(template, str) and isinstance(key, str):
                name = None
                masked = key
                if not key.startswith(f"{template} #"):  # made with --show-ids
                    name = key.encode("utf-8", "surrogateescape")
                    masked = masked_name(template, name)
                yield MaskedName(masked.rpartition("#")[2], (template,), report["model"], database, name)


def _rows(part: dict[str, Any], name: str) -> list[dict[str, Any]]:
    found = part.get(name)
    return [row for row in found if isinstance(row, dict)] if isinstance(found, list) else []
