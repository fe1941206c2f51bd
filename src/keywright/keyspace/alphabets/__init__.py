"""The types of key variables: which values a variable may take, and how each is written into a key name.

Where a variable stands in a name is the business of ``template``.
"""

from keywright.keyspace.alphabets.alphabet import Alphabet, Verbatim
from keywright.keyspace.alphabets.choices import Choice, Except, OneOf
from keywright.keyspace.alphabets.hints import (
    I64,
    U64,
    Derived,
    FreeText,
    Id,
    RestOfName,
    Sha256,
    SnowflakeId,
    SnowflakeStr,
    alphabet_of,
    before_first,
    sha256_hex,
)
from keywright.keyspace.alphabets.identifiers import Base64Url, Email, Hex, Plain, Prefixed, Ulid
from keywright.keyspace.alphabets.numbers import Signed64, Snowflake, SnowflakeText, Unsigned64
from keywright.keyspace.alphabets.text import Bytes, Pattern, Rest, Segment, TagText, Text
from keywright.keyspace.alphabets.typed import Day, Instant, PlainDecimal, Truth, Uuid, UuidText

__all__ = [
    "I64",
    "U64",
    "Alphabet",
    "Base64Url",
    "Bytes",
    "Choice",
    "Day",
    "Derived",
    "Email",
    "Except",
    "FreeText",
    "Hex",
    "Id",
    "Instant",
    "OneOf",
    "Pattern",
    "Plain",
    "PlainDecimal",
    "Prefixed",
    "Rest",
    "RestOfName",
    "Segment",
    "Sha256",
    "Signed64",
    "Snowflake",
    "SnowflakeId",
    "SnowflakeStr",
    "SnowflakeText",
    "TagText",
    "Text",
    "Truth",
    "Ulid",
    "Unsigned64",
    "Uuid",
    "UuidText",
    "Verbatim",
    "alphabet_of",
    "before_first",
    "sha256_hex",
]
