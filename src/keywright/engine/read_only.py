"""Read-only databases: which commands they send. It protects from mistakes; access rules protect from intent.

The effect of a raw command is what its caller says, so its verb must be one that only reads, too. A script
is believed: its author declared its effect.
"""

from __future__ import annotations

from collections.abc import Sequence

from keywright.errors import UsageError
from keywright.keyspace.wires import Arguments, Effect, Transaction, Wire

__all__ = ["require_reading"]

_READING = frozenset(
    b"BITCOUNT BITFIELD_RO BITPOS CLUSTER COMMAND DBSIZE DUMP ECHO EVAL_RO EVALSHA_RO EXISTS "
    b"EXPIRETIME GEODIST GEOHASH GEOPOS GEOSEARCH GET GETBIT GETRANGE HEXISTS HEXPIRETIME HGET HGETALL "
    b"HKEYS HLEN HMGET HPEXPIRETIME HPTTL HRANDFIELD HSCAN HSTRLEN HTTL HVALS INFO JSON.ARRINDEX "
    b"JSON.ARRLEN JSON.GET JSON.MGET JSON.OBJKEYS JSON.OBJLEN JSON.STRLEN JSON.TYPE LASTSAVE LCS LINDEX "
    b"LLEN LOLWUT LPOS LRANGE MEMORY MGET OBJECT PEXPIRETIME PFCOUNT PING PTTL RANDOMKEY ROLE SCAN SCARD "
    b"SDIFF SINTER SINTERCARD SISMEMBER SMEMBERS SMISMEMBER SORT_RO SRANDMEMBER SSCAN STRLEN SUNION TIME "
    b"TTL TYPE XINFO XLEN XPENDING XRANGE XREAD XREVRANGE ZCARD ZCOUNT ZDIFF ZINTER ZINTERCARD ZLEXCOUNT "
    b"ZMSCORE ZRANDMEMBER ZRANGE ZRANGEBYLEX ZRANGEBYSCORE ZRANK ZREVRANGE ZREVRANGEBYLEX "
    b"ZREVRANGEBYSCORE ZREVRANK ZSCAN ZSCORE ZUNION".split()
)
# Verbs that also change: the words after which they only read.
_BY_WORD = {
    b"CLUSTER": frozenset(
        b"COUNTKEYSINSLOT GETKEYSINSLOT INFO KEYSLOT LINKS MYID NODES SHARDS SLOTS".split()
    ),
    b"CONFIG": frozenset([b"GET"]),
    b"CLIENT": frozenset(b"GETNAME ID INFO LIST".split()),
    b"MEMORY": frozenset(b"DOCTOR STATS USAGE".split()),
    b"PUBSUB": frozenset(b"CHANNELS NUMPAT NUMSUB SHARDCHANNELS SHARDNUMSUB".split()),
    b"SLOWLOG": frozenset(b"GET LEN".split()),
}


def require_reading(wires: Sequence[Wire]) -> None:
    """Raise UsageError if one of the commands may write; none of them is sent then."""
    for wire in wires:
        if wire.operation.verb and not _only_reads(wire):
            name = f" on {wire.name!r}" if wire.name else ""
            raise UsageError(
                f"{wire.operation.name!r}{name} may write, and this database is open for reading only. "
                f"Nothing was sent. Open it without Settings(read_only=True), a shell with --write."
            )


def _only_reads(wire: Wire) -> bool:
    if isinstance(wire, Transaction):
        return all(map(_reads, wire.arguments))
    if wire.operation.effect is not Effect.READ:
        return False
    return wire.operation.script is not None or _reads(wire.arguments)


def _reads(command: Arguments) -> bool:
    verb, *words = command
    if verb in _BY_WORD:
        word = words[0] if words else b""
        return isinstance(word, bytes) and word.upper() in _BY_WORD[verb]
    return verb in _READING
