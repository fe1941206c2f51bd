"""Budgets: limits of the bytes of a template. An audit can fail when one is exceeded."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple

from keywright.errors import UsageError, did_you_mean
from keywright.tools.audit.findings import Finding
from keywright.tools.audit.tally import Tally

__all__ = ["Budget", "check_budgets", "over_budget", "parse_budget"]

_UNITS = {"": 1, "k": 1 << 10, "m": 1 << 20, "g": 1 << 30, "t": 1 << 40}
_FORM = re.compile(
    r"(?P<template>.+)=(?P<number>[0-9]+(?:\.[0-9]+)?)\s*(?P<unit>[kmgt]?)(?:i?b)?", re.IGNORECASE
)


class Budget(NamedTuple):
    """The limit of the bytes of one template, in all keyspaces that have it; `*` is all of them together."""

    template: str
    most_bytes: int


def parse_budget(text: str) -> Budget:
    """Return the budget of a text like `messages:<message>=512MB`, in powers of 1024."""
    found = _FORM.fullmatch(text.strip())
    if found is None:
        raise UsageError(f"{text!r} is not a budget. Write TEMPLATE=SIZE, as in 'messages:<message>=512MB'.")
    return Budget(found["template"], round(float(found["number"]) * _UNITS[found["unit"].lower()]))


def check_budgets(budgets: Iterable[Budget], templates: Iterable[str]) -> None:
    """Raise UsageError if a budget is of a template that is not declared."""
    declared = {"*", *templates}
    for template, _ in budgets:
        if template not in declared:
            known = ", ".join(sorted(declared))
            near = did_you_mean(template, declared)
            raise UsageError(
                f"the budget of {template!r} does not name a template.{near} Use one of {known}."
            )


def over_budget(budgets: Iterable[Budget], tally: Tally, sources: Mapping[str, str]) -> Iterator[Finding]:
    """Yield a finding for each budget that is exceeded. `sources` has the template of each row."""
    for template, most in budgets:
        measures = [m for name, m in tally.templates.items() if template in ("*", sources.get(name))]
        used = sum(measure.total_bytes or 0 for measure in measures)
        if used > most:
            yield Finding("KW501", template, b"", f"takes {used} bytes, the budget is {most}")
