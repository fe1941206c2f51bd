"""Applying a plan, step by step.

Each step re-checks, where it writes, that what was seen still holds: one that was overtaken changes
nothing and says so. Applying a plan twice does nothing more.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import Any, NamedTuple

from keywright.engine import AsyncDatabase
from keywright.errors import ConflictError, EngineError, KeywrightError
from keywright.keyspace import Call, gather
from keywright.keyspace.call import Command, Plain, as_is
from keywright.keyspace.codecs import Plaintext, is_sealed
from keywright.keyspace.commits.checks import Check, absent, equals, field_equals, has_member
from keywright.keyspace.commits.journal import commit
from keywright.keyspace.key import Key
from keywright.keyspace.kinds.unset import UNSET
from keywright.keyspace.renames import Arrival, moved
from keywright.keyspace.script import BoundScript, Script
from keywright.keyspace.versions.upgrades import Upgrade, brought_up_to_date
from keywright.keyspace.wires import Effect, Operation
from keywright.tools.audit.matcher import Matcher
from keywright.tools.audit.value_checks import CLOCK_SLACK_MS, Checker
from keywright.tools.repair.fingerprints import exact, fingerprint
from keywright.tools.repair.fixes import FixSteps
from keywright.tools.repair.relation_repairs import Relinking
from keywright.tools.repair.step import Step
from keywright.tools.repair.undo import Back, UndoFile, restoring

__all__ = ["Outcome", "Repairer"]

REMOVE_UNCHANGED = Script("keywright.tools.repair", "remove_unchanged", Effect.ONCE)
GIVE_EXPIRY = Script("keywright.tools.repair", "give_expiry", Effect.ONCE)
ATTEMPTS = 8
DUMP = Operation("repair", b"DUMP", Effect.READ)
TTL = Operation("repair", b"PTTL", Effect.READ)
GET = Operation("repair", b"GET", Effect.READ)
HGET = Operation("repair", b"HGET", Effect.READ)
HGETALL = Operation("repair", b"HGETALL", Effect.READ)
SET = Operation("repair", b"SET", Effect.REPEATABLE)
HSET = Operation("repair", b"HSET", Effect.REPEATABLE)
EXISTS = Operation("repair", b"EXISTS", Effect.READ)
_HELD = {
    "hash": HGET,
    "zset": Operation("repair", b"ZSCORE", Effect.READ),
    "list": Operation("repair", b"LPOS", Effect.READ),
    "stream": Operation("repair", b"XRANGE", Effect.READ),
}


class Outcome(NamedTuple):
    """What became of one step: `done`, `overtaken` (nothing to do any more), or `left`, and why."""

    step: Step
    state: str
    why: str = ""


class _Removal(NamedTuple):
    """The command that removes one entry, the one that puts it back, and what must hold."""

    command: Command[Any]
    back: list[bytes]
    checks: list[Check]


class Repairer:
    """Does the steps of a plan in one database."""

    def __init__(self, db: AsyncDatabase, matcher: Matcher, undo: UndoFile) -> None:
        self.db = db
        self.matcher = matcher
        self.undo = undo
        links = {link.name: link for space in matcher.spaces for link in space.links}
        relinking = self._relinking = Relinking(db, links, matcher.key, undo)
        self._actions: Mapping[str, Callable[[Step], Awaitable[bool]]] = {
            "remove-key": self._remove_key,
            "remove-entry": self._remove_entry,
            "expire": self._expire,
            "seal": self._seal,
            "upgrade": self._upgrade,
            "move": self._move,
            "complete": relinking.complete,
            "withdraw": relinking.withdraw,
            "list": relinking.enlist,
            "unlist": relinking.unlist,
            "fix": FixSteps(db, matcher, undo).fix,
        }

    async def apply(self, step: Step) -> Outcome:
        action = self._actions.get(step.action)
        if action is None:
            return Outcome(step, "left", f"there is no action {step.action!r}")
        try:
            return Outcome(step, "done" if await action(step) else "overtaken")
        except (KeywrightError, ValueError) as error:
            if isinstance(error, EngineError) and not isinstance(error, ConflictError):
                raise
            return Outcome(step, "left", _masked(str(error), step))

    async def _remove_key(self, step: Step) -> bool:
        name = step.name
        if step.code == "KW401" and self._relinking.keeps(self.matcher.key(name)):
            return await self._relinking.unrelate(step)
        for _ in range(ATTEMPTS):  # the order of a set may change between two reads
            dump, ttl = await self._dumped(name)
            if dump is None or fingerprint(dump) != step.seen:
                return False
            removal = BoundScript(REMOVE_UNCHANGED, [name], (exact(dump).encode(),))
            if await self.undo.run(self.db, removal, restoring(name, step.code, dump, ttl)):
                return True
        return False

    async def _remove_entry(self, step: Step) -> bool:
        key = self.matcher.key(step.name)
        assert step.member is not None
        if step.code == "KW401" and self._relinking.keeps(key):
            return await self._relinking.unrelate(step)
        removal = await self._removal(key, step.member)
        if removal is None:
            return False
        checks = removal.checks
        if step.code == "KW401" and step.other is not None:
            checks = [*checks, _missing(self.matcher.key(step.other), step.field)]
        write = commit("repair", checks, [removal.command])
        return await self.undo.run(self.db, write, Back(removal.back, step.name, step.code))

    async def _removal(self, key: Any, entry: bytes) -> _Removal | None:
        """How one entry is removed and put back; None where it is not there."""
        name, kind = self.db.context.name(key), key.redis_type
        if kind == "set":
            return _Removal(_on(key, b"SREM", entry), [b"SADD", name, entry], [has_member(key, entry)])
        held = await self.db.run(Plain(_HELD[kind], (name, *_asked(kind, entry)), name))
        if held is None or held == []:
            return None
        if kind == "hash":
            unchanged = [field_equals(key, entry, held)]
            return _Removal(_on(key, b"HDEL", entry), [b"HSETNX", name, entry, held], unchanged)
        if kind == "zset":
            return _Removal(_on(key, b"ZREM", entry), [b"ZADD", name, b"NX", held, entry], [])
        if kind == "list":
            return _Removal(_on(key, b"LREM", 0, entry), [b"RPUSH", name, *[entry] * len(held)], [])
        return _Removal(_on(key, b"XDEL", entry), [b"XADD", name, entry, *held[0][1]], [])

    async def _expire(self, step: Step) -> bool:
        key, name = self.matcher.key(step.name), step.name
        checker = Checker(type(key), self.db.context)
        value = UNSET
        if checker.needs_value_for_expiry:
            stored = await self.db.run(Plain(HGETALL if key.redis_type == "hash" else GET, (name,), name))
            value = checker.check(lambda: key, stored).value if stored is not None else UNSET
        bound = checker.longest_ms(value)
        left = await self.db.run(Plain(TTL, (name,), name))
        if bound is None or checker.expiry is None or left == -2:
            return False
        given = checker.expiry.ttl_ms or max(1, bound - CLOCK_SLACK_MS)
        until = str(self.db.context.now_ms() + left).encode()
        back = [b"PERSIST", name] if left == -1 else [b"PEXPIREAT", name, until]
        giving = BoundScript(GIVE_EXPIRY, [name], (bound, given))
        return await self.undo.run(self.db, giving, Back(back, name, step.code))

    async def _seal(self, step: Step) -> bool:
        key = self.matcher.key(step.name)
        field = step.member if key.redis_type == "hash" else None
        read = Plain(GET, (step.name,), step.name)
        if field is not None:
            read = Plain(HGET, (step.name, field), step.name)
        stored = await self.db.run(read)
        if stored is None or is_sealed(stored):
            return False
        (sealed,) = self.db.context.seal(key, (Plaintext(stored),))
        if field is None:
            write = Command(SET, key, (sealed, b"KEEPTTL"), as_is)
            return bool(await self.db.run(commit("seal", [equals(key, stored)], [write])))
        write = Command(HSET, key, (field, sealed), as_is)
        return bool(await self.db.run(commit("seal", [field_equals(key, field, stored)], [write])))

    async def _upgrade(self, step: Step) -> bool:
        return await self._rewritten(step, brought_up_to_date(self.matcher.key(step.name)))

    async def _move(self, step: Step) -> bool:
        """Bring a key home from a former name, or from the older place of an upgrade."""
        assert step.other is not None
        successor = self.matcher.key(step.other)
        upgrades: tuple[Upgrade, ...] = getattr(successor, "_upgrades", ())
        homes = [kind.made(successor._values) for kind in successor._former]
        older = [upgrade.moved_from(successor) for upgrade in upgrades if upgrade.moved_from]
        if step.name in map(self._name, homes):
            call = moved(successor).map(lambda arrival: arrival is Arrival.MOVED)
        elif step.name in map(self._name, older):
            call = brought_up_to_date(successor)
        else:
            return False
        if await self._rewritten(step, call):
            return True
        if await self.db.run(Plain(EXISTS, (step.name,), step.name)):
            raise ValueError("there is something else under its present name: keywright migrate tells more")
        return False

    async def _rewritten(self, step: Step, call: Call[bool]) -> bool:
        dump, ttl = await self._dumped(step.name)
        if dump is None:
            return False
        return await self.undo.run(self.db, call, restoring(step.name, step.code, dump, ttl))

    async def _dumped(self, name: bytes) -> tuple[bytes | None, int]:
        return await self.db.run(gather(Plain(DUMP, (name,), name), Plain(TTL, (name,), name)))

    def _name(self, key: Key) -> bytes:
        return self.db.context.name(key)


def _masked(message: str, step: Step) -> str:
    """A message without the name it is about, with or without its prefix."""
    parts = step.name.split(b":")
    for start in range(len(parts)):
        message = message.replace(repr(b":".join(parts[start:])), f"a key of {step.template}")
    return message


def _missing(key: Any, field: bytes | None) -> Check:
    if field is None:
        return absent(key)
    return (
        field_equals(key, field, None) if key.redis_type == "hash" else has_member(key, field, present=False)
    )


def _asked(kind: str, entry: bytes) -> tuple[bytes | int, ...]:
    """The words that ask for one entry of a collection."""
    if kind == "list":
        return entry, b"COUNT", 0
    return (entry, entry) if kind == "stream" else (entry,)


def _on(key: Key, verb: bytes, *operands: bytes | int) -> Command[Any]:
    return Command(Operation("repair", verb, Effect.REPEATABLE), key, operands, as_is)
