"""`keywright explain`: what a finding means, how it arises and what repair does."""

from __future__ import annotations

import sys
from enum import Enum
from typing import Annotated, ClassVar

import typer

from keywright.cli.output import as_json, echo, echo_json
from keywright.cli.terminal import help_width, rich_console
from keywright.tools.finding_pages import FindingPage, all_pages, page_named
from keywright.tools.layout import Column, Line, Meaning, Table

__all__ = ["explain"]


class ExplainFormat(Enum):
    TEXT = "text"
    JSON = "json"


def explain(
    codes: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="CODE",
            help="Codes of an audit, as KW402, or their words; codes and rules of a check.",
            show_default=False,
        ),
    ] = None,
    form: Annotated[
        ExplainFormat, typer.Option("--format", help="How to print: for people, or for programs.")
    ] = ExplainFormat.TEXT,
) -> None:
    """Explain findings: what each means, how it arises and what repair does. Without a CODE, list all.

    Exits with 2 when there is no such finding.

    Examples:
        keywright explain
        keywright explain KW402
        keywright explain dangling missing-inverse
    """
    pages = [page_named(code) for code in codes or ()] or list(all_pages())
    if form is ExplainFormat.JSON:
        echo_json(as_json([page.as_data() for page in pages]))
    elif codes:
        _print(pages)
    else:
        _list(pages)


def _print(pages: list[FindingPage]) -> None:
    from rich.console import Console, ConsoleOptions, RenderResult
    from rich.markdown import Heading, Markdown, MarkdownElement

    class PlainHeading(Heading):
        """A heading at the left, without a box."""

        def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
            self.text.justify = "left"
            yield self.text

    class Page(Markdown):
        elements: ClassVar[dict[str, type[MarkdownElement]]] = {
            **Markdown.elements,
            "heading_open": PlainHeading,
        }

    console = rich_console(sys.stdout, help_width(sys.stdout))
    for page in pages:
        console.print(Page(page.text, justify="left"))
        console.print()


def _list(pages: list[FindingPage]) -> None:
    for source in ("audit", "check"):
        rows = [
            [page.code, *([page.word] if source == "audit" else []), page.title]
            for page in pages
            if page.source == source
        ]
        words = [Column("word")] if source == "audit" else []
        columns = [Column("code", meaning=Meaning.NAME), *words, Column("meaning", flexible=True)]
        echo(Line(Meaning.HEADING(f"Findings of keywright {source}:")), "", Table(columns, rows), "")
