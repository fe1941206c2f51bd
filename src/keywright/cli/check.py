"""`keywright check`: the proofs of a declaration."""

from __future__ import annotations

from enum import Enum
from typing import Annotated

import typer

from keywright.cli.output import as_json, echo, echo_json
from keywright.cli.targets import ModelName, PrefixOption
from keywright.errors import DeclarationError
from keywright.keyspace import Finding
from keywright.tools.check import CheckReport, Proof, prove_model
from keywright.tools.plugins import load_model

__all__ = ["check"]


class CheckFormat(Enum):
    TEXT = "text"
    JSON = "json"


def check(
    model: ModelName,
    prefix: PrefixOption = None,
    output: Annotated[
        CheckFormat, typer.Option("--format", help="How to print: for people, or for programs.")
    ] = CheckFormat.TEXT,
) -> None:
    """Prove that the keyspaces of a model are sound, alone and in one database. Needs no server.

    Prints the proofs, or each finding with its template, the reason and a counterexample.
    Exits with 0 when everything is proved, 1 when there are findings, 2 when no keyspace can be loaded.

    Examples:
        keywright check shop.schema:shop
        keywright check shop.schema:shop,shop.schema:sessions --format json
    """
    try:
        reports = prove_model(load_model(model), prefix)
    except DeclarationError as error:
        reports = [_refused(model, error)]
    if output is CheckFormat.TEXT:
        for number, report in enumerate(reports):
            echo(*([""] if number else []), *report.blocks())
    elif len(reports) == 1:
        echo_json(as_json(reports[0].as_data()))
    else:
        *alone, union = [report.as_data() for report in reports]
        echo_json(as_json({"model": model, "keyspaces": alone, "union": union}))
    if not all(report.proved for report in reports):
        raise typer.Exit(1)


def _refused(space: str, error: DeclarationError) -> CheckReport:
    """Return a report with one finding for a declaration that raised an error at import."""
    finding = Finding("refused-declaration", error.subject, f"{error.reason}. {error.remedy}")
    return CheckReport(space, 0, 0, (Proof("declarations hold", "Every declaration is valid.", (finding,)),))
