"""Applying a repair plan, step by step.

Each step is an optimistic commit: it checks again what the audit found, and changes nothing if another writer
was faster. Applying a plan twice has no further effect.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import Any, NamedTuple

from keywright.engine import AsyncDatabase
from keywright.errors import ConflictError, EngineError, KeywrightError, ServerRefusedError
from keywright.keyspace import Call, gather
from keywright.keyspace.call import Command, Plain, as_is
from keywright.keyspace.checks import equals, field_equals, serialised_as
from keywright.keyspace.codecs import Plaintext, is_sealed
from keywright.keyspace.commits.journal import commit
from keywright.keyspace.field_expiry import changed
from keywright.keyspace.key import Key
from keywright.keyspace.kinds.unset import UNSET
from keywright.keyspace.layouts import Ask, stored_read
from keywright.keyspace.renames import Arrival, moved
from keywright.keyspace.script import BoundScript, Script
from keywright.keyspace.versions.upgrades import brought_up_to_date
from keywright.keyspace.wires import Effect, Operation
from keywright.tools.audit.matcher import Matcher
from keywright.tools.audit.obligations import Obligations
from keywright.tools.audit.value_checks import CLOCK_SLACK_MS, Checker
from keywright.tools.repair.fingerprints import exact, fingerprint
from keywright.tools.repair.fixes import FixSteps
from keywright.tools.repair.relation_repairs import Relinking, missing
from keywright.tools.repair.step import Step
from keywright.tools.repair.undo import Back, UndoFile, restoring

__all__ = ["Repairer", "StepOutcome"]

REMOVE_UNCHANGED = Script("keywright.tools.repair", "remove_unchanged", Effect.ONCE)
GIVE_EXPIRY = Script("keywright.tools.repair", "give_expiry", Effect.ONCE)
ATTEMPTS = 8
DUMP = Operation("repair", b"DUMP", Effect.READ)
TTL = Operation("repair", b"PTTL", Effect.READ)
FIELD_TTL = Operation("repair", b"HPTTL", Effect.READ)
CREATE_GROUP = Operation("repair", b"XGROUP", Effect.REPEATABLE)
GIVE_FIELD_EXPIRY = Operation("repair", b"HPEXPIRE", Effect.REPEATABLE)
EXISTS = Operation("repair", b"EXISTS", Effect.READ)


class StepOutcome(NamedTuple):
    """The outcome of one step: `done`, `overtaken` (nothing to do any more), or `left`, and why."""

    step: Step
    state: str
    why: str = ""


class Repairer:
    """The executor of the steps of a plan in one database."""

    def __init__(self, db: AsyncDatabase, matcher: Matcher, undo: UndoFile) -> None:
        self.db = db
        self.matcher = matcher
        self.undo = undo
        self._obligations = Obligations(matcher.spaces, db.context)
        links = {link.name: link for space in matcher.spaces for link in space.links}
        relinking = self._relinking = Relinking(db, links, matcher.key, undo)
        self._actions: Mapping[str, Callable[[Step], Awaitable[bool]]] = {
            "remove-key": self._remove_key,
            "remove-entry": self._remove_entry,
            "expire": self._expire,
            "expire-field": self._expire_field,
            "create-group": self._create_group,
            "seal": self._seal,
            "upgrade": self._upgrade,
            "move": self._move,
            "complete": relinking.complete,
            "settle": relinking.settle,
            "withdraw": relinking.withdraw,
            "list": relinking.enlist,
            "unlist": relinking.unlist,
            "fix": FixSteps(db, matcher, undo).fix,
        }

    async def apply(self, step: Step) -> StepOutcome:
        action = self._actions.get(step.action)
        if action is None:
            return StepOutcome(step, "left", f"the action {step.action!r} is unknown")
        try:
            return StepOutcome(step, "done" if await action(step) else "overtaken")
        except (KeywrightError, ValueError) as error:
            if isinstance(error, EngineError) and not isinstance(error, ConflictError):
                raise
            return StepOutcome(step, "left", _masked(str(error), step))

    async def _remove_key(self, step: Step) -> bool:
        name = step.name
        if step.code == "KW401" and self._relinking.keeps(self.matcher.key(name)):
            return await self._relinking.unrelate(step)
        for _ in range(ATTEMPTS):  # the order of a set may change between two reads
            dump, ttl = await self._dumped(name)
            if dump is None or fingerprint(dump) != step.seen:
                return False
            removal = self._removal(step, exact(dump))
            if await self.undo.run(self.db, removal, restoring(name, step.code, dump, ttl)):
                return True
        return False

    def _removal(self, step: Step, digest: str) -> Call[Any]:
        """Return the removal of a key that is serialised as read, if what it refers to is still missing."""
        if step.other is None:
            return BoundScript(REMOVE_UNCHANGED, [step.name], (digest.encode(),))
        key = self.matcher.key(step.name)
        checks = [serialised_as(key, digest), missing(self.matcher.key(step.other), step.field)]
        return commit("repair", checks, [_write(key, Ask(b"UNLINK"))])

    async def _remove_entry(self, step: Step) -> bool:
        key = self.matcher.key(step.name)
        assert step.member is not None
        if step.code == "KW401" and self._relinking.keeps(key):
            return await self._relinking.unrelate(step)
        layout = key.declaration.storage.layout
        gone = [] if step.other is None else [missing(self.matcher.key(step.other), step.field)]
        for _ in range(ATTEMPTS):  # an entry that another writer changed is examined again
            held, ttl = await self.db.run(
                gather(
                    stored_read(key, layout.find(step.member), "repair"),
                    Plain(TTL, (step.name,), step.name),
                )
            )
            found = layout.found(step.member, held)
            if found is None or not await self._is_faulty(key, found, step):
                return False
            removal = layout.removal(key, step.member, held)
            write = commit("repair", [*removal.checks, *gone], [_write(key, removal.command)])
            back = Back.by(removal.back, step.name, step.code, ttl)
            if await self.undo.run(self.db, write, back):
                return True
        return False

    async def _is_faulty(self, key: Key, entry: Any, step: Step) -> bool:
        """Return whether an entry, as it is stored now, still has the fault that the audit found.

        A field of a map, a member of a record and a score may have been corrected since.
        """
        checker = Checker(type(key), self.db.context)
        stored = entry
        if checker.storage.whole:
            stored = await self.db.run(stored_read(key, checker.storage.layout.everything, "repair"))
        checked = checker.check(lambda: key, stored)
        if step.code != "KW401":
            return any((each.code, each.member) == (step.code, step.member) for each in checked.problems)
        if checked.value is UNSET:
            return False
        raised = map(self._obligations.finding, self._obligations.of(key, checked.value, stored))
        reference = step.link, step.other, step.field
        return any((each.link, each.other, each.field) == reference for each in raised)

    async def _expire(self, step: Step) -> bool:
        key, name = self.matcher.key(step.name), step.name
        checker = Checker(type(key), self.db.context)
        value = UNSET
        if checker.needs_value_for_expiry:
            stored = await self.db.run(stored_read(key, checker.storage.layout.everything, "repair"))
            value = checker.check(lambda: key, stored).value if stored else UNSET
        bound, expiry = checker.longest_ms(value, lambda: key), checker.expiry_for(lambda: key)
        left = await self.db.run(Plain(TTL, (name,), name))
        if bound is None or expiry is None or left == -2:
            return False
        given = expiry.ttl_ms or max(1, bound - CLOCK_SLACK_MS)
        until = str(self.db.context.now_ms() + left).encode()
        back = [b"PERSIST", name] if left == -1 else [b"PEXPIREAT", name, until]
        giving = BoundScript(GIVE_EXPIRY, [name], (bound, given))
        return await self.undo.run(self.db, giving, Back(back, name, step.code))

    async def _expire_field(self, step: Step) -> bool:
        """Give a field its declared expiry, unless it has one as short by now."""
        key, name, field = self.matcher.key(step.name), step.name, step.member
        checker = Checker(type(key), self.db.context)
        if field is None or checker.field_rules is None:
            return False
        (left,) = await self.db.run(Plain(FIELD_TTL, (name, b"FIELDS", 1, field), name))
        problem = checker.field_expiry_problem(field, left, lambda: key)
        declared = checker.field_rules.of(field)
        expiry = None if declared is None else declared.of_key(key) or declared
        if problem is None or problem.code != step.code or expiry is None:
            return False
        bound = checker.field_bound_ms(expiry)
        if bound is None:
            return False
        given = expiry.ttl_ms or max(1, bound - CLOCK_SLACK_MS)
        until = str(self.db.context.now_ms() + left).encode()
        back = [b"HPERSIST", name] if left == -1 else [b"HPEXPIREAT", name, until]
        giving = Plain(GIVE_FIELD_EXPIRY, (name, given, b"LT", b"FIELDS", 1, field), name).map(changed)
        return await self.undo.run(self.db, giving, Back([*back, b"FIELDS", b"1", field], name, step.code))

    async def _create_group(self, step: Step) -> bool:
        """Create a declared consumer group, which begins with the first entry, if the stream exists still."""
        key = self.matcher.key(step.name)
        group = (step.member or b"").decode()
        if group not in key.declaration.storage.groups:
            return False
        created = Plain(CREATE_GROUP, (b"CREATE", step.name, group, b"0"), step.name).attempt()
        found = await self.db.run(created)
        if isinstance(found, ServerRefusedError) and found.reply.startswith(("BUSYGROUP", "ERR The XGROUP")):
            return False  # it exists by now, or the stream is gone
        if isinstance(found, KeywrightError):
            raise found
        return True

    async def _seal(self, step: Step) -> bool:
        key = self.matcher.key(step.name)
        layout, field = key.declaration.storage.layout, step.member
        if field is not None and key.redis_type != "hash":
            raise ValueError(f"an entry of a {key.kind} cannot be sealed in place")
        ask = layout.everything if field is None else layout.find(field)
        stored = await self.db.run(stored_read(key, ask, "repair"))
        if stored is None or is_sealed(stored):
            return False
        (sealed,) = self.db.context.seal(key, (Plaintext.of(stored, field or b""),))
        if field is None:
            unchanged, write = equals(key, stored), layout.addition(sealed)
        else:
            unchanged, write = field_equals(key, field, stored), layout.addition(field, sealed)
        return bool(await self.db.run(commit("seal", [unchanged], [_write(key, write)])))

    async def _upgrade(self, step: Step) -> bool:
        return await self._rewritten(step, brought_up_to_date(self.matcher.key(step.name)))

    async def _move(self, step: Step) -> bool:
        """Move a key from a former name, or from the former template of an upgrade."""
        assert step.other is not None
        successor = self.matcher.key(step.other)
        places = successor.declaration.former_places
        place = next((each for each in places if self._name(each.former_key(successor)) == step.name), None)
        if place is None:
            return False
        if place.upgrade is None:
            call = moved(successor).map(lambda arrival: arrival is Arrival.MOVED)
        else:
            call = brought_up_to_date(successor)
        if await self._rewritten(step, call):
            return True
        if await self.db.run(Plain(EXISTS, (step.name,), step.name)):
            raise ValueError("another key has its present name already: keywright migrate shows both")
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
    """Return a message without the name of the key, with or without its prefix."""
    parts = step.name.split(b":")
    for start in range(len(parts)):
        message = message.replace(repr(b":".join(parts[start:])), f"a key of {step.template}")
    return message


def _write(key: Key, ask: Ask) -> Command[Any]:
    return Command(Operation("repair", ask.verb, Effect.REPEATABLE), key, ask.operands, as_is)
