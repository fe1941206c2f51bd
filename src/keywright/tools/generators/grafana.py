"""A Grafana dashboard of the metrics of redis_exporter: keys and memory by template, and streams."""

from __future__ import annotations

from typing import Any

from keywright.keyspace import Key
from keywright.tools.generators.generator import Generation, Generator
from keywright.tools.generators.key_groups import KeyGroup, key_groups
from keywright.tools.generators.output import as_json
from keywright.tools.generators.promql import selector

__all__ = ["GENERATOR"]

SCHEMA_VERSION = 39
_HEIGHT = 8
_COUNT = "redis_key_group_count"
_BYTES = "redis_key_group_memory_usage_bytes"
_PENDING = "redis_stream_group_messages_pending"
_SOURCE = {"type": "prometheus", "uid": "${datasource}"}


def _generate(generation: Generation) -> str:
    model = generation.model
    panels = [
        _panel("Keys by group", _sum(_COUNT, selector(), by="key_group"), "{{key_group}}"),
        _panel(
            "Memory by group",
            _sum(_BYTES, selector(), by="key_group"),
            "{{key_group}}",
            unit="bytes",
        ),
        _panel(
            "Keys that no template declares",
            _sum(_COUNT, selector(key_group="unclassified")),
            "unclassified",
        ),
    ]
    panels += [panel for group in _by_template(key_groups(model)) for panel in _of_template(*group)]
    described = [space.description for space in generation.described.spaces]
    return as_json(
        {
            "title": f"Keyspace {model.name}",
            "uid": f"keywright-{_slug(model.name)}"[:40],
            "description": " ".join(described),
            "tags": ["keywright", "redis"],
            "schemaVersion": SCHEMA_VERSION,
            "editable": True,
            "refresh": "1m",
            "time": {"from": "now-24h", "to": "now"},
            "timezone": "utc",
            "templating": {"list": _variables()},
            "panels": list(_placed(panels)),
        }
    )


def _by_template(groups: list[KeyGroup]) -> list[tuple[str, list[KeyGroup]]]:
    """Return the groups of each class with its template."""
    found: dict[type[Key], list[KeyGroup]] = {}
    for group in groups:
        found.setdefault(group.key, []).append(group)
    return [(together[0].template, together) for together in found.values()]


def _of_template(template: str, groups: list[KeyGroup]) -> list[dict[str, Any]]:
    key = groups[0].key
    names = [group.name for group in groups]
    chosen = selector(key_group=names)
    doc = key.__dict__.get("__doc__") or ""
    panels = [
        _panel(
            template,
            _sum(_COUNT, chosen),
            "keys",
            description=" ".join(doc.split()),
            more=[(_sum(_BYTES, chosen), "bytes")],
        )
    ]
    if key.kind == "stream":
        panels.append(
            _panel(
                f"{template}: pending",
                _sum(_PENDING, selector(), by="stream, group"),
                "{{stream}} {{group}}",
            )
        )
    return panels


def _sum(metric: str, matchers: str, *, by: str = "") -> str:
    return f"sum {f'by ({by}) ' if by else ''}({metric}{{{matchers}}})"


def _panel(
    title: str,
    expression: str,
    legend: str,
    *,
    unit: str = "short",
    description: str = "",
    more: list[tuple[str, str]] | None = None,
) -> dict[str, Any]:
    queries = [(expression, legend), *(more or [])]
    found: dict[str, Any] = {
        "type": "timeseries",
        "title": title,
        "description": description,
        "datasource": _SOURCE,
        "targets": [
            {"refId": chr(ord("A") + number), "datasource": _SOURCE, "expr": query, "legendFormat": name}
            for number, (query, name) in enumerate(queries)
        ],
        "fieldConfig": {"defaults": {"unit": unit, "min": 0}, "overrides": []},
        "options": {"legend": {"displayMode": "list", "placement": "bottom"}},
    }
    if more:
        found["fieldConfig"]["overrides"] = [
            {
                "matcher": {"id": "byName", "options": "bytes"},
                "properties": [
                    {"id": "unit", "value": "bytes"},
                    {"id": "custom.axisPlacement", "value": "right"},
                ],
            }
        ]
    return found


def _placed(panels: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [
        {
            "id": number + 1,
            **panel,
            "gridPos": {"h": _HEIGHT, "w": 12, "x": 12 * (number % 2), "y": _HEIGHT * (number // 2)},
        }
        for number, panel in enumerate(panels)
    ]


def _variables() -> list[dict[str, Any]]:
    return [
        {"name": "datasource", "type": "datasource", "query": "prometheus", "label": "Data source"},
        {
            "name": "instance",
            "type": "query",
            "label": "Server",
            "datasource": _SOURCE,
            "query": "label_values(redis_up, instance)",
            "refresh": 2,
            "includeAll": True,
            "multi": True,
        },
    ]


def _slug(text: str) -> str:
    return "".join(char if char.isascii() and char.isalnum() else "-" for char in text)


GENERATOR = Generator(
    "grafana",
    "a Grafana dashboard with keys and memory by template, of the metrics of redis_exporter",
    _generate,
)
