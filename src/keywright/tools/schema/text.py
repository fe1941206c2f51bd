"""Schema files as text."""

from __future__ import annotations

import msgspec

from keywright.errors import UsageError
from keywright.tools.schema.document import FORMAT, Schema

__all__ = ["parsed_schema", "schema_text"]


def schema_text(schema: Schema) -> str:
    """Return the text of a schema file. It is the same for the same schema."""
    return msgspec.json.format(msgspec.json.encode(schema), indent=1).decode() + "\n"


def parsed_schema(data: bytes, source: str) -> Schema:
    """Return the schema of a file. Raise UsageError if it is malformed or of another format."""
    try:
        form = msgspec.json.decode(data, type=_Form).format
        if form != FORMAT:
            raise UsageError(f"{source} has the format {form}, not {FORMAT}. Upgrade keywright.")
        return msgspec.json.decode(data, type=Schema)
    except (msgspec.MsgspecError, RecursionError, UnicodeDecodeError) as error:
        raise UsageError(
            f"{source} is not a schema file: {error}. Write it with keywright generate."
        ) from error


class _Form(msgspec.Struct):
    format: int
