"""The types of values in a dump: their numbers, and the Redis type of each."""

from __future__ import annotations

__all__ = [
    "EXPIRING",
    "REDIS_TYPES",
    "SINGLE",
    "STRINGS",
    "Type",
    "module_name",
]


class Type:
    """The numbers of the types, as the format has them."""

    STRING = 0
    LIST = 1
    SET = 2
    ZSET = 3
    HASH = 4
    ZSET_2 = 5
    MODULE_PRE_GA = 6
    MODULE_2 = 7
    HASH_ZIPMAP = 9
    LIST_ZIPLIST = 10
    SET_INTSET = 11
    ZSET_ZIPLIST = 12
    HASH_ZIPLIST = 13
    LIST_QUICKLIST = 14
    STREAM_1 = 15
    HASH_LISTPACK = 16
    ZSET_LISTPACK = 17
    LIST_QUICKLIST_2 = 18
    STREAM_2 = 19
    SET_LISTPACK = 20
    STREAM_3 = 21
    HASH_METADATA_PRE_GA = 22
    HASH_LISTPACK_EX_PRE_GA = 23
    HASH_METADATA = 24
    HASH_LISTPACK_EX = 25
    HASH_VALKEY = 122
    """Number 22 of Valkey 9, which Redis 7.4 uses for something else."""


_OF = {
    "string": (Type.STRING,),
    "list": (Type.LIST, Type.LIST_ZIPLIST, Type.LIST_QUICKLIST, Type.LIST_QUICKLIST_2),
    "set": (Type.SET, Type.SET_INTSET, Type.SET_LISTPACK),
    "zset": (Type.ZSET, Type.ZSET_2, Type.ZSET_ZIPLIST, Type.ZSET_LISTPACK),
    "hash": (
        Type.HASH,
        Type.HASH_ZIPMAP,
        Type.HASH_ZIPLIST,
        Type.HASH_LISTPACK,
        Type.HASH_METADATA_PRE_GA,
        Type.HASH_LISTPACK_EX_PRE_GA,
        Type.HASH_METADATA,
        Type.HASH_LISTPACK_EX,
        Type.HASH_VALKEY,
    ),
    "stream": (Type.STREAM_1, Type.STREAM_2, Type.STREAM_3),
}
REDIS_TYPES = {number: name for name, numbers in _OF.items() for number in numbers}
"""The Redis type of each; modules have their own."""

SINGLE = frozenset(
    {
        Type.STRING,
        Type.HASH_ZIPMAP,
        Type.LIST_ZIPLIST,
        Type.SET_INTSET,
        Type.ZSET_ZIPLIST,
        Type.HASH_ZIPLIST,
        Type.HASH_LISTPACK,
        Type.ZSET_LISTPACK,
        Type.SET_LISTPACK,
        Type.HASH_LISTPACK_EX_PRE_GA,
    }
)
"""The types that are one string, by far the most frequent ones."""


EXPIRING = frozenset(
    {
        Type.HASH_METADATA_PRE_GA,
        Type.HASH_LISTPACK_EX_PRE_GA,
        Type.HASH_METADATA,
        Type.HASH_LISTPACK_EX,
        Type.HASH_VALKEY,
    }
)
"""The types of hashes with fields that expire."""

STRINGS = {Type.LIST: 1, Type.SET: 1, Type.HASH: 2, Type.LIST_QUICKLIST: 1}
"""The types that are a number of entries of so many strings each."""


_LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"


def module_name(identity: int) -> str:
    """Return the nine letters of a module's type, as TYPE replies with them."""
    return "".join(_LETTERS[identity >> (58 - 6 * place) & 63] for place in range(9))
