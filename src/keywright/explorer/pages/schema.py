"""The schema: an entity diagram with live counts and findings, every tie in words, and the proof."""

from __future__ import annotations

import asyncio
from typing import Any, NamedTuple
from urllib.parse import quote

from markupsafe import Markup
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response

from keywright.explorer.atlas import template_url
from keywright.explorer.explorer import Explorer, explorer_of, page
from keywright.explorer.page_templates import shortened
from keywright.explorer.schema import Found, Older
from keywright.tools.check import CheckReport
from keywright.tools.describe.description import SpaceDescription
from keywright.tools.diagram.entities import Entity, Facts, Schema, Tie
from keywright.tools.diagram.layout import COLUMNS, ON_A_PHONE

__all__ = ["schema"]

MOST_DRAWN = 80
"""A page of more templates has no diagram; those of its keyspaces have."""
_SIGNS = {"error": "✖", "warning": "▲"}


class Summary(NamedTuple):
    """One keyspace on the page of all."""

    space: SpaceDescription
    url: str
    templates: int
    relations: int
    references: int
    keys: int
    findings: int
    report: CheckReport | None


class Row(NamedTuple):
    """A tie in the table below the diagram."""

    tie: Tie
    anchor: str
    source: tuple[str, str]
    """The name and the URL of the template."""
    target: tuple[str, str]


async def schema(request: Request) -> Response:
    explorer = explorer_of(request)
    book = explorer.schema
    asked = request.path_params.get("space", "")
    spaces = [each for each in explorer.atlas.by_space if asked in ("", each.name)]
    if not spaces:
        raise HTTPException(404, "The explored keyspaces have no such name.")
    shown = book.schema.only(asked) if asked else book.schema
    reports = await book.proof()
    proof = None if reports is None else _about(reports, [each.name for each in spaces], whole=not asked)
    drawings = None
    if len(shown.entities) <= MOST_DRAWN:  # in a thread: the first layout takes a moment
        drawings = await asyncio.to_thread(_drawings, explorer, shown, asked)
    values: dict[str, Any] = {
        "space": asked,
        "url": schema_url(asked),
        "stamp": _stamp(explorer),
        "drawings": drawings,
        "proof": proof,
    }
    part = request.query_params.get("part")
    if part == "diagram":
        if request.query_params.get("seen") == values["stamp"]:
            return Response(status_code=204)
        return page(request, "schema_diagram.html", **values)
    if part == "proof":
        return page(request, "schema_proof.html", **values)
    rows = [_row(explorer, tie) for tie in shown.ties]
    kept = {each.name for each in spaces}
    older = [each for each in book.older() if each.identity.partition("@")[2] in kept]
    return page(
        request,
        "schema.html",
        _document(explorer, shown, proof, older),
        **values,
        title=spaces[0].name if asked else "Schema",
        figures=_figures(shown, sum(_keys(explorer, each) for each in shown.entities)),
        description=spaces[0].description if len(spaces) == 1 else "",
        summaries=[_summary(explorer, each, reports) for each in explorer.atlas.by_space],
        templates=len(shown.entities),
        rows=rows,
        older=older,
    )


def _figures(shown: Schema, keys: int) -> list[tuple[int, str]]:
    references = sum(tie.sort == "reference" for tie in shown.ties)
    relations = len({tie.name for tie in shown.ties if tie.link is not None and tie.name == tie.link.name})
    return [
        (len(shown.entities), "template"),
        (relations, "relation"),
        (references, "reference"),
        (keys, "key"),
    ]


def schema_url(space: str) -> str:
    return f"/schema/{quote(space, safe='')}" if space else "/schema"


def _about(reports: list[CheckReport], names: list[str], *, whole: bool) -> list[CheckReport]:
    """Return the reports of some keyspaces; of all, that of their union too."""
    return reports if whole else [each for each in reports if each.keyspace in names]


def _stamp(explorer: Explorer) -> str:
    """Return the version of the counts on the diagram, by which polling detects newer ones."""
    return f"{explorer.surveyor.latest.finished}-{explorer.auditing.finished}-{explorer.auditing.total}"


def _drawings(explorer: Explorer, shown: Schema, space: str) -> list[Markup]:
    """Return the diagram for wide screens, and in one column for phones."""

    def facts(entity: Entity) -> Facts:
        keys, found = _keys(explorer, entity), _found(explorer, entity)
        badges = [(f"{keys:,}" if keys < 1_000_000 else shortened(keys), "count")]
        if found.number:
            badges.append((f"{_SIGNS[found.level]} {found.number}", found.level))
        style = "foreign" if space and entity.space.name != space else "" if keys else "empty"
        return Facts(template_url(entity.space.name, entity.key.name), style, tuple(badges))

    return [
        Markup(shown.svg(facts, lambda tie: f"#{_anchor(explorer, tie)}", columns=columns))
        for columns in (COLUMNS, ON_A_PHONE)
    ]


def _keys(explorer: Explorer, entity: Entity) -> int:
    sheet = explorer.atlas.named(entity.space.name, entity.key.name)
    return 0 if sheet is None else explorer.surveyor.latest.of(sheet.kind).keys


def _found(explorer: Explorer, entity: Entity) -> Found:
    sheet = explorer.atlas.named(entity.space.name, entity.key.name)
    return Found() if sheet is None else explorer.schema.found(sheet.kind)


def _anchor(explorer: Explorer, tie: Tie) -> str:
    return f"tie-{explorer.schema.schema.ties.index(tie)}"


def _row(explorer: Explorer, tie: Tie) -> Row:
    ends = [each.partition("@") for each in (tie.source, tie.target)]
    source, target = ((name, template_url(space, name)) for name, _, space in ends)
    return Row(tie, _anchor(explorer, tie), source, target)


def _summary(explorer: Explorer, space: SpaceDescription, reports: list[CheckReport] | None) -> Summary:
    latest = explorer.surveyor.latest
    sheets = explorer.atlas.by_space[space]
    return Summary(
        space,
        schema_url(space.name),
        len(space.keys),
        len(space.links),
        len(space.references),
        sum(latest.of(sheet.kind).keys for sheet in sheets),
        sum(explorer.schema.found(sheet.kind).number for sheet in sheets),
        next((each for each in reports or () if each.keyspace == space.name), None),
    )


def _document(
    explorer: Explorer, shown: Schema, proof: list[CheckReport] | None, older: list[Older]
) -> dict[str, Any]:
    return {
        "keyspaces": [
            {"name": each.name, "description": each.description, "url": schema_url(each.name)}
            for each in explorer.atlas.by_space
        ],
        "templates": [
            {
                "keyspace": each.space.name,
                "name": each.key.name,
                "template": each.key.full_template,
                "kind": each.key.kind,
                "url": template_url(each.space.name, each.key.name),
                "keys": _keys(explorer, each),
                "findings": None if explorer.auditing.tally is None else _found(explorer, each).number,
            }
            for each in shown.entities
        ],
        "lines": [
            {
                "sort": tie.sort,
                "name": tie.name,
                "from": _end(tie.source),
                "to": _end(tie.target),
                "required": tie.required if tie.sort == "reference" else None,
                "meaning": tie.words,
            }
            for tie in shown.ties
        ],
        "proof": None if proof is None else [each.as_data() for each in proof],
        "older_versions": [
            {
                **dict(zip(("name", "keyspace"), each.identity.split("@", 1), strict=True)),
                "version": each.version,
                "former_template": each.place or None,
                "keys": each.found,
                "share": each.share,
            }
            for each in older
        ],
    }


def _end(identity: str) -> dict[str, str]:
    name, _, space = identity.partition("@")
    return {"keyspace": space, "name": name}
