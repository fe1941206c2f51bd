"""Programs whose keyspaces others declare: what the catalogue publishes, and how a program is recognised."""

from __future__ import annotations

from dataclasses import dataclass

from keywright.errors import UsageError
from keywright.keyspace import Key, Keyspace
from keywright.keyspace.template import encoded
from keywright.tools.model import Model

__all__ = ["Program", "mark_of"]


def mark_of(kind: type[Key]) -> bytes:
    """Return the longest text that all names of a class contain, with the declared prefix."""
    parts = kind.declaration.template.marked_parts
    texts = [encoded(part.text) for part in parts if not part.is_variable and not part.group]
    lead = kind.declaration.space.bind().lead + kind.declaration.template.literal_prefix
    return max((lead, *texts), key=len)


@dataclass(frozen=True)
class Program:
    """A program that people run, and the keyspaces that it writes.

    A distribution publishes one with an entry point of the group `keywright.catalogue`. Commands know it by
    the name of the entry point, and `keywright infer` recognises its keys.
    """

    name: str
    """The name of the entry point."""
    title: str
    """What people call it, as in `Celery`."""
    versions: str
    """The versions that the declaration was tested with, as in `5.7`."""
    spaces: tuple[Keyspace, ...]
    distinctive: tuple[type[Key], ...]
    """The classes whose names no other program has, because of their literal text. No other class claims a
    key before one of them has."""
    version_member: tuple[type[Key], str] | None = None
    """A class of hashes and the member that holds the version of the program, if there is one."""
    shared: tuple[str, ...] = ()
    """Variables of all classes, such as the name of a site. A class that is not distinctive claims a key only
    if a distinctive key has the same values for them."""

    value_mark: bytes = b""
    """Bytes that a value of a distinctive class contains, where others may have such names. Without values
    such a program is not recognised."""

    def __post_init__(self) -> None:
        kinds = [kind for space in self.spaces for kind in space]
        named = [*self.distinctive, *([self.version_member[0]] if self.version_member else ())]
        for kind in named:
            if kind not in kinds:
                raise UsageError(
                    f"{kind.__name__} is not a key of {self.name}. Name classes of its keyspaces."
                )
        for kind in kinds:
            if missing := [name for name in self.shared if name not in kind.declaration.template.variables]:
                raise UsageError(f"{kind.__name__} has no <{missing[0]}>. Share variables of all classes.")
        wide = [kind for kind in self.distinctive if kind.declaration.fallback or not mark_of(kind)]
        if wide or not self.distinctive:
            what = f"{wide[0].__name__} has any name" if wide else "no class is distinctive"
            raise UsageError(f"{self.name} cannot be recognised: {what}. Name classes with own text.")

    @property
    def marks(self) -> tuple[bytes, ...]:
        """Texts of which each name of a distinctive class contains one."""
        return tuple(dict.fromkeys(map(mark_of, self.distinctive)))

    @property
    def model(self) -> Model:
        """The model for tools and commands."""
        return Model(self.name, self.spaces)
