"""Diagrams in Mermaid, which GitHub draws, as drawings on the site, which loads no library for them.

The diagram of a data model is drawn by `keywright.tools`, as in its HTML document. Others are pictures in
docs/images/diagrams, made by scripts/flowcharts.py.
"""

from __future__ import annotations

import hashlib
import os
import re
from pathlib import Path

from keywright.tools import load_model
from keywright.tools.diagram.entities import schema_of
from keywright.tools.docs.html import box_link, line_link

__all__ = ["FLOWCHART", "PICTURES", "diagram_rules", "drawn", "picture_of"]

FLOWCHART = re.compile(r"^```mermaid\n(.*?)^```$", re.MULTILINE | re.DOTALL)
PICTURES = Path(__file__).parents[1] / "docs" / "images" / "diagrams"
STYLE = Path(__file__).parents[1] / "src/keywright/tools/docs/style.css"
_MODEL = re.compile(r"<!-- Made by `keywright docs ([\w-]+) ")


def drawn(text: str, page: Path) -> str:
    """Return a page whose diagrams are drawings. Raise ValueError for a diagram that has no picture."""
    model = _MODEL.match(text)

    def drawing(found: re.Match[str]) -> str:
        return _of_model(model[1]) if model else _picture(found[1], page)

    return FLOWCHART.sub(drawing, text)


def diagram_rules() -> list[str]:
    """Return the rules of the style of HTML documents that concern the diagram."""
    lines = STYLE.read_text("utf-8").splitlines()
    return [line for line in lines if line.startswith(".diagram")]


def picture_of(diagram: str) -> Path:
    """Return the path of the picture of a diagram, which is named after its text: none shows another one."""
    return PICTURES / f"{hashlib.sha256(diagram.encode()).hexdigest()[:12]}.svg"


def _of_model(name: str) -> str:
    drawing = schema_of(load_model(name).described().spaces).svg(box_link, line_link)
    return f'<div class="kw-diagram" tabindex="0" role="region" aria-label="Entity diagram">{drawing}</div>'


def _picture(diagram: str, page: Path) -> str:
    picture = picture_of(diagram)
    if not picture.is_file():
        raise ValueError(f"a diagram of {page.name} has no picture. Run `make pictures`.")
    path = Path(os.path.relpath(picture, page.parent)).as_posix()
    return f'<img class="kw-flowchart" alt="The diagram of this page" src="{path}">'
