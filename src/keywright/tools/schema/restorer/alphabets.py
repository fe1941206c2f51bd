"""Alphabets of schema files as those of the library."""

from __future__ import annotations

from enum import Enum
from typing import Any

import msgspec

from keywright.errors import KeywrightError, UsageError
from keywright.keyspace.alphabets import Alphabet, Bytes, Choice
from keywright.tools.schema.alphabets import ALPHABETS
from keywright.tools.schema.document import AlphabetSchema
from keywright.tools.schema.stand_ins import ForeignAlphabet

__all__ = ["restored_alphabet"]

_DEEPEST = 20


def restored_alphabet(schema: AlphabetSchema, depth: int = 0) -> Alphabet[Any]:
    """Return an alphabet. One that is not of the library is a stand-in that takes any text."""
    if depth > _DEEPEST:
        raise UsageError(
            f"an alphabet of the schema file is nested deeper than {_DEEPEST} levels. Flatten it."
        )
    kind = ALPHABETS.get(schema.alphabet)
    if kind is None:
        name = str(schema.parameters.get("name", schema.alphabet))
        made: Alphabet[Any] = type(name, (ForeignAlphabet,), {})(schema)
        return made
    parameters = {name: _parameter(value, depth) for name, value in schema.parameters.items()}
    try:
        return _made(kind, parameters)
    except (TypeError, ValueError, KeywrightError) as error:
        raise UsageError(
            f"the alphabet {schema.alphabet!r} of the schema file has invalid parameters: {error}"
        ) from error


def _made(kind: Any, parameters: dict[str, Any]) -> Alphabet[Any]:
    if kind is Choice:
        values = parameters["values"]
        if "enum" not in parameters:
            return Choice(*values)
        members = dict(zip(parameters["names"], values, strict=True))
        made: Any = Enum(parameters["enum"], members)  # type: ignore[misc]  # at run time
        return Choice(made)
    if kind is Bytes:
        return Bytes(parameters.get("but", ":").encode("ascii"))
    # Alternatives and exceptions are positional.
    several = [*parameters.pop("alphabets", ()), *parameters.pop("exceptions", ())]
    base = [parameters.pop("base")] if "base" in parameters else []
    alphabet: Alphabet[Any] = kind(*base, *several, **parameters)
    return alphabet


def _parameter(value: Any, depth: int) -> Any:
    if isinstance(value, list):
        return [_parameter(each, depth) for each in value]
    if isinstance(value, dict):
        value = msgspec.convert(value, AlphabetSchema)
    return restored_alphabet(value, depth + 1) if isinstance(value, AlphabetSchema) else value
