"""The exceptions of the library, split by who is wrong. Systems add their own below these.

    KeywrightError
    ├── DeclarationError        the declaration itself, found at import or by check()
    ├── UsageError              the caller of a sound declaration
    │   ├── VariableError       a key variable is outside its alphabet
    │   ├── ValueRefusedError   a value its codec cannot write
    │   ├── UnknownKeyError     a key name that no template of the keyspace matches
    │   ├── CrossSlotError      an atomic call whose keys live in several slots
    │   ├── TakenError          a relation that would break another one
    │   ├── UnprovedError       a model that `keywright check` refuses
    │   └── MissingDependencyError  an optional dependency is not installed; also a ModuleNotFoundError
    ├── StoredDataError         what Redis holds disagrees with the declaration
    │   ├── WrongTypeError      the key holds another Redis type
    │   ├── IntentError         an intent of a journal that may not be carried out
    │   └── SealError           a sealed value that no key of the keyring opens
    ├── MessageError            a published message disagrees with the declaration of its channel
    ├── DumpError               a file is not a dump that can be read
    ├── WorkerError             a worker process of a tool ended before its work was done
    └── EngineError             the server refused, or could not be reached
        ├── ConnectionLostError the server was not reached; calling again is safe
        ├── OutcomeUnknownError the connection was lost after sending; it may have been applied
        │   └── UnfinishedCommitError  a commit across slots is decided, but not applied everywhere yet
        ├── DeadlineError       the server did not answer in time
        ├── ServerRefusedError  the server answered with an error
        ├── MalformedReplyError the server answered in a form that no Redis uses
        ├── ScriptError         a Lua script raised on the server
        ├── CapabilityError     the server lacks a feature the call needs
        ├── UnderReplicatedError  too few replicas confirmed a write in time; `applied` says if it was applied
        └── ConflictError       compare-and-set kept losing to other writers

Errors carry fields, compose their own message and end with the remedy.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import ClassVar

__all__ = [
    "CapabilityError",
    "ConflictError",
    "ConnectionLostError",
    "CrossSlotError",
    "DeadlineError",
    "DeclarationError",
    "DumpError",
    "EngineError",
    "IntentError",
    "KeywrightError",
    "MalformedReplyError",
    "MessageError",
    "MissingDependencyError",
    "OutcomeUnknownError",
    "ScriptError",
    "SealError",
    "ServerRefusedError",
    "StoredDataError",
    "TakenError",
    "UnderReplicatedError",
    "UnfinishedCommitError",
    "UnknownKeyError",
    "UnprovedError",
    "UsageError",
    "ValueRefusedError",
    "VariableError",
    "WorkerError",
    "WrongTypeError",
    "dependencies_of",
    "did_you_mean",
    "excerpt",
]


class KeywrightError(Exception):
    """The base of every error raised on purpose by Keywright."""

    exit_code: ClassVar[int] = 1
    """What the command line ends with: 1 the data or the declaration, 2 the caller, 3 the server."""


class DeclarationError(KeywrightError):
    """A declaration that cannot mean anything sound."""

    def __init__(self, subject: str, reason: str, remedy: str) -> None:
        self.subject = subject
        self.reason = reason
        self.remedy = remedy
        super().__init__(f"{subject}: {reason}. {remedy}")


class UsageError(KeywrightError):
    """The caller asked a sound declaration for something it cannot do."""

    exit_code = 2


class UnprovedError(UsageError):
    """A model that `keywright check` refuses, given to a tool that relies on its proofs."""

    def __init__(self, model: str, findings: Sequence[str], remedy: str) -> None:
        self.model = model
        self.findings = list(findings)
        self.remedy = remedy
        super().__init__(
            f"{model} is not proved. Finding 1 of {len(findings)}: {findings[0]}\n"
            f"Correct the declaration; `keywright check {model}` lists every finding. {remedy}"
        )


class VariableError(UsageError):
    """A key variable outside its alphabet; no key was made."""

    def __init__(
        self, template: str, variable: str, expected: str, found: object, wanted: type | None = None
    ) -> None:
        self.template = template
        self.variable = variable
        self.expected = expected
        self.found = found
        super().__init__(
            f"<{variable}> of {template!r} must be {expected}, not {excerpt(found)}. {_as(wanted, found)}"
        )


class ValueRefusedError(UsageError):
    """A value that its codec cannot write; nothing was sent."""

    def __init__(self, template: str, expected: str, found: str) -> None:
        self.template = template
        self.expected = expected
        self.found = found
        super().__init__(
            f"{template!r} stores {expected}, not {found}. Convert the value before you pass it."
        )


class UnknownKeyError(UsageError):
    """A key name that no template of the keyspace matches."""

    def __init__(self, name: bytes, space: str, near: str | None = None) -> None:
        self.name = name
        self.space = space
        self.near = near
        hint = f"The closest template is {near!r}." if near else "Check the prefix the keyspace is bound to."
        super().__init__(f"{excerpt(name)} is not a key of {space!r}. {hint}")


class CrossSlotError(UsageError):
    """An atomic call or a command whose keys live in several slots; nothing was sent."""

    def __init__(self, keys: Sequence[tuple[bytes, int]], command: str = "") -> None:
        self.keys = tuple(keys)
        self.command = command
        listing = ", ".join(f"{excerpt(name)} (slot {slot})" for name, slot in self.keys)
        other = (
            "send one command per slot" if command else "use atomic(..., spread=True) to be atomic per slot"
        )
        super().__init__(
            f"one {command or 'atomic call'} must stay in one slot, but its keys do not: {listing}. "
            f"Give the templates a common hash tag, or {other}."
        )


class TakenError(UsageError):
    """A relation refused because one side has another partner; nothing was changed."""

    def __init__(self, relation: str, holder: object, partner: object, wanted: object) -> None:
        self.relation = relation
        self.holder = holder
        self.partner = partner
        self.wanted = wanted
        super().__init__(
            f"{relation}: {holder!r} is related to {partner!r} already, so it cannot be to {wanted!r}. "
            f"Clear that relation first, or use replace()."
        )


class MissingDependencyError(UsageError, ModuleNotFoundError):
    """A module that a feature needs is not installed."""

    def __init__(self, feature: str, module: str, requirement: str) -> None:
        self.feature = feature
        self.module = module
        self.requirement = requirement
        quoted = f"'{requirement}'" if "[" in requirement else requirement  # a shell would expand brackets
        super().__init__(
            f"{feature} needs {module}, which is not installed. Install it with: pip install {quoted}",
            name=module,
        )


@contextmanager
def dependencies_of(feature: str, *, install: str) -> Iterator[None]:
    """Raise MissingDependencyError if an import inside the block does not find a third party's module.

    `feature` is a noun with its article, and `install` the requirement that pip is to install.
    """
    try:
        yield
    except ModuleNotFoundError as error:
        missing = missing_dependency(error, feature, install)
        if missing is None:
            raise
        raise missing from error


def missing_dependency(error: Exception, feature: str, install: str) -> MissingDependencyError | None:
    """Return the error to raise instead of a failed import; None if no installation repairs it."""
    if not isinstance(error, ModuleNotFoundError) or isinstance(error, MissingDependencyError):
        return None
    # A module of ours that is missing is a defect.
    if error.name is None or error.name.startswith("keywright"):
        return None
    return MissingDependencyError(feature, error.name.partition(".")[0], install)


class MessageError(KeywrightError):
    """A published message that does not decode as its channel declares. The subscription goes on."""

    def __init__(self, channel: bytes, template: str, expected: str, found: str) -> None:
        self.channel = channel
        self.template = template
        self.expected = expected
        self.found = found
        super().__init__(
            f"a message on {excerpt(channel)} ({template!r}) should be {expected}, but is {found}. "
            f"Correct its publisher, or iterate again to go on with the next message."
        )


class DumpError(KeywrightError):
    """A file that is not a dump of a database, or is damaged, or has a form that is not known."""

    exit_code = 3

    def __init__(self, path: str, offset: int, reason: str) -> None:
        self.path = path
        self.offset = offset
        self.reason = reason
        super().__init__(
            f"{path} cannot be read as a dump: {reason} (byte {offset:,}). "
            f"Take it again, for example with `redis-cli --rdb FILE`."
        )


class WorkerError(KeywrightError):
    """A worker process of a tool that ended before its work was done. The tool has no result then."""

    exit_code = 3

    def __init__(self, reason: str) -> None:
        self.reason = reason
        super().__init__(
            f"a worker process {reason}, so there is no result. Run it again; with fewer --jobs if the "
            f"memory is short."
        )


class StoredDataError(KeywrightError):
    """A stored value that does not decode as declared; it was left as it is."""

    def __init__(self, key: bytes, template: str, expected: str, found: str) -> None:
        self.key = key
        self.template = template
        self.expected = expected
        self.found = found
        super().__init__(
            f"{excerpt(key)} ({template!r}) should hold {expected}, but holds {found}. {self.remedy}"
        )

    @property
    def remedy(self) -> str:
        """Return what the reader can do."""
        return "Correct the stored value, or declare the shape it has."


class WrongTypeError(StoredDataError):
    """The key holds another Redis type than the one declared."""

    @property
    def remedy(self) -> str:
        return "Another writer uses this name: rename one of the two, or delete the stray key."


class IntentError(StoredDataError):
    """An intent of a journal that is malformed or not permitted. It was not carried out."""

    def __init__(self, key: bytes, template: str, intent: bytes, found: str) -> None:
        self.intent = intent.decode("utf-8", "backslashreplace")
        super().__init__(key, template, "plans that may be carried out", found)

    @property
    def remedy(self) -> str:
        if not self.intent:
            return "Run recover() of that version while no program uses the database, or delete the key."
        return (
            f"It was set aside. `keywright recover MODEL --remove {self.intent} --yes` removes it; "
            f"audit the model then."
        )


class SealError(StoredDataError):
    """A sealed value that no key of the bound keyring opens, or a value in clear where a seal is declared."""

    @property
    def remedy(self) -> str:
        if self.found == "plaintext":
            return "If a program of yours wrote it, declare the type in clear with formerly=; else delete it."
        return "Bind a keyring that still holds the key that sealed it."


class EngineError(KeywrightError):
    """The server refused, or could not be reached."""

    exit_code = 3

    @property
    def is_transient(self) -> bool:
        """Return whether a retry may help: the server is away, busy, or about to change its role."""
        return isinstance(self, ConnectionLostError | OutcomeUnknownError | DeadlineError)


class ConnectionLostError(EngineError):
    """The server could not be reached; the commands were not sent, or are safe to repeat."""

    def __init__(self, server: str, reason: str) -> None:
        self.server = server
        self.reason = reason
        super().__init__(
            f"{server} cannot be reached: {reason.rstrip('.')}. Check that it runs, then call again."
        )


class OutcomeUnknownError(EngineError):
    """The connection was lost after sending a command that is not safe to repeat."""

    def __init__(self, server: str, command: str, key: bytes) -> None:
        self.server = server
        self.command = command
        self.key = key
        super().__init__(
            f"{server} went away after {command} {excerpt(key)} was sent: it may or may not have been "
            f"applied, and repeating it would not be safe. Read the key to find out, then decide."
        )


class UnfinishedCommitError(OutcomeUnknownError):
    """A commit across slots was decided, but a slot could not be written. It is applied later, and once."""

    def __init__(self, commit: str, reason: KeywrightError) -> None:
        self.server: str = getattr(reason, "server", "")
        self.command = commit
        self.key = b""
        self.reason = reason
        EngineError.__init__(
            self,
            f"{commit} is decided, but not applied in every slot yet: {reason} Do not repeat it because of "
            f"that: recover(), or the next commit on one of its keys, applies the rest of it.",
        )


class DeadlineError(EngineError):
    """The server did not answer in time; what was sent may still be applied."""

    def __init__(self, server: str, seconds: float) -> None:
        self.server = server
        self.seconds = seconds
        super().__init__(
            f"{server} did not answer within {seconds:g} s. What was sent may still be applied; "
            f"raise the timeout, or look for a slow command on the server."
        )


class ServerRefusedError(EngineError):
    """The server answered a command with an error."""

    def __init__(self, command: str, key: bytes, reply: str) -> None:
        self.command = command
        self.key = key
        self.reply = reply
        subject = f"{command} {excerpt(key)}" if key else command
        super().__init__(f"{subject} was refused: {reply.rstrip('.')}. {_remedy_for(reply)}")

    @property
    def is_transient(self) -> bool:
        return _code_of(self.reply) in _TRANSIENT


class MalformedReplyError(EngineError):
    """The server answered in a form that the command does not have."""

    def __init__(self, command: str, reason: str) -> None:
        self.command = command
        self.reason = reason
        super().__init__(
            f"the reply to {command} does not have the form of the command: {reason}. Check that the server "
            f"is Redis or Valkey, and what stands between."
        )


class ScriptError(EngineError):
    """A Lua script raised on the server; a script that raises may have written before it did."""

    def __init__(self, script: str, reply: str) -> None:
        self.script = script
        self.reply = reply
        super().__init__(
            f"script {script!r} failed: {reply.rstrip('.')}. Report it with the server's version."
        )


class CapabilityError(EngineError):
    """The server lacks a feature the call needs; nothing was sent."""

    def __init__(self, feature: str, server: str, needs: str) -> None:
        self.feature = feature
        self.server = server
        self.needs = needs
        super().__init__(
            f"{server} has no {feature}, which arrived in {needs}. Upgrade it, or avoid this call."
        )


class UnderReplicatedError(EngineError):
    """Too few replicas confirmed a write in time.

    It was applied on the primary, unless `applied` is False: a commit across slots is given up as long as it
    is undecided. `reply` is the server's reply.
    """

    def __init__(self, wanted: int, confirmed: int, reply: object = None, *, applied: bool = True) -> None:
        self.wanted = wanted
        self.confirmed = confirmed
        self.reply = reply
        self.applied = applied
        count = f"{confirmed} of {wanted} replicas confirmed"
        super().__init__(
            f"the write was applied, but {count} it in time: it is lost if the primary dies now. "
            f"Check the replicas, or ask for fewer."
            if applied
            else f"{count} the preparation of the write in time, so it was given up and nothing was applied. "
            f"Check the replicas, or ask for fewer, then call again."
        )


class ConflictError(EngineError):
    """Compare-and-set kept losing to other writers; this call changed nothing."""

    def __init__(self, operation: str, attempts: int) -> None:
        self.operation = operation
        self.attempts = attempts
        super().__init__(
            f"{operation} lost to other writers {attempts} times and changed nothing. "
            f"Call again, or write this key from fewer places."
        )


_REMEDIES = {
    "NOAUTH": "Give the password in the URL.",
    "WRONGPASS": "Check user and password in the URL.",
    "NOPERM": "Grant this user the command and the key pattern.",
    "READONLY": "This is a replica: connect to the primary.",
    "MISCONF": "The server cannot save its data: free disk space and look at its log; it recovers by itself.",
    "OOM": "The server is at maxmemory: free memory or raise the limit.",
    "LOADING": "The server is still loading its data: call again in a moment.",
    "CLUSTERDOWN": "The cluster does not cover every slot: check CLUSTER INFO.",
    "BUSYGROUP": "The consumer group is there already.",
    "NOGROUP": "Create the consumer group first.",
}


_TRANSIENT = frozenset(
    ["LOADING", "CLUSTERDOWN", "MASTERDOWN", "TRYAGAIN", "BUSY", "READONLY", "UNBLOCKED", "NOREPLICAS"]
)


def _code_of(reply: str) -> str:
    return reply.split(" ", 1)[0]


def _remedy_for(reply: str) -> str:
    code = _code_of(reply)
    if code == "NOPERM" and any(f"'{verb}'" in reply.lower() for verb in ("getex", "pexpire", "pexpireat")):
        return (
            "Reading renews an expiry that slides: let this user renew it (keywright acl --renew), or bind "
            "the key with expiry=None where it is only read."
        )
    return _REMEDIES.get(code, "Look the reply up in the Redis documentation of the command.")


def _as(wanted: type | None, found: object) -> str:
    """Return the advice to a caller who has a value of another type."""
    if wanted is str and type(found) is int:
        return f"Pass it as text: {str(found)!r}."
    if wanted is str and type(found) is bytes:
        return f"Pass it as text: {found.decode('utf-8', 'backslashreplace')!r}."
    if wanted is int and type(found) is str and found.isdecimal():
        return f"Pass it as a number: {int(found)}."
    if wanted is str and type(found) is str:
        return "Pass a value of that form, or declare a wider type of ids, such as Annotated[str, Segment()]."
    return "Pass a value of that form."


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """Return " Did you mean 'x'?" for a misspelt name, or nothing if no known name is like it."""
    folded = {each.casefold(): each for each in known}
    near = difflib.get_close_matches(name.casefold(), folded, 1)
    return f" Did you mean {folded[near[0]]!r}?" if near else ""


def excerpt(found: object, limit: int = 120) -> str:
    """Return the repr of a value for a message, cut at `limit` characters."""
    text = repr(found)
    return text if len(text) <= limit else f"{text[:limit]}… ({len(text)} characters)"
