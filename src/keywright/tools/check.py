"""The result of proving a keyspace: proofs and findings, as text and as JSON data."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, NamedTuple, TypeVar

from keywright.keyspace import Binding, Finding, Keyspace
from keywright.keyspace.proof.rules import PROOFS, keyspaces_share_no_name
from keywright.tools.layout import Block, Line, Meaning, plain
from keywright.tools.model import Model

__all__ = ["CheckReport", "Proof", "prove", "prove_model", "prove_union"]

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
        return plain(self.blocks())

    def blocks(self) -> Iterator[Block]:
        """Yield the report for people: the proofs, the findings, the notes and the verdict."""
        yield Line(
            Meaning.NAME(self.keyspace),
            f": {_count(self.keys, 'key')}, {_count(self.relations, 'relation')}",
        )
        yield ""
        for proof in self.proofs:
            verdict = Meaning.OK("proved") if proof.proved else Meaning.ERROR("FAILED")
            yield Line("  ", verdict, "  ", Meaning.HEADING(proof.name), f": {proof.statement}", hang=10)
        notes = [finding for finding in self.findings if finding.severity != "error"]
        for title, findings, meaning in (
            ("finding", self.errors, Meaning.ERROR),
            ("note", notes, Meaning.WARNING),
        ):
            if findings:
                yield ""
                yield Line(meaning(f"{_count(len(findings), title)}:"))
            for finding in findings:
                yield from _described(finding)
        yield ""
        verdict = Meaning.OK("proved") if self.proved else Meaning.ERROR("not proved")
        yield Line(f"{self.keyspace} is ", verdict, ".")


def prove(space: Keyspace) -> CheckReport:
    """Run every proof of `keywright.keyspace.proof.rules.check`. Return the findings of each."""
    proofs = tuple(_proof(run, space) for run in PROOFS)
    return CheckReport(space.name, len(space.keys), len(space.links), proofs)


def prove_model(model: Model, prefix: str | None = None) -> list[CheckReport]:
    """Prove each keyspace of a model and, of several, their union, with the prefixes they are bound to."""
    reports = [prove(space) for space in model.spaces]
    if len(reports) > 1:
        reports.append(prove_union([space.bind(prefix=prefix) for space in model.spaces]))
    return reports


def prove_union(bindings: Sequence[Binding]) -> CheckReport:
    """Prove that no two of several keyspaces make the same name."""
    spaces = [binding.space for binding in bindings]
    return CheckReport(
        f"the union of {', '.join(space.name for space in spaces)}",
        sum(len(space.keys) for space in spaces),
        sum(len(space.links) for space in spaces),
        (_proof(keyspaces_share_no_name, bindings),),
    )


def _proof(run: Callable[[T], Iterable[Finding]], subject: T) -> Proof:
    return Proof(run.__name__.replace("_", " "), _statement(run.__doc__), tuple(run(subject)))


def _described(finding: Finding) -> Iterator[Block]:
    yield ""
    yield Line("  ", Meaning.NAME(finding.template), hang=4)
    yield Line(f"    {finding.reason} ", Meaning.MUTED(f"[{finding.code}]"))
    if finding.counterexample:
        yield Line("    ", Meaning.MUTED("for example:"), f" {finding.counterexample}")


def _statement(docstring: str | None) -> str:
    return (docstring or "").partition("\n")[0]


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"
