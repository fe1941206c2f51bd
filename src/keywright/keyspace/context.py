"""The database as a call sees it: names, expiries, keyrings, slots.

Bindings are made when a database is opened; a declaration holds only their defaults.
"""

from __future__ import annotations

import copy
import random
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import UTC, datetime
from functools import partial
from typing import TYPE_CHECKING, Any

from keywright.errors import CrossSlotError, DeclarationError, UsageError, ValueRefusedError, excerpt
from keywright.keyspace.cached_reads import Cached, longest_seconds, required
from keywright.keyspace.call import Call
from keywright.keyspace.codecs import Ciphertext, Keyring, Plaintext, Sealable, SealPlace, is_sealed
from keywright.keyspace.misuse import explained, explained_constructor, raise_explained
from keywright.keyspace.slots import slot_of
from keywright.keyspace.wires import Reply, Wire

if TYPE_CHECKING:
    from keywright.keyspace.channel import Channel
    from keywright.keyspace.expiry import Expiry
    from keywright.keyspace.key import Key
    from keywright.keyspace.space import Keyspace


@explained_constructor
class Binding:
    """One keyspace in one database: its prefix, version, number, expiry overrides, keyring and cache."""

    def __init__(
        self,
        space: Keyspace,
        *,
        prefix: str | None = None,
        version: str | None = None,
        expiry: Mapping[type[Key], Expiry | None] | None = None,
        keyring: Keyring | None = None,
        database: int | None = None,
        cached: Mapping[type[Key], Cached] | None = None,
    ) -> None:
        self.space = space
        self.database = space.database if database is None else require_number(database, space.name)
        self.prefix = space.prefix if prefix is None else prefix
        self.version = space.version if version is None else version
        self.expiry = dict(expiry or {})
        self.keyring = keyring
        self.cached = {key: required(key, each) for key, each in (cached or {}).items()}
        for what, keys in (("expiry", self.expiry), ("cache", self.cached)):
            for key in keys:
                if key._space is not space:
                    raise DeclarationError(
                        key.__name__,
                        f"is not a key of {space.name!r}",
                        f"Bind its {what} with its own keyspace.",
                    )

    @property
    def lead(self) -> bytes:
        """The prefix of every key name of this keyspace, with its version and colons."""
        return b"".join(part.encode() + b":" for part in (self.prefix, self.version) if part)

    def cached_classes(self) -> Iterable[tuple[type[Key], Cached]]:
        """Return the classes whose reads are cached, with what is declared or bound for each."""
        each = ((kind, self.cached.get(kind, kind._cached)) for kind in self.space.keys)
        return [(kind, cached) for kind, cached in each if cached]


def require_number(database: int | None, space: str) -> int | None:
    """Return the number of a database. Raise DeclarationError if it is not one."""
    if database is not None and (
        isinstance(database, bool) or not isinstance(database, int) or not 0 <= database < 2**31
    ):
        raise DeclarationError(
            f"Keyspace({space!r})",
            f"has the database {excerpt(database)}, which is not a number from 0",
            "Write database=1, as in redis://localhost:6379/1.",
        )
    return database


class _Leads(dict["Keyspace", bytes]):
    """The leads of keyspaces, made when they are first met: every name of a key begins with one.

    A keyspace of another database than the connected one has none, so that it is neither read nor written.
    """

    def __init__(self, bindings: Mapping[Keyspace, Binding]) -> None:
        self.bindings = bindings
        self.database: int | None = None
        self.cached: dict[type[Key], float] = {}

    def __missing__(self, space: Keyspace) -> bytes:
        binding = self.bindings.get(space) or Binding(space)
        if self.database is not None and binding.database not in (None, self.database):
            raise UsageError(
                f"the keyspace {space.name!r} is in database {binding.database}, and this connection is to "
                f"database {self.database}. Connect to that one: connect(url, db={binding.database})."
            )
        lead = self[space] = binding.lead
        for kind, cached in binding.cached_classes():
            self.cached[kind] = longest_seconds(cached)
        return lead


class Context:
    """The bindings of one database, its clock, and whether it has slots."""

    def __init__(
        self,
        bindings: Iterable[Binding] = (),
        *,
        sharded: bool = False,
        now: Callable[[], datetime] | None = None,
        randomness: random.Random | None = None,
    ) -> None:
        try:
            self.bindings = {binding.space: binding for binding in bindings}
        except (AttributeError, TypeError) as error:
            raise UsageError(
                f"{excerpt(bindings)} cannot be bound. Pass bindings of keyspaces: shop.bind(prefix='a')."
            ) from error
        self.prefixes = _Leads(self.bindings)
        self.cached = self.prefixes.cached
        """The classes whose reads are cached in this database, with the longest time in seconds."""
        self.sharded = sharded
        self.now = now or _utc_now
        self.injected_clock = now is not None
        self.random = randomness or random.Random(time.time_ns())
        self.overrides: dict[type[Key], Expiry | None] = {}
        for binding in self.bindings.values():
            self.overrides.update(binding.expiry)
        self._literal = False
        self.server = "the server"
        """The product and version, for errors."""
        self.field_expiry: bool | None = None
        """Whether single fields of a hash can expire; None if it is not known."""
        self.expiring_batches = False
        """Whether one command (MSETEX) writes many values that expire. It is new, and rules may deny it."""

    @property
    def database(self) -> int | None:
        """The number of the database that is connected; None without a server."""
        return self.prefixes.database

    @database.setter
    def database(self, number: int) -> None:
        self.prefixes.clear()
        self.cached.clear()
        self.prefixes.database = number

    @property
    def spaces(self) -> list[Keyspace]:
        """The keyspaces of this database that it was opened with, or that were used."""
        bound = (
            space
            for space, binding in self.bindings.items()
            if self.database is None or binding.database in (None, self.database)
        )
        return list(dict.fromkeys((*bound, *self.prefixes)))

    @property
    def merging(self) -> bool:
        """Whether many commands of one sort may be merged: GETs into MGET. Not worth it by slot."""
        return not (self.sharded or self._literal)

    @property
    def in_transaction(self) -> bool:
        """Whether the commands are part of a transaction, so that no other call may precede them."""
        return self._literal

    def caches(self) -> bool:
        """Return whether a keyspace that is bound or was used has a class whose reads are cached."""
        for space in self.spaces:
            self.prefixes[space]
        return bool(self.cached)

    def cached_prefixes(self) -> tuple[bytes, ...]:
        """Return what the names of all cached classes begin with. No prefix begins with another one."""
        leads = {self.prefixes[kind._space] + kind._template.literal_prefix for kind in self.cached}
        shortest: list[bytes] = []
        for lead in sorted(leads):
            if not shortest or not lead.startswith(shortest[-1]):
                shortest.append(lead)
        return tuple(shortest)

    def literal(self) -> Context:
        """Return a context for commands that must be sent unmerged, as in a transaction."""
        context = copy.copy(self)
        context._literal = True
        return context

    def name(self, key: Key | Channel[Any]) -> bytes:
        """Return the full name of a key or channel in this database."""
        try:
            return self.prefixes[key._space] + key._name
        except (AttributeError, TypeError) as error:
            raise_explained(Context.name, (self, key), {}, error)

    def expiry_for(self, key: Key) -> Expiry | None:
        """Return the expiry that a write gives to a key in this database."""
        expiry = self.expiry_of(key.__class__)
        return expiry if expiry is None or expiry.by_kind else expiry.of_key(key)

    def expiry_of(self, key: type[Key]) -> Expiry | None:
        """Return the expiry of a class: that of the binding, else the declared one."""
        try:
            return self.overrides.get(key, key._expiry)
        except (AttributeError, TypeError) as error:
            raise_explained(Context.expiry_of, (self, key), {}, error)

    def now_ms(self) -> int:
        """Return the time of the clock in milliseconds since 1970."""
        return round(self.now().timestamp() * 1000)

    def one_slot(self, names: Sequence[bytes]) -> bool:
        """Return whether one script may touch all of these names on this database."""
        return not self.sharded or len({slot_of(name) for name in names}) <= 1

    def require_one_slot(self, names: Sequence[bytes]) -> None:
        """Raise CrossSlotError on a cluster if these names are in several slots."""
        if not self.sharded:
            return
        slots = {slot_of(name): name for name in names}
        if len(slots) > 1:
            raise CrossSlotError([(name, slot) for slot, name in slots.items()])

    def seal(self, key: Key, operands: tuple[Any, ...]) -> tuple[Any, ...]:
        """Encrypt the operands that a sealed codec left as plaintext, each for its place."""
        if not any(isinstance(operand, Plaintext) for operand in operands):
            return operands
        if self.keyring_of(type(key)) is None and not any(type(operand) is Plaintext for operand in operands):
            return tuple(_in_clear(key, item) if isinstance(item, Sealable) else item for item in operands)
        keyring, place = self._keyring(type(key)), self._place(type(key), self.name(key))
        return tuple(
            keyring.seal(operand, place._replace(member=operand.member))
            if isinstance(operand, Plaintext)
            else operand
            for operand in operands
        )

    def placed(self, kind: type[Key], name: bytes, reply: Reply) -> Reply:
        """Add its place to every value of a reply that has the form of a seal, so that its codec can open it.

        Bytes of a clear member may look like a seal too, or be copied from a sealed one: they stay closed.
        """
        if isinstance(reply, bytes):
            if not is_sealed(reply):
                return reply
            return Ciphertext.at(reply, self._place(kind, name), partial(self._keyring, kind))
        if isinstance(reply, list):
            return [self.placed(kind, name, item) for item in reply]
        return reply

    def _place(self, kind: type[Key], name: bytes) -> SealPlace:
        binding = self.bindings.get(kind._space) or Binding(kind._space)
        prefix, version = (binding.prefix or "").encode(), (binding.version or "").encode()
        return SealPlace(kind._template.source.encode(), prefix, version, name)

    def keyring_of(self, kind: type[Key]) -> Keyring | None:
        """Return the keyring that is bound for a class, or None."""
        try:
            binding = self.bindings.get(kind._space)
        except (AttributeError, TypeError) as error:
            raise_explained(Context.keyring_of, (self, kind), {}, error)
        return None if binding is None else binding.keyring

    def _keyring(self, kind: type[Key]) -> Keyring:
        keyring = self.keyring_of(kind)
        if keyring is None:
            raise DeclarationError(
                kind._template.source,
                "stores sealed values, but no keyring is bound",
                f"Open the database with {kind._space.name}.bind(keyring=Keyring.from_env()).",
            )
        return keyring


@explained
def preview(call: Call[Any], context: Context | None = None) -> list[Wire]:
    """Return the commands of the first round trip of a call, for tests without a server."""
    return list(next(call.rounds(context or Context())))


def _in_clear(key: Key, item: Sealable) -> bytes:
    if is_sealed(item):
        raise ValueRefusedError(key._template.source, "what does not look like a seal", "what does")
    return bytes(item)


def _utc_now() -> datetime:
    return datetime.now(UTC)
