"""The result of proving a keyspace: proofs and findings, as text and as JSON data."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any, NamedTuple, TypeVar

from keywright.keyspace import Finding, Keyspace
from keywright.keyspace.proof.rules import PROOFS, keyspaces_share_no_name
from keywright.tools.model import Model

__all__ = ["CheckReport", "Proof", "prove", "prove_model"]

T = TypeVar("T")


class Proof(NamedTuple):
    """One property to prove, and the counterexamples that were found."""

    name: str
    statement: str
    findings: tuple[Finding, ...]

    @property
    def proved(self) -> bool:
        return not any(finding.severity == "error" for finding in self.findings)


class CheckReport(NamedTuple):
    """The proofs of a keyspace, or of several together, and the size of its declaration."""

    keyspace: str
    keys: int
    relations: int
    proofs: tuple[Proof, ...]

    @property
    def proved(self) -> bool:
        return all(proof.proved for proof in self.proofs)

    @property
    def findings(self) -> tuple[Finding, ...]:
        return tuple(finding for proof in self.proofs for finding in proof.findings)

    @property
    def errors(self) -> tuple[Finding, ...]:
        """The findings without the notes."""
        return tuple(finding for finding in self.findings if finding.severity == "error")

    def as_data(self) -> dict[str, Any]:
        return {
            "keyspace": self.keyspace,
            "proved": self.proved,
            "keys": self.keys,
            "relations": self.relations,
            "proofs": [
                {"name": proof.name, "statement": proof.statement, "proved": proof.proved}
                for proof in self.proofs
            ],
            "findings": [finding._asdict() for finding in self.findings],
        }

    def as_text(self) -> str:
        return "\n".join(self._lines())

    def _lines(self) -> Iterator[str]:
        yield f"{self.keyspace}: {_count(self.keys, 'key')}, {_count(self.relations, 'relation')}"
        yield ""
        for proof in self.proofs:
            yield f"  {'proved' if proof.proved else 'FAILED'}  {proof.name}: {proof.statement}"
        notes = [finding for finding in self.findings if finding.severity != "error"]
        for title, findings in (("finding", self.errors), ("note", notes)):
            if findings:
                yield f"\n{_count(len(findings), title)}:"
            for finding in findings:
                yield from _described(finding)
        yield f"\n{self.keyspace} is {'proved' if self.proved else 'not proved'}."


def prove(space: Keyspace) -> CheckReport:
    """Run every proof of `keywright.keyspace.proof.rules.check`. Return the findings of each."""
    proofs = tuple(_proof(run, space) for run in PROOFS)
    return CheckReport(space.name, len(space.keys), len(space.links), proofs)


def prove_model(model: Model, prefix: str | None = None) -> list[CheckReport]:
    """Prove each keyspace of a model and, of several, their union, with the prefixes they are bound to."""
    reports = [prove(space) for space in model.spaces]
    if len(reports) > 1:
        bindings = [space.bind(prefix=prefix) for space in model.spaces]
        names = ", ".join(report.keyspace for report in reports)
        reports.append(
            CheckReport(
                f"the union of {names}",
                sum(report.keys for report in reports),
                sum(report.relations for report in reports),
                (_proof(keyspaces_share_no_name, bindings),),
            )
        )
    return reports


def _proof(run: Callable[[T], Iterable[Finding]], subject: T) -> Proof:
    return Proof(run.__name__.replace("_", " "), _statement(run.__doc__), tuple(run(subject)))


def _described(finding: Finding) -> Iterator[str]:
    yield f"\n  {finding.template}"
    yield f"    {finding.reason} [{finding.code}]"
    if finding.counterexample:
        yield f"    for example: {finding.counterexample}"


def _statement(docstring: str | None) -> str:
    return (docstring or "").partition("\n")[0]


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"
