"""The Jinja environment of the pages: autoescape is always on; filters format texts and numbers."""

from __future__ import annotations

from datetime import UTC, datetime

from jinja2 import Environment, PackageLoader, StrictUndefined

from keywright.explorer.atlas import key_url, quoted, template_url, text_of
from keywright.explorer.audits import finding_id
from keywright.explorer.presentation import left, sized
from keywright.explorer.prose import doc, prose
from keywright.explorer.table_markup import table
from keywright.explorer.trees import tree

__all__ = ["environment"]


def environment() -> Environment:
    """Return the templates of the explorer. An undefined variable raises an error."""
    made = Environment(
        loader=PackageLoader("keywright.explorer"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        auto_reload=False,
    )
    made.filters.update(
        count=counted,
        short=shortened,
        size=sized,
        left=left,
        ago=ago,
        share=share,
        rate=rate,
        sentence=sentence,
        quoted=quoted,
        shown=text_of,
        clock=clock,
        micro=micro,
        doc=doc,
        prose=prose,
        tree=tree,
        words=_paragraphs,
    )

    made.globals.update(finding_id=finding_id, key_url=key_url, template_url=template_url, rows=table)
    for name in made.list_templates():
        made.get_template(name)  # compile now, so that the first page is as fast as the others
    return made


def counted(number: int | None) -> str:
    return "—" if number is None else f"{number:,}"


def shortened(number: int) -> str:
    """Format a count in at most four characters: 950, 1.2k, 18k, 3.4M."""
    if number < 1000:
        return str(number)
    for unit in ("k", "M", "G", "T"):
        number_of = number / 1000 ** ("kMGT".index(unit) + 1)
        if number_of < 999.5 or unit == "T":
            return f"{number_of:.1f}{unit}" if number_of < 9.95 else f"{number_of:.0f}{unit}"
    raise AssertionError("the last unit takes any count")


def ago(seconds: float) -> str:
    return "just now" if seconds < 2 else f"{left(seconds * 1000)} ago"


def share(part: float | None) -> str:
    if part is None:
        return "—"
    if 0 < part < 0.01:
        return "< 1 %"
    return "> 99 %" if 0.99 < part < 1 else f"{part:.0%}".replace("%", " %")


def rate(per_minute: float | None) -> str:
    """Format a net change of keys."""
    if per_minute is None:
        return "—"
    if abs(per_minute) < 0.05:
        return "0 / min"
    return f"{per_minute:+,.0f} / min" if abs(per_minute) >= 10 else f"{per_minute:+.1f} / min"


def sentence(text: str) -> str:
    """Capitalize the first letter only: `capitalize` would turn "Redis" inside a text into "redis"."""
    return text[:1].upper() + text[1:]


def clock(moment: float, now: datetime | None = None) -> str:
    """Format a time of today without its date: `17:40:05`, `3 Nov 17:40:05`, `30 Dec 2025 17:40:05`."""
    then, today = datetime.fromtimestamp(moment, UTC), (now or datetime.now(UTC)).date()
    date = "" if then.date() == today else f"{then.day} {then:%b} "
    year = "" if not date or then.year == today.year else f"{then.year} "
    return f"{date}{year}{then:%H:%M:%S}"


def micro(microseconds: float) -> str:
    """Format a short duration: `12 µs`, `3.4 ms`, `1.2 s`."""
    if microseconds < 1000:
        return f"{microseconds:.0f} µs"
    milliseconds = microseconds / 1000
    return f"{milliseconds:,.1f} ms" if milliseconds < 1000 else left(milliseconds)


def _paragraphs(text: str) -> list[str]:
    return [part for part in text.split("\n\n") if part.strip()]
