"""Codecs: one class per stored form, and `codec_of` from a type hint to a codec."""

from keywright.keyspace.codecs.choices import Boolean, EnumOf, Flag, LiteralOf
from keywright.keyspace.codecs.confidential import Sealed, SealedIfBound, SecretOf
from keywright.keyspace.codecs.contract import Codec, CodecError, SealRefused, UnpackedTooLarge
from keywright.keyspace.codecs.keyring import Keyring
from keywright.keyspace.codecs.numeric import Float, Int64, Uint64
from keywright.keyspace.codecs.resolve import codec_of
from keywright.keyspace.codecs.seals import Ciphertext, Plaintext, Sealable, SealPlace, is_sealed
from keywright.keyspace.codecs.secret import Secret
from keywright.keyspace.codecs.structured import Json, MessagePack
from keywright.keyspace.codecs.text import IdOf, Raw, Text
from keywright.keyspace.codecs.times import Duration, EpochFloat, EpochMs, EpochSeconds, Rfc3339
from keywright.keyspace.codecs.zstd import Zstd, unpacking_at_most

__all__ = [
    "Boolean",
    "Ciphertext",
    "Codec",
    "CodecError",
    "Duration",
    "EnumOf",
    "EpochFloat",
    "EpochMs",
    "EpochSeconds",
    "Flag",
    "Float",
    "IdOf",
    "Int64",
    "Json",
    "Keyring",
    "LiteralOf",
    "MessagePack",
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
    "Zstd",
    "codec_of",
    "is_sealed",
    "unpacking_at_most",
]
