"""The types of key variables: which values a variable may take, and how each is written into a key name.

Where a variable stands in a name is the business of ``template``.
"""

from keywright.keyspace.alphabets.alphabet import Alphabet, Verbatim
from keywright.keyspace.alphabets.choices import Choice, OneOf
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
from keywright.keyspace.alphabets.identifiers import Hex, Plain, Prefixed
from keywright.keyspace.alphabets.numbers import Signed64, Snowflake, SnowflakeText, Unsigned64
from keywright.keyspace.alphabets.text import Rest, TagText, Text

__all__ = [
    "I64",
    "U64",
    "Alphabet",
    "Choice",
    "Derived",
    "FreeText",
    "Hex",
    "Id",
    "OneOf",
    "Plain",
    "Prefixed",
    "Rest",
    "RestOfName",
    "Sha256",
    "Signed64",
    "Snowflake",
    "SnowflakeId",
    "SnowflakeStr",
    "SnowflakeText",
    "TagText",
    "Text",
    "Unsigned64",
    "Verbatim",
    "alphabet_of",
    "before_first",
    "sha256_hex",
]
