"""References and relations as statements of the module, each with its evidence as a comment."""

from __future__ import annotations

from typing import NamedTuple

from keywright.tools.infer.links.candidates import Candidate
from keywright.tools.infer.links.paths import Path, hint_type

__all__ = ["Link", "guess", "reference", "reference_name", "relation"]

_CONVERSIONS = {
    ("str", "int"): "int({})",
    ("int", "str"): "str({})",
    ("str", "UUID"): "UUID({})",
    ("UUID", "str"): "str({})",
}
_WIDTH = 110


class Link(NamedTuple):
    """A statement of the module, the names that it needs from `keywright`, and the classes it joins."""

    text: str
    names: tuple[str, ...]
    edges: tuple[tuple[str, str], ...] = ()
    """The names of the classes, source and target; none for a guess."""


def reference(candidate: Candidate, evidence: str) -> Link:
    """Return the statement that declares a reference, which is not required."""
    source, target = candidate.source.key.name, candidate.target.key.name
    ids = _ids(candidate)
    name = reference_name(candidate.source.path)
    arguments = [source, target, ids, f'name="{name}"', "required=False"]
    line = f"refers({', '.join(arguments)})"
    if len(line) > _WIDTH:
        line = "refers(\n" + "".join(f"    {each},\n" for each in arguments) + ")"
    return Link(f"# {evidence}\n{line}", ("refers",), ((source, target),))


def reference_name(path: Path) -> str:
    """Return the name of the reference of ids in a place."""
    return path.attribute or path.noun


def relation(kind: str, one: str, other: str, evidence: str) -> Link:
    """Return the statement that declares a relation, or an index."""
    option = "by" if kind == "index" else "inverse"
    line = f"{kind}({one}, {option}={other})"
    if len(line) > _WIDTH:
        line = f"{kind}(\n    {one},\n    {option}={other},\n)"
    return Link(f"# {evidence}\n{line}", (kind,), ((one, other), (other, one)))


def guess(text: str) -> Link:
    return Link(f"# guess: {text}", ())


def _ids(candidate: Candidate) -> str:
    """Return the function from a key and its value to ids, as source text."""
    each, clause = _each(candidate.source.path)
    whole_id = each
    if candidate.skipped:
        each = f"{each}[{candidate.skipped}:]"
    target = candidate.target.key
    held = _held(candidate)
    item = _CONVERSIONS.get((candidate.source.path.type, held), "{}").format(each)
    shared = ", ".join(f"key.{name}" for name in candidate.shared)
    collection = target.redis_type in ("set", "zset") or target.kind.startswith("Map")
    if candidate.within:
        item = f"({shared or '()'}, {item})"
    elif collection:
        whole = f"({shared}, {item})" if shared else item
        item = f"({whole}, None)"
    elif shared:
        item = f"({shared}, {item})"
    uses_key = bool(shared) or "key." in each
    first = "key" if uses_key else "_"
    second = "_" if candidate.source.path.form == "variable" else "found"
    if not clause:
        return f"lambda {first}, {second}: [{item}]"
    if clause == f"for {item} in found" and item == whole_id:
        return f"lambda {first}, {second}: found"
    return f"lambda {first}, {second}: ({item} {clause})"


def _held(candidate: Candidate) -> str:
    """Return the Python type that the target takes: of its last variable, or of its members."""
    target = candidate.target.key
    if candidate.within:
        return "int" if target.kind.partition("[")[2].startswith(("int", "U64", "Snowflake")) else "str"
    return hint_type(list(target.declared.variables.values())[-1].hint) or "str"


def _each(path: Path) -> tuple[str, str]:
    """Return the expression of one id, and the clause that yields all; no clause if there is one id."""
    match path.form:
        case "variable":
            return f"key.{path.attribute}", ""
        case "members" | "fields":
            return "each", "for each in found"
        case "scored":
            return "each", "for each, _ in found"
        case "value":
            return "found", ""
        case "mapped":
            return "found[each]", "for each in found"
        case "member" if path.many:
            empty = " or ()" if path.optional else ""
            return "each", f"for each in found.{path.attribute}{empty}"
        case "member":
            if not path.optional:
                return f"found.{path.attribute}", ""
            return "each", f"for each in (found.{path.attribute},) if each is not None"
    inside = f"found[field].{path.attribute}"
    if path.many:
        empty = " or ()" if path.optional else ""
        return "each", f"for field in found for each in {inside}{empty}"
    condition = f" if {inside} is not None" if path.optional else ""
    return inside, f"for field in found{condition}"
