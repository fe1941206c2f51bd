"""A document as one HTML file, without scripts and external resources; light and dark, narrow and wide."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from html import escape
from importlib.resources import files

from keywright.tools.diagram.entities import Entity, Facts, Tie
from keywright.tools.diagram.layout import COLUMNS, ON_A_PHONE
from keywright.tools.docs.anchors import key_anchor, tie_anchor
from keywright.tools.docs.content import (
    Block,
    Bullets,
    Code,
    Figure,
    Heading,
    Inline,
    Line,
    Link,
    Paragraph,
    Table,
)

__all__ = ["box_link", "html", "line_link"]


def html(blocks: Iterable[Block], origin: str) -> str:
    """Return the whole file. `origin` is the command that makes it again."""
    document = list(blocks)
    title = "".join(part.text for block in document[:1] if isinstance(block, Heading) for part in block.line)
    style = files("keywright.tools.docs").joinpath("style.css").read_text("utf-8")
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        '<meta name="color-scheme" content="light dark">\n'
        # Not even an image could be fetched, should one slip into a docstring.
        '<meta http-equiv="Content-Security-Policy" content="default-src \'none\'; '
        "style-src 'unsafe-inline'\">\n"
        f"<title>{escape(title)}</title>\n<style>\n{style}</style>\n</head>\n<body>\n"
        f"{_contents(document)}"
        f"<main>\n{''.join(map(_block, document))}"
        f"<footer>Made by <code>{escape(origin)}</code>.</footer>\n</main>\n</body>\n</html>\n"
    )


def _contents(document: Iterable[Block]) -> str:
    return (
        '<nav aria-label="Contents"><details open><summary>Contents</summary>\n'
        f"<ul>\n{''.join(_entries(document))}</ul>\n</details></nav>\n"
    )


def _entries(document: Iterable[Block]) -> Iterator[str]:
    for block in document:
        if isinstance(block, Heading) and block.level > 1:
            yield (
                f'<li class="level{block.level}"><a href="#{escape(block.anchor)}">'
                f"{_line(block.line)}</a></li>\n"
            )


def _block(block: Block) -> str:
    if isinstance(block, Heading):
        tag = f"h{block.level}"
        anchor = escape(block.anchor)
        return f'<{tag} id="{anchor}"><a class="self" href="#{anchor}">{_line(block.line)}</a></{tag}>\n'
    if isinstance(block, Paragraph):
        return f"<p>{_line(block.line)}</p>\n"
    if isinstance(block, Bullets):
        return f"<ul>{''.join(f'<li>{_line(item)}</li>' for item in block.items)}</ul>\n"
    if isinstance(block, Table):
        return _table(block)
    assert isinstance(block, Figure)
    caption = escape(block.caption)
    drawings = "".join(
        block.schema.svg(box_link, line_link, columns=columns) for columns in (COLUMNS, ON_A_PHONE)
    )
    return (
        f'<figure><div class="wide" tabindex="0" role="region" aria-label="Entity diagram">{drawings}</div>'
        f"<figcaption>{caption}</figcaption></figure>\n"
    )


def box_link(entity: Entity) -> Facts:
    """Return the link of a box of the diagram."""
    return Facts(f"#{key_anchor(entity.space, entity.key.name)}")


def line_link(tie: Tie) -> str:
    """Return the link of a line of the diagram."""
    return f"#{tie_anchor(tie)}"


def _table(table: Table) -> str:
    headed = any(table.header)
    head = "".join(f'<th scope="col">{escape(title)}</th>' for title in table.header)
    rows = "".join(_row(row, table.header if headed else None) for row in table.rows)
    kind = "members" if headed else "facts"
    thead = f"<thead><tr>{head}</tr></thead>" if headed else ""
    return f'<div class="wide"><table class="{kind}">{thead}<tbody>{rows}</tbody></table></div>\n'


def _row(row: Iterable[Line], header: Sequence[str] | None) -> str:
    """Return a row whose cells carry the title of their column, which a narrow page shows beside them."""
    cells = [_line(cell) for cell in row]
    if header is None:
        return f'<tr><th scope="row">{cells[0]}</th><td>{cells[1]}</td></tr>'
    titled = zip(header, cells, strict=True)
    tds = "".join(f'<td data-title="{escape(title)}">{cell}</td>' for title, cell in titled if cell or title)
    return f"<tr>{tds}</tr>"


def _line(line: Line) -> str:
    return "".join(map(_inline, line))


def _inline(part: Inline) -> str:
    if isinstance(part, Link):
        return f'<a href="#{escape(part.anchor)}"><code>{_breakable(part.text)}</code></a>'
    if isinstance(part, Code):
        return f"<code>{_breakable(part.text)}</code>"
    return escape(part.text)


def _breakable(text: str) -> str:
    """Return code that may break after the colons of a key's name."""
    return escape(text).replace(":", ":<wbr>")
