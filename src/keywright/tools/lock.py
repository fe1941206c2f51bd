"""Lock files: the schema of a model at one moment, to compare later ones with (`keywright diff`).

Files of format 1, which earlier versions wrote, are read too; they have descriptions in words only.
"""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

import msgspec

from keywright.errors import UsageError
from keywright.tools.model import Model, ModelDescription
from keywright.tools.schema.builder import schema_of
from keywright.tools.schema.document import FORMAT, Schema
from keywright.tools.schema.restorer import keyspaces_from_schema
from keywright.tools.schema.text import parsed_schema, schema_text

__all__ = ["ModelVersion", "parsed_lock", "read_lock", "version_of", "write_lock"]

FORMER_FORMAT = 1
MOST_BYTES = 64 << 20


class ModelVersion(NamedTuple):
    """A model at one moment: its description, and its schema unless it is of a former format."""

    description: ModelDescription
    schema: Schema | None


class _Former(msgspec.Struct, frozen=True):
    """A lock file of format 1."""

    format: int
    model: ModelDescription


class _Form(msgspec.Struct):
    format: int


def version_of(model: Model) -> ModelVersion:
    """Return the present version of a model."""
    return ModelVersion(model.described(), schema_of(model))


def write_lock(path: Path, version: ModelVersion) -> None:
    """Write a lock file. Raise UsageError for a version of a former format, which has no schema."""
    if version.schema is None:
        raise UsageError(
            f"{path}: a lock file of format {FORMER_FORMAT} is not written any more. Name a MODEL."
        )
    path.write_text(schema_text(version.schema), "utf-8")


def read_lock(path: Path) -> ModelVersion:
    """Return the version in a lock file. Raise UsageError if it is malformed or of a newer Keywright."""
    try:
        if path.stat().st_size > MOST_BYTES:
            raise UsageError(f"{path} has more than {MOST_BYTES:,} bytes, too many for a schema file.")
        data = path.read_bytes()
    except OSError as error:
        raise UsageError(
            f"the lock file {path} cannot be read: {error.strerror}. Make it with --write."
        ) from error
    return parsed_lock(data, str(path))


def parsed_lock(data: bytes, source: str) -> ModelVersion:
    """Return the version in the text of a lock file or schema file."""
    try:
        form = msgspec.json.decode(data, type=_Form).format
        if form == FORMER_FORMAT:
            return ModelVersion(msgspec.json.decode(data, type=_Former).model, None)
    except (msgspec.MsgspecError, RecursionError, UnicodeDecodeError) as error:
        raise UsageError(
            f"{source} is not a lock file: {error}. Make one with --lock FILE --write."
        ) from error
    if form != FORMAT:
        raise UsageError(f"{source} has the format {form}, not {FORMAT}. Upgrade keywright.")
    schema = parsed_schema(data, source)
    return ModelVersion(Model(schema.model, keyspaces_from_schema(schema)).described(), schema)
