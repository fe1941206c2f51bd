"""Additions to a declaration that exists: templates for the names that it does not have."""

from __future__ import annotations

import ast
import importlib
import importlib.util
import os
import shutil
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from types import ModuleType
from typing import NamedTuple

from keywright.errors import KeywrightError, UsageError
from keywright.keyspace import Key, Keyspace
from keywright.tools.infer.facts import Facts
from keywright.tools.infer.links import Existing, Link, declared_keys, existing_links, find_links
from keywright.tools.infer.module import RESERVED, KeyDeclaration, addition_text, key_declarations
from keywright.tools.infer.names import NameSample
from keywright.tools.infer.patterns import Observation
from keywright.tools.infer.programs import Recognition, names_of_programs, recognise, recognised_lines
from keywright.tools.infer.sources import survey
from keywright.tools.infer.structs import Structs
from keywright.tools.infer.templates import declared_templates, known_templates
from keywright.tools.infer.tree import patterns_of
from keywright.tools.infer.words import Words
from keywright.tools.jobs import JobPlan
from keywright.tools.pace import GENTLE, Pace, WalkProgress
from keywright.tools.program import Program
from keywright.tools.readable import ReadableDatabase

__all__ = [
    "Addition",
    "Target",
    "append_to",
    "drafted_addition",
    "module_at",
    "names_after",
    "server_addition",
    "targets_in",
]


class Addition(NamedTuple):
    """The text to append, empty if nothing is new, and how many names have a template now."""

    text: str
    names: int
    known: int
    added: int
    outside: int
    templates: int
    programs: list[Recognition]
    links: int = 0
    has_fallback: bool = False

    @property
    def coverage(self) -> list[str]:
        """Lines for people: what was matched, what is new, what remains and why."""
        lines = [f"{self.known:,} of {self.names:,} keys were declared; {self.templates} new templates"]
        if self.added:
            lines.append(f"{self.added:,} keys match the new templates")
        if self.links:
            lines.append(f"{self.links:,} references and relations of the new templates")
        lines += recognised_lines(self.programs)
        if self.outside:
            lines.append(f"{self.outside:,} keys are outside the prefix of the keyspace")
        claimed = sum(each.keys for each in self.programs)
        rest = self.names - self.known - self.added - self.outside - claimed
        if rest > 0:
            where = "the fallback of the module has them" if self.has_fallback else "they stay undeclared"
            lines.append(f"{rest:,} keys have no structure that repeats, or too long names: {where}")
        return lines


def module_at(path: Path) -> ModuleType:
    """Import a module from its file, which runs it. Raise UsageError if that fails."""
    made = importlib.util.spec_from_file_location(path.stem, path)
    if not path.is_file() or made is None or made.loader is None:
        raise UsageError(f"{path} is not a Python module. Name the file that --output wrote.")
    module = importlib.util.module_from_spec(made)
    try:
        made.loader.exec_module(module)
    except KeywrightError:
        raise
    except Exception as error:
        raise UsageError(
            f"{path} cannot be imported: {type(error).__name__}: {error}. Correct it."
        ) from error
    return module


class Target(NamedTuple):
    """A keyspace of a module, the variable that holds it, and the classes of the module."""

    variable: str
    space: Keyspace
    classes: dict[str, type[Key]]

    @property
    def database(self) -> int | None:
        """The number of the database that the keyspace declares, or None."""
        return self.space.database


class AdditionDraft(NamedTuple):
    """The templates that a module lacks, before they are written."""

    target: Target
    sample: NameSample
    keys: list[KeyDeclaration]
    known: list[KeyDeclaration]
    """The classes of the module, as ends of links."""
    structs: Structs
    declared: float
    outside: float
    programs: list[Recognition]

    @property
    def existing(self) -> Existing:
        """What the module has."""
        return existing_links(self.target.space, {kind: name for name, kind in self.target.classes.items()})

    def written(
        self, imported: Mapping[str, object], *, show_ids: bool = False, links: Sequence[Link] = ()
    ) -> Addition:
        """Return the text to append to a module that has the names `imported`."""
        text = addition_text(
            self.target.variable,
            self.keys,
            self.structs,
            total=self.sample.count,
            imported=imported,
            show_ids=show_ids,
            programs=self.programs,
            statements=[link.text for link in links],
            names={name for link in links for name in link.names},
        )
        added = round(sum(each.declared.weight for each in self.keys))
        return Addition(
            text if self.keys or self.programs or links else "",
            self.sample.count,
            round(self.declared),
            added,
            round(self.outside),
            len(self.keys),
            self.programs,
            sum(bool(link.edges) for link in links),
            any(kind.declaration.fallback for kind in self.target.classes.values()),
        )


def targets_in(module: ModuleType, space: str | None = None, database: int | None = None) -> list[Target]:
    """Return the keyspaces of a module to which classes may be added, of one name or database if it is given.

    Raise UsageError if there are none, if two are of one database, or if classes are of another module.
    """
    spaces = {name: value for name, value in vars(module).items() if isinstance(value, Keyspace)}
    chosen = {
        name: value
        for name, value in spaces.items()
        if space in (None, name, value.name) and database in (None, value.database or 0)
    }
    if not chosen:
        listing = ", ".join(spaces) or "none"
        raise UsageError(f"--update needs a module with such a keyspace; {module.__name__} has {listing}.")
    numbers = [value.database or 0 for value in chosen.values()]
    if len(set(numbers)) < len(numbers):
        raise UsageError(
            f"{', '.join(chosen)} are keyspaces of one database, so it is not clear which has the new keys. "
            "Choose one with --space."
        )
    return [_target(module, variable, each) for variable, each in chosen.items()]


def _target(module: ModuleType, variable: str, space: Keyspace) -> Target:
    classes = {name: kind for name, kind in vars(module).items() if _is_key(kind, space)}
    if unnamed := [kind.__name__ for kind in space if kind not in classes.values()]:
        raise UsageError(
            f"{unnamed[0]} is not a class of the module itself. Update the module that declares it."
        )
    return Target(variable, space, classes)


def drafted_addition(
    module: ModuleType,
    target: Target,
    sample: NameSample,
    facts: Mapping[bytes, Facts],
    *,
    show_ids: bool = False,
    programs: Mapping[str, Program] | None = None,
    taken: Iterable[str] = (),
) -> AdditionDraft:
    """Return the declarations that a keyspace of a module lacks.

    The keys of `programs` are not guessed: the module refers to their declarations, or does so already.
    Classes get other names than those that are `taken`.
    """
    lead = target.space.bind().lead
    templates = {name: kind for name, kind in target.classes.items() if not kind.declaration.fallback}
    seen: dict[type[Key], list[Observation]] = {kind: [] for kind in templates.values()}
    undeclared, declared_weight, outside = [], 0.0, 0.0
    for name, weight in sample:
        kind = _kind_of(name, lead, seen)
        if kind is None:
            undeclared.append(Observation(name, weight, facts.get(name)))
        else:
            declared_weight += weight
            seen[kind].append(Observation(name[len(lead) :], weight, facts.get(name)))
    recognised = recognise(programs or {}, undeclared)
    referred = [each for each in recognised if each.program in getattr(module, "programs", ())]
    declared_weight += sum(each.keys for each in referred)
    claimed = frozenset[bytes]().union(*(each.names for each in recognised))
    observations = []
    for each in undeclared:
        if each.name in claimed:
            continue
        if each.name.startswith(lead):
            observations.append(each._replace(name=each.name[len(lead) :]))
        else:
            outside += each.weight
    words = Words(everything=show_ids)
    declared, _ = declared_templates(
        patterns_of(observations, words),
        observations,
        known_templates(templates),
        outside=names_of_programs(recognised),
        lead=lead,
    )
    if len(templates) < len(target.classes):
        declared = [each for each in declared if not each.is_catch_all]  # the fallback has these names
    structs = Structs({*RESERVED, *vars(module), *taken}, words)
    return AdditionDraft(
        target,
        sample,
        key_declarations(declared, structs),
        declared_keys(seen, {kind: name for name, kind in templates.items()}),
        structs,
        declared_weight,
        outside,
        [each for each in recognised if each not in referred],
    )


def _kind_of(name: bytes, lead: bytes, kinds: Iterable[type[Key]]) -> type[Key] | None:
    if not name.startswith(lead):
        return None
    rest = name[len(lead) :]
    return next((kind for kind in kinds if kind.declaration.template.parse(rest) is not None), None)


async def server_addition(
    db: ReadableDatabase,
    module: ModuleType,
    target: Target,
    *,
    imported: Mapping[str, object],
    show_ids: bool = False,
    programs: Mapping[str, Program] | None = None,
    pace: Pace = GENTLE,
    prefer_replica: bool = True,
    on_progress: Callable[[WalkProgress], None] | None = None,
    plan: JobPlan | None = None,
) -> Addition:
    """Return what a keyspace of a module lacks of the keys of a server, and of links of these. Read only."""
    found = await survey(db, pace=pace, prefer_replica=prefer_replica, on_progress=on_progress, plan=plan)
    draft = drafted_addition(
        module, target, found.sample, found.facts, show_ids=show_ids, programs=programs, taken=imported
    )
    links = await find_links(
        db,
        [*draft.known, *draft.keys],
        draft.structs,
        lead=target.space.bind().lead,
        existing=draft.existing,
        pace=pace,
        prefer_replica=prefer_replica,
    )
    return draft.written(imported, show_ids=show_ids, links=links)


def names_after(imported: Mapping[str, object], text: str) -> dict[str, object]:
    """Return the names of a module after a text is appended to it; those of its classes without a value."""
    found = dict(imported)
    for node in ast.parse(text).body:
        if isinstance(node, ast.ClassDef):
            found[node.name] = None
        elif isinstance(node, ast.ImportFrom) and node.module:
            origin = importlib.import_module(node.module)
            found.update({each.asname or each.name: getattr(origin, each.name) for each in node.names})
        elif isinstance(node, ast.Import):
            found.update({each.name: importlib.import_module(each.name) for each in node.names})
        elif isinstance(node, ast.Assign):
            found["programs"] = ()
    return found


def append_to(path: Path, text: str) -> None:
    """Append to a file by replacing it: if the process dies before, the file is as it was."""
    new = path.with_name(f".{path.name}.new")
    try:
        new.write_bytes(path.read_bytes() + text.encode())
        shutil.copymode(path, new)
        os.replace(new, path)
    except OSError as error:
        raise UsageError(f"{path} cannot be written: {error.strerror}. Name another file.") from error


def _is_key(value: object, space: Keyspace) -> bool:
    return isinstance(value, type) and issubclass(value, Key) and value in space.keys
