"""Schema files: a model as JSON that programs in every language read, with its own JSON Schema."""

from keywright.tools.schema.builder import schema_of
from keywright.tools.schema.document import (
    ChannelSchema,
    CodecSchema,
    ExpirySchema,
    InvariantSchema,
    KeySchema,
    KeyspaceSchema,
    MemberSchema,
    PartSchema,
    ReferenceSchema,
    RelationSchema,
    Schema,
    ShapeSchema,
    UpgradeSchema,
    VariableSchema,
)
from keywright.tools.schema.restorer import keyspaces_from_schema
from keywright.tools.schema.text import parsed_schema, schema_text

__all__ = [
    "ChannelSchema",
    "CodecSchema",
    "ExpirySchema",
    "InvariantSchema",
    "KeySchema",
    "KeyspaceSchema",
    "MemberSchema",
    "PartSchema",
    "ReferenceSchema",
    "RelationSchema",
    "Schema",
    "ShapeSchema",
    "UpgradeSchema",
    "VariableSchema",
    "keyspaces_from_schema",
    "parsed_schema",
    "schema_of",
    "schema_text",
]
