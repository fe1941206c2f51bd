"""What a generator is, and what it gets."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property

from keywright.errors import UsageError
from keywright.tools.audit.budgets import Budget
from keywright.tools.model import Model, ModelDescription
from keywright.tools.schema.builder import schema_of
from keywright.tools.schema.document import Schema

__all__ = ["Generation", "Generator"]


@dataclass(frozen=True)
class Generation:
    """The input of a generator: the model, as declared, described and as a schema, and the options given."""

    model: Model
    options: Mapping[str, str] = field(default_factory=dict)
    budgets: tuple[Budget, ...] = ()
    """Limits of the bytes of templates."""

    @cached_property
    def schema(self) -> Schema:
        return schema_of(self.model)

    @cached_property
    def described(self) -> ModelDescription:
        return self.model.described()


@dataclass(frozen=True)
class Generator:
    """A named generator. `generate` returns the text of one file, the same for the same input."""

    name: str
    summary: str
    generate: Callable[[Generation], str]
    options: Mapping[str, str] = field(default_factory=dict)
    """The options that it takes, each with what it is for."""
    takes_budgets: bool = False

    def run(self, generation: Generation) -> str:
        """Return the text. Raise UsageError for an option that the generator does not take."""
        for name in generation.options:
            if name not in self.options:
                known = ", ".join(f"{name} ({what})" for name, what in self.options.items()) or "none"
                raise UsageError(f"{self.name} has no option {name!r}. It takes {known}.")
        if generation.budgets and not self.takes_budgets:
            raise UsageError(f"{self.name} takes no budgets. Drop --max-bytes.")
        return self.generate(generation)
