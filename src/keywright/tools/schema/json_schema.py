"""The JSON Schema of schema files themselves, made from the structs; the package ships it as a file."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec

from keywright.tools.schema.document import FORMAT, Schema
from keywright.tools.schema.values import Definitions

__all__ = ["DIALECT", "PUBLISHED", "format_schema"]

DIALECT = "https://json-schema.org/draft/2020-12/schema"
PUBLISHED = Path(__file__).with_name("keywright-schema.json")
"""The published file. `python -m keywright.tools.schema.json_schema` writes it."""


def format_schema() -> str:
    """Return the text of the JSON Schema of schema files."""
    definitions = Definitions()
    root: dict[str, Any] = {
        "$schema": DIALECT,
        "title": f"Keywright schema file, format {FORMAT}",
        **definitions.schema_of(Schema),
        "$defs": dict(sorted(definitions.schemas.items())),
    }
    root["$defs"]["Schema"]["properties"]["format"] = {"const": FORMAT}
    return msgspec.json.format(msgspec.json.encode(root), indent=1).decode() + "\n"


if __name__ == "__main__":
    PUBLISHED.write_text(format_schema(), "utf-8")
