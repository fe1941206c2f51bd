"""Codecs: one class per stored form, and `codec_of` from a type hint to a codec."""

from keywright.keyspace.codecs.alternatives import FirstOf, alternatives_in
from keywright.keyspace.codecs.choices import Boolean, EnumOf, Flag, LiteralOf
from keywright.keyspace.codecs.compression import Compressed, Gzip, Lz4, Zlib, Zstd, unpacking_at_most
from keywright.keyspace.codecs.confidential import Sealed, SealedIfBound, SecretOf
from keywright.keyspace.codecs.contract import Codec, CodecError, SealRefused, UnpackedTooLarge
from keywright.keyspace.codecs.empty import EmptyAsNone
from keywright.keyspace.codecs.keyring import Keyring
from keywright.keyspace.codecs.numeric import Float, Int64, Uint64
from keywright.keyspace.codecs.pickles import Pickled
from keywright.keyspace.codecs.resolve import codec_of, without_none
from keywright.keyspace.codecs.seals import Ciphertext, Plaintext, Sealable, SealPlace, is_sealed
from keywright.keyspace.codecs.secret import Secret
from keywright.keyspace.codecs.structured import Json, MessagePack
from keywright.keyspace.codecs.text import IdOf, Raw, Text
from keywright.keyspace.codecs.times import Duration, EpochFloat, EpochMs, EpochSeconds, Rfc3339

__all__ = [
    "Boolean",
    "Ciphertext",
    "Codec",
    "CodecError",
    "Compressed",
    "Duration",
    "EmptyAsNone",
    "EnumOf",
    "EpochFloat",
    "EpochMs",
    "EpochSeconds",
    "FirstOf",
    "Flag",
    "Float",
    "Gzip",
    "IdOf",
    "Int64",
    "Json",
    "Keyring",
    "LiteralOf",
    "Lz4",
    "MessagePack",
    "Pickled",
    "Plaintext",
    "Raw",
    "Rfc3339",
    "SealPlace",
    "SealRefused",
    "Sealable",
    "Sealed",
    "SealedIfBound",
    "Secret",
    "SecretOf",
    "Text",
    "Uint64",
    "UnpackedTooLarge",
    "Zlib",
    "Zstd",
    "alternatives_in",
    "codec_of",
    "is_sealed",
    "unpacking_at_most",
    "without_none",
]
