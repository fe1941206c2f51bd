"""From sampled names, and what is known of them, to the module that declares them."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import NamedTuple

from keywright.errors import UsageError
from keywright.tools.infer.facts import Facts
from keywright.tools.infer.links import Link, find_links
from keywright.tools.infer.module import RESERVED, KeyDeclaration, key_declarations, module_text
from keywright.tools.infer.names import NameSample
from keywright.tools.infer.patterns import Observation
from keywright.tools.infer.programs import (
    Recognition,
    has_fallback,
    names_of_programs,
    recognise,
    recognised_lines,
)
from keywright.tools.infer.sources import survey
from keywright.tools.infer.structs import Structs
from keywright.tools.infer.templates import declared_templates, let_fall_back
from keywright.tools.infer.tree import patterns_of
from keywright.tools.infer.words import Words
from keywright.tools.jobs import JobPlan
from keywright.tools.pace import GENTLE, Pace, WalkProgress
from keywright.tools.program import Program
from keywright.tools.readable import ReadableDatabase

__all__ = ["Inference", "infer", "infer_server", "require_space_name"]

_SPACE_NAME = re.compile(r"[a-z][a-z0-9_]{0,40}")


class Inference(NamedTuple):
    """The module, and how many of the names its templates have."""

    text: str
    keys: list[KeyDeclaration]
    names: int
    matched: int
    too_long: int
    sampled: int
    is_exact: bool
    links: tuple[Link, ...] = ()
    programs: tuple[Recognition, ...] = ()

    @property
    def class_names(self) -> set[str]:
        """Return the names of the classes in the module."""
        return {node.name for node in ast.parse(self.text).body if isinstance(node, ast.ClassDef)}

    @property
    def coverage(self) -> list[str]:
        """Lines for people: what is matched, what remains and why."""
        share = self.matched / self.names if self.names else 1.0
        about = "" if self.is_exact else f" (estimated from a sample of {self.sampled:,})"
        classes = f"{len(self.keys)} template{'' if len(self.keys) == 1 else 's'}"
        if self.programs:
            classes += f" and {len(self.programs)} program{'' if len(self.programs) == 1 else 's'}"
        lines = [f"{self.matched:,} of {self.names:,} keys, {share:.2%}, match {classes}{about}"]
        lines += recognised_lines(self.programs)
        rest = self.names - self.matched - self.too_long
        if rest > 0:
            where = (
                "they stay undeclared" if has_fallback(self.programs) else "the fallback template has them"
            )
            those = "1 key has" if rest == 1 else f"{rest:,} keys have"
            lines.append(f"{those} no structure that repeats: {where}")
        if self.too_long:
            lines.append(f"{self.too_long:,} keys were not looked at: their names are too long")
        joined = sum(bool(link.edges) for link in self.links)
        if joined:
            lines.append(f"{joined:,} references and relations between them")
        doubts = sum(len(key.doubts) for key in self.keys) + sum(not link.edges for link in self.links)
        if doubts:
            lines.append(f"{doubts:,} {'guess' if doubts == 1 else 'guesses'} to review: look for `# guess:`")
        return lines


def require_space_name(space: str) -> None:
    """Raise UsageError if a keyspace cannot have this name in a module."""
    if not _SPACE_NAME.fullmatch(space) or space in RESERVED:
        raise UsageError(f"--space must be a lower-case identifier, got {space!r}. Write for example shop.")


class Draft(NamedTuple):
    """The templates of sampled names, before they are written."""

    sample: NameSample
    observations: int
    rest: list[Observation]
    structs: Structs
    keys: list[KeyDeclaration]
    programs: list[Recognition]

    def written(
        self,
        space: str,
        origin: str,
        *,
        show_ids: bool = False,
        links: Sequence[Link] = (),
        database: int | None = None,
        more_programs: bool = False,
    ) -> Inference:
        """Return the module, with the links between its keys."""
        remaining = round(sum(each.weight for each in self.rest)) + self.sample.too_long
        text = module_text(
            space,
            self.keys,
            self.structs,
            origin=origin,
            total=self.sample.count,
            rest=[] if has_fallback(self.programs) else self.rest,
            show_ids=show_ids,
            programs=self.programs,
            more_programs=more_programs,
            database=database,
            statements=[link.text for link in links],
            names={name for link in links for name in link.names},
        )
        return Inference(
            text,
            self.keys,
            self.sample.count,
            self.sample.count - remaining,
            self.sample.too_long,
            self.observations,
            self.sample.is_complete,
            tuple(links),
            tuple(self.programs),
        )


def drafted(
    sample: NameSample,
    facts: Mapping[bytes, Facts] | None = None,
    *,
    space: str,
    show_ids: bool = False,
    programs: Mapping[str, Program] | None = None,
    taken: Iterable[str] = (),
) -> Draft:
    """Return the templates of sampled names. Raise UsageError if there are none.

    The keys of `programs`, by where each is declared, are not guessed: the module refers to its declaration.
    Classes get other names than those that are `taken`.
    """
    require_space_name(space)
    known = facts or {}
    observations = [Observation(name, weight, known.get(name)) for name, weight in sample]
    if not observations:
        raise UsageError("there are no names to infer from. Give a database or a file that has keys.")
    words = Words(everything=show_ids)
    recognised = recognise(programs or {}, observations)
    claimed = frozenset[bytes]().union(*(each.names for each in recognised))
    free = [each for each in observations if each.name not in claimed]
    declared, rest = declared_templates(patterns_of(free, words), free, outside=names_of_programs(recognised))
    if not rest and not has_fallback(recognised):
        let_fall_back(declared)
    structs = Structs({*RESERVED, *taken, space}, words)
    keys = key_declarations(declared, structs)
    return Draft(sample, len(observations), rest, structs, keys, recognised)


def infer(
    sample: NameSample,
    facts: Mapping[bytes, Facts] | None = None,
    *,
    space: str = "inferred",
    origin: str = "a list of names",
    show_ids: bool = False,
    programs: Mapping[str, Program] | None = None,
    database: int | None = None,
) -> Inference:
    """Write the declaration of sampled names. Raise UsageError if there are none.

    The keys of `programs`, by where each is declared, are not guessed: the module refers to its declaration.
    The keyspace is in `database`, if a number is given.
    """
    draft = drafted(sample, facts, space=space, show_ids=show_ids, programs=programs)
    return draft.written(space, origin, show_ids=show_ids, database=database)


async def infer_server(
    db: ReadableDatabase,
    *,
    space: str = "inferred",
    show_ids: bool = False,
    programs: Mapping[str, Program] | None = None,
    database: int | None = None,
    before: Sequence[Inference] = (),
    pace: Pace = GENTLE,
    prefer_replica: bool = True,
    on_progress: Callable[[WalkProgress], None] | None = None,
    plan: JobPlan | None = None,
) -> Inference:
    """Write the declaration of the keys of a server or a dump, and of the links between them. Read only.

    The keyspace is in `database`, if a number is given. Its module follows those of `before`: classes get
    other names, and the variable of programs is extended. With a `plan` of several jobs worker processes
    share the names; it needs no model.
    """
    require_space_name(space)
    found = await survey(db, pace=pace, prefer_replica=prefer_replica, on_progress=on_progress, plan=plan)
    taken = {name for each in before for name in each.class_names}
    draft = drafted(found.sample, found.facts, space=space, show_ids=show_ids, programs=programs, taken=taken)
    links = await find_links(db, draft.keys, draft.structs, pace=pace, prefer_replica=prefer_replica)
    source = "a dump" if db.is_still else "a server"
    origin = source if database is None else f"database {database} of {source}"
    return draft.written(
        space,
        origin,
        show_ids=show_ids,
        links=links,
        database=database,
        more_programs=any(each.programs for each in before),
    )
