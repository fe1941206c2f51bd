"""Prometheus alert rules from declared expiries and given budgets, on the metrics of redis_exporter."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from keywright.tools.audit.budgets import Budget, check_budgets
from keywright.tools.describe.words import duration
from keywright.tools.generators.generator import Generation, Generator
from keywright.tools.generators.key_groups import KeyGroup, key_groups
from keywright.tools.generators.output import as_yaml
from keywright.tools.generators.promql import matching

__all__ = ["GENERATOR"]

_COUNT = "redis_key_group_count"
_BYTES = "redis_key_group_memory_usage_bytes"


def _generate(generation: Generation) -> str:
    groups = key_groups(generation.model)
    templates = {group.template for group in groups}
    check_budgets(generation.budgets, templates)
    rules = [
        _undeclared(),
        *_unexpiring(groups),
        *(_over_budget(budget, groups) for budget in generation.budgets),
    ]
    name = f"keywright-{generation.model.name}"
    return as_yaml({"groups": [{"name": name, "rules": rules}]})


def _undeclared() -> dict[str, Any]:
    return _rule(
        "UndeclaredKeys",
        f'sum by (instance, db) ({_COUNT}{{key_group="unclassified"}}) > 0',
        "{{ $value }} keys of {{ $labels.db }} belong to no declared template.",
        "keywright audit shows them.",
    )


def _unexpiring(groups: list[KeyGroup]) -> Iterator[dict[str, Any]]:
    """Yield the rule about keys that lost their expiry: more have none than the templates without one."""
    lasting = {group.name for group in groups if not _always_expires(group)}
    expiring = [group for group in groups if group.name not in lasting]
    if not expiring:
        return
    longest = max(group.key.declaration.expiry.longest_ms or 0 for group in expiring)  # type: ignore[union-attr]
    others = matching("key_group", sorted({group.name for group in expiring}), negated=True)
    yield _rule(
        "KeysWithoutExpiry",
        "sum by (instance, db) (redis_db_keys - redis_db_keys_expiring) > on (instance, db) "
        f"(sum by (instance, db) ({_COUNT}{{{others}}}) or sum by (instance, db) (redis_db_keys) * 0)",
        "{{ $labels.db }} has keys without an expiry that a template gives them.",
        f"Of {len({group.template for group in expiring})} templates every key expires, after "
        f"{duration(longest) if longest else 'a time'} at most. keywright audit shows keys without one.",
    )


def _always_expires(group: KeyGroup) -> bool:
    expiry = group.key.declaration.expiry
    return expiry is not None and expiry.by_kind and not callable(expiry.moment)


def _over_budget(budget: Budget, groups: list[KeyGroup]) -> dict[str, Any]:
    names = sorted({group.name for group in groups if budget.template in ("*", group.template)})
    what = "All keys of the model take" if budget.template == "*" else f"{budget.template} takes"
    return _rule(
        "OverBudget",
        f"sum by (instance) ({_BYTES}{{{matching('key_group', names)}}}) > {budget.most_bytes}",
        f"{what} {{{{ $value | humanize1024 }}}}B; the budget is {budget.most_bytes} bytes.",
        "keywright stats shows the largest keys.",
        template=budget.template,
    )


def _rule(alert: str, expression: str, summary: str, remedy: str, **labels: str) -> dict[str, Any]:
    return {
        "alert": alert,
        "expr": expression,
        "for": "15m",
        "labels": {"severity": "warning", **labels},
        "annotations": {"summary": summary, "description": remedy},
    }


GENERATOR = Generator(
    "prometheus",
    "Prometheus alert rules: undeclared keys, keys without their expiry, and templates over --max-bytes",
    _generate,
    takes_budgets=True,
)
