"""Write your own operations: procedures, commits, commands and scripts.

A kind of key brings the operations of its Redis type. This module is for the operations of your model: those
that read before they write, write several keys together, or need a command or a script of their own. The
shipped systems use nothing else. The guide is docs/operations.md.

    @procedure
    def promote(order: str) -> Steps[bool]:
        details = yield Order(order).get()
        if details is None or details.state != "paid":
            return False
        ready = msgspec.structs.replace(details, state="ready")
        outcome = yield commit(
            "promote order",
            [record_equals(Order(order), details)],
            [Order(order).put(ready), ReadyOrders().add(order)],
        )
        return bool(outcome)

- `procedure` makes an operation of a generator of calls; `Steps[T]` is the type of the generator.
- `commit` applies writes if all checks hold, all or nothing, on one server and across the slots of a cluster.
- `optimistic` repeats an attempt that reads and commits until no other writer was faster.
- `Command` is one Redis command on one key, `raw` is any command.
- `Script` is one Lua file with every key declared.
"""

from keywright.keyspace.call import (
    Command,
    Pause,
    Procedure,
    Ready,
    Refreshing,
    Sliding,
    Steps,
    as_is,
    bound_context,
    nothing,
    patient,
    procedure,
    undecodable,
)
from keywright.keyspace.call import Plain as ServerCommand
from keywright.keyspace.checks import Check, absent, exists, owned
from keywright.keyspace.checks import equals as stored_equals
from keywright.keyspace.checks import field_equals as stored_field_equals
from keywright.keyspace.checks import has_member as stored_member
from keywright.keyspace.checks import hash_is as stored_members_equal
from keywright.keyspace.checks import members_are as stored_set_equals
from keywright.keyspace.commits.journal import ATTEMPTS, commit
from keywright.keyspace.commits.recovery import recover
from keywright.keyspace.commits.retry import Also, Writes, optimistic
from keywright.keyspace.commits.work import Outcome
from keywright.keyspace.conditions import equals, field_equals, has_member, members_are, record_equals
from keywright.keyspace.kinds.bulk import BulkRead
from keywright.keyspace.kinds.hold import acquire, extend, release
from keywright.keyspace.raw_commands import raw
from keywright.keyspace.script import Script
from keywright.keyspace.slots import slot_of
from keywright.keyspace.wires import Effect, Operation, Reply, Rounds, Wire

__all__ = [
    "ATTEMPTS",
    "Also",
    "BulkRead",
    "Check",
    "Command",
    "Effect",
    "Operation",
    "Outcome",
    "Pause",
    "Procedure",
    "Ready",
    "Refreshing",
    "Reply",
    "Rounds",
    "Script",
    "ServerCommand",
    "Sliding",
    "Steps",
    "Wire",
    "Writes",
    "absent",
    "acquire",
    "as_is",
    "bound_context",
    "commit",
    "equals",
    "exists",
    "extend",
    "field_equals",
    "has_member",
    "members_are",
    "nothing",
    "optimistic",
    "owned",
    "patient",
    "procedure",
    "raw",
    "record_equals",
    "recover",
    "release",
    "slot_of",
    "stored_equals",
    "stored_field_equals",
    "stored_member",
    "stored_members_equal",
    "stored_set_equals",
    "undecodable",
]
