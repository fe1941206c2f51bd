"""The Jinja environment of the pages: autoescape is always on; filters format texts and numbers."""

from __future__ import annotations

from datetime import UTC, datetime

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup, escape

from keywright.explorer.atlas import key_url, quoted, template_url, text_of
from keywright.explorer.audits import finding_id
from keywright.explorer.presentation import left, sized
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
        size=sized,
        left=left,
        ago=ago,
        share=share,
        rate=rate,
        sentence=sentence,
        quoted=quoted,
        shown=text_of,
        clock=clock,
        doc=doc,
        tree=tree,
        words=_paragraphs,
    )

    made.globals.update(finding_id=finding_id, key_url=key_url, template_url=template_url)
    for name in made.list_templates():
        made.get_template(name)  # compile now, so that the first page is as fast as the others
    return made


def counted(number: int | None) -> str:
    return "—" if number is None else f"{number:,}"


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


def clock(moment: float) -> str:
    return datetime.fromtimestamp(moment, UTC).strftime("%H:%M:%S")


def doc(text: str) -> Markup:
    """Render a docstring: text between backticks as code, all of it escaped."""
    pieces = [escape(piece) for piece in text.split("`")]
    if len(pieces) % 2 == 0:
        return escape(text)  # an unpaired backtick stays a backtick
    code = Markup("<code>{}</code>")
    marked = [code.format(piece) if number % 2 else piece for number, piece in enumerate(pieces)]
    return Markup("").join(marked)


def _paragraphs(text: str) -> list[str]:
    return [part for part in text.split("\n\n") if part.strip()]
