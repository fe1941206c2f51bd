"""Tables as HTML. Every text from the data goes through `escape`; only literals of this file do not."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from markupsafe import Markup, escape

from keywright.explorer.atlas import text_of
from keywright.explorer.cells import Cell, Line
from keywright.explorer.prose import prose
from keywright.explorer.tables import Column, Row
from keywright.explorer.views import View

__all__ = ["table"]

UNBROKEN = 40
"""A word that is not longer is kept on one line."""
MARK = ' <span class="mark" aria-hidden="true">✖</span><span class="hidden"> has findings</span>'
ON_A_PHONE = 6
"""A narrow screen shows so many columns, and the facts of the server."""


def table(
    view: View,
    columns: Sequence[Column],
    lines: Sequence[Line],
    label: str,
    marked: Collection[bytes] = frozenset(),
) -> Markup:
    """Render rows as a table; on a phone each row is a card. The first cell links to the page of its row.

    The rows of keys that are `marked` have findings.
    """
    named = bool(columns) and columns[0].role == "variable"
    pieces = [
        f'<div class="scroll rows" tabindex="0" role="region" aria-label="{escape(label)}">\n',
        '<table class="rows" data-keys>\n<thead><tr>',
    ]
    if not named:
        pieces.append('<th scope="col">Key</th>')
    for place, column in enumerate(columns):
        pieces.append(_heading(view, column, place))
    pieces.append("</tr></thead>\n<tbody>\n")
    for line in lines:
        _row(pieces, line, named=named, marked=line.row.name in marked)
    pieces.append("</tbody>\n</table>\n</div>\n")
    return Markup("".join(pieces))


def _classes(*names: str) -> str:
    given = " ".join(filter(None, names))
    return f' class="{given}"' if given else ""


def _wide(column: Column, place: int) -> str:
    return "wide" if place >= ON_A_PHONE and column.role == "value" else ""


def _heading(view: View, column: Column, place: int) -> str:
    own = view.sort == column.id
    order = f' aria-sort="{"descending" if view.descending else "ascending"}"' if own else ""
    classes = _classes("n" if column.is_numeric else "", _wide(column, place))
    title = escape(column.title if len(column.title) <= 60 else f"{column.title[:60]}…")
    if column.secret:
        return f'<th scope="col"{classes}>{title} <span class="tag">secret</span></th>'
    sign = f' <span aria-hidden="true">{"▼" if view.descending else "▲"}</span>' if own else ""
    hint = f' title="{escape(column.words[:200])}"' if column.words else ""
    url = escape(view.sorted_by(column.id))
    return f'<th scope="col"{classes}{order}><a href="{url}"{hint}>{title}{sign}</a></th>'


def _row(pieces: list[str], line: Line, *, named: bool, marked: bool) -> None:
    row = line.row
    bad = marked or bool(row.problems) or bool(row.note and not row.harmless)
    mark = MARK if marked else ""
    pieces.append('<tr class="bad">' if bad else "<tr>")
    hint = escape(text_of(row.name, 200))
    url = escape(row.url)
    if not named:
        pieces.append(
            f'<td><a class="row" href="{url}"><code>{escape(text_of(row.name, 80))}</code></a>{mark}</td>'
        )
    note = row.note
    for place, cell in enumerate(line.cells):
        column = cell.column
        wide = _wide(column, place)
        label = f' data-label="{escape(column.title[:60])}"'
        if place == 0 and named:
            text = escape(cell.parts[0].text if cell.parts and cell.parts[0].text else text_of(row.name, 60))
            look = ' class="row id"' if len(text) <= UNBROKEN else ' class="row"'
            target = row.url or (cell.parts[0].url if cell.parts else None)
            own = (
                f'<a{look} href="{escape(target)}" title="{hint}">{text}</a>'
                if target
                else f"<span{look}>{text}</span>"
            )
            pieces.append(f"<td>{own}{mark}{_titled(cell, 0, beside=bool(row.url))}</td>")
        elif note and column.role == "value":
            pieces.append(_note(row, label, wide))
            note = ""
        elif cell.problem:
            pieces.append(f"<td{label}{_classes('bad', wide)}>{_fault(cell.problem)}</td>")
        else:
            content = _content(cell)
            classes = _classes("n" if column.is_numeric else "", wide, "" if content else "void")
            pieces.append(f"<td{label}{classes}>{content}</td>")
    if note:
        pieces.append(_note(row, "", ""))
    pieces.append("</tr>\n")


def _note(row: Row, label: str, wide: str) -> str:
    if row.harmless:
        return f'<td{label}{_classes(wide)}><span class="dim">{prose(row.note)}</span></td>'
    return f"<td{label}{_classes('bad', wide)}>{_fault(row.note)}</td>"


def _fault(reason: str) -> str:
    return f'<span class="malformed"><span class="mark" aria-hidden="true">✖</span> {prose(reason)}</span>'


def _content(cell: Cell) -> str:
    if cell.ttl_ms is not None:
        return f'<span data-ttl="{cell.ttl_ms}">{escape(cell.parts[0].text)}</span>'
    if cell.column.id == "expires" and cell.column.role == "fact" and not cell.parts:
        return '<span class="dim">never</span>'
    pieces = []
    for place, part in enumerate(cell.parts):
        if part.sort == "text" and not part.text:
            shown = '<span class="v word">""</span>'
        elif part.url:
            away = "" if part.url.startswith("/") else ' rel="noreferrer noopener"'
            shown = f'<a class="v {part.look}" href="{escape(part.url)}"{away}>{escape(part.text)}</a>'
        elif part.sort == "time":
            shown = f'<span class="v time" title="{escape(part.note)}">{escape(part.text)}</span>'
        else:
            shown = f'<span class="v {part.look}">{escape(part.text)}</span>'
        note = f' <span class="note">{escape(part.note)}</span>' if part.note and part.sort == "bytes" else ""
        pieces.append(f"{shown}{_titled(cell, place) or note}")
    if cell.more:
        pieces.append(f'<span class="note">{escape(cell.more)}</span>')
    return ", ".join(pieces)


def _titled(cell: Cell, place: int, *, beside: bool = False) -> str:
    """Return the name of the key that a part names; as a link if the part itself leads elsewhere."""
    title = cell.titles[place] if place < len(cell.titles) else ""
    url = cell.parts[place].url if beside and place < len(cell.parts) else None
    if url is not None:
        return f' <a class="title" href="{escape(url)}">{escape(title or "→")}</a>'
    return f' <span class="title">{escape(title)}</span>' if title else ""
