"""Presented values as HTML. A page has thousands of parts, and a Jinja template takes ten times as long.

Every text from the data goes through `escape`; only literals of this file are not escaped.
"""

from __future__ import annotations

from markupsafe import Markup, escape

from keywright.explorer.presentation import SHORT, Part

__all__ = ["tree"]

FEW = 3
MANY = 200
"""So many parts of a group are shown at once; the others are folded."""


def tree(part: Part) -> Markup:
    """Render a value as a collapsible tree, expanded if it is small."""
    pieces: list[str] = []
    if part.is_group:
        _group(pieces, part, unfolded=len(part.parts) <= FEW)
    else:
        _scalar(pieces, part, alone=True)
    return Markup("".join(pieces))


def _group(pieces: list[str], part: Part, *, unfolded: bool = False) -> None:
    if not part.parts and not part.more:
        pieces.append(f'<span class="v word">{"{}" if part.sort == "object" else "[]"}</span>')
        return
    pieces.append('<ul class="tree">\n')
    for number, (label, value) in enumerate(part.parts):
        if number and number % MANY == 0:
            last = min(number + MANY, len(part.parts))
            pieces.append(
                f'<li><details><summary class="dim">{number + 1:,} to {last:,}</summary><ul class="tree">\n'
            )
        if value.is_group and value.parts:
            _folding(pieces, label, value, number, unfolded=unfolded)
        else:
            _line(pieces, label, value)
        if number >= MANY and (number % MANY == MANY - 1 or number == len(part.parts) - 1):
            pieces.append("</ul></details></li>\n")
    if part.more:
        pieces.append(f'<li class="dim">and {part.more:,} more</li>\n')
    pieces.append("</ul>\n")


def _folding(pieces: list[str], label: Part | None, value: Part, number: int, *, unfolded: bool) -> None:
    """Render a collapsible group, with the link to its page beside it: a summary must not contain links."""
    url = label.url if label is not None else None
    pieces.append('<li class="entry">' if url else "<li>")
    pieces.append("<details open><summary>" if unfolded else "<details><summary>")
    pieces.append(f'<span class="label">{_labelled(label) if label is not None else number}</span>')
    if label is not None and label.note:
        pieces.append(f' <span class="note">{escape(label.note)}</span>')
    pieces.append(f' <span class="note">{escape(value.hint or value.summary)}</span></summary>')
    _group(pieces, value)
    pieces.append("</details>")
    if url and label is not None:
        hidden = f'<span class="hidden"> {_labelled(label)}</span>'
        pieces.append(f' <a class="open" href="{escape(url)}">Open{hidden}</a>')
    pieces.append("</li>\n")


def _line(pieces: list[str], label: Part | None, value: Part) -> None:
    pieces.append("<li>")
    if label is not None:
        text = _labelled(label)
        shown = f'<a href="{escape(label.url)}">{text}</a>' if label.url else text
        pieces.append(f'<span class="label">{shown}</span> ')
        if label.note:
            pieces.append(f'<span class="note">{escape(label.note)}</span> ')
    if value.is_group:
        _group(pieces, value)
    else:
        _scalar(pieces, value)
    pieces.append("</li>\n")


def _labelled(label: Part) -> str:
    text = escape(label.text if len(label.text) <= SHORT else f"{label.text[:SHORT]}…")
    return f'<span class="id">{text}</span>' if label.look == "text id" else text


def _scalar(pieces: list[str], part: Part, *, alone: bool = False) -> None:
    text = escape(part.text)
    if part.url:
        away = "" if part.url.startswith("/") else ' rel="noreferrer noopener"'
        pieces.append(f'<a class="v {part.look}" href="{escape(part.url)}"{away}>{text}</a>')
    elif part.sort == "text" and part.is_long and alone:
        pieces.append(f"<pre>{text}</pre>")
    elif part.sort == "text" and part.is_long:
        summary = escape(part.text[:SHORT].partition("\n")[0])
        pieces.append(f'<details class="long"><summary>{summary}…</summary><pre>{text}</pre></details>')
    elif part.sort == "text" and not part.text:
        pieces.append('<span class="v word">""</span>')
    else:
        pieces.append(f'<span class="v {part.look}">{text}</span>')
    if part.note:
        pieces.append(f' <span class="note">{escape(part.note)}</span>')
