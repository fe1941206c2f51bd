"""The result of proving a keyspace: proofs and findings, as text and as JSON data."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

from keywright.keyspace import Finding, Keyspace
from keywright.keyspace.proof.rules import PROOFS

__all__ = ["CheckReport", "Proof", "prove"]


class Proof(NamedTuple):
    """One property to prove, and the counterexamples that were found."""

    name: str
    statement: str
    findings: tuple[Finding, ...]

    @property
    def proved(self) -> bool:
        return not any(finding.severity == "error" for finding in self.findings)


class CheckReport(NamedTuple):
    """The proofs of a keyspace, and the size of its declaration."""

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
        errors = [finding for finding in self.findings if finding.severity == "error"]
        notes = [finding for finding in self.findings if finding.severity != "error"]
        for title, findings in (("finding", errors), ("note", notes)):
            if findings:
                yield f"\n{_count(len(findings), title)}:"
            for finding in findings:
                yield from _described(finding)
        yield f"\n{self.keyspace} is {'proved' if self.proved else 'not proved'}."


def prove(space: Keyspace) -> CheckReport:
    """Run every proof of `keywright.keyspace.proof.rules.check`. Return the findings of each."""
    proofs = tuple(
        Proof(run.__name__.replace("_", " "), _statement(run.__doc__), tuple(run(space))) for run in PROOFS
    )
    return CheckReport(space.name, len(space.keys), len(space.links), proofs)


def _described(finding: Finding) -> Iterator[str]:
    yield f"\n  {finding.template}"
    yield f"    {finding.reason} [{finding.code}]"
    if finding.counterexample:
        yield f"    for example: {finding.counterexample}"


def _statement(docstring: str | None) -> str:
    return (docstring or "").partition("\n")[0]


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"
