"""Redis commands in code blocks: the key that one uses, and what it says of it."""

from __future__ import annotations

from collections.abc import Sequence

__all__ = ["expiry_set", "kind_used"]

_COMMANDS = {
    **dict.fromkeys(
        ("GET", "SET", "SETEX", "PSETEX", "SETNX", "GETEX", "MGET", "STRLEN", "APPEND"), "string"
    ),
    **dict.fromkeys(("INCR", "INCRBY", "DECR", "DECRBY"), "counter"),
    **dict.fromkeys(("HSET", "HGET", "HGETALL", "HMSET", "HMGET", "HDEL", "HINCRBY", "HEXISTS"), "hash"),
    **dict.fromkeys(("SADD", "SREM", "SMEMBERS", "SISMEMBER", "SCARD", "SPOP"), "set"),
    **dict.fromkeys(("ZADD", "ZREM", "ZRANGE", "ZRANGEBYSCORE", "ZSCORE", "ZCARD", "ZPOPMIN"), "sorted set"),
    **dict.fromkeys(("LPUSH", "RPUSH", "LPOP", "RPOP", "LRANGE", "BLPOP", "BRPOP", "LLEN", "LTRIM"), "list"),
    **dict.fromkeys(("XADD", "XREAD", "XRANGE", "XLEN", "XACK"), "stream"),
    **dict.fromkeys(("PFADD", "PFCOUNT"), "hyperloglog"),
    **dict.fromkeys(("SETBIT", "GETBIT", "BITCOUNT"), "bitmap"),
    **dict.fromkeys(("GEOADD", "GEOSEARCH"), "geo"),
    **dict.fromkeys(("DEL", "UNLINK", "EXISTS", "EXPIRE", "TTL", "TYPE"), ""),
}


def kind_used(command: str) -> str | None:
    """Return the kind of key that a command works on, empty for any, None if it is not a command."""
    return _COMMANDS.get(command.upper().rstrip(":"))


def expiry_set(words: Sequence[str]) -> str:
    """Return the expiry that a command sets, in words."""
    upper = [word.upper() for word in words]
    unit = {"PSETEX": "ms", "PX": "ms"}
    for name, place in (("SETEX", 2), ("PSETEX", 2), ("EX", 1), ("PX", 1), ("EXPIRE", 2)):
        if name in upper:
            found = words[upper.index(name) + place :][:1]
            if found and found[0].isdecimal():
                return f"TTL {found[0][:12]} {unit.get(name, 's')}"
    return ""
