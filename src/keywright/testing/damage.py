"""PlantedFault injection: damage a healthy database in every way that its declaration allows for.

Driven by the declaration alone, so it fits any keyspace. Every fault has one code and one key, and no key
gets two, so that an audit can be checked for each of them.
"""

from __future__ import annotations

import random
import string
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from keywright.engine import Database
from keywright.keyspace import Call, Keyspace
from keywright.keyspace.alphabets import Alphabet
from keywright.keyspace.call import Plain
from keywright.keyspace.codecs import Codec, CodecError, is_sealed
from keywright.keyspace.expiry import Expiry
from keywright.keyspace.key import Key
from keywright.keyspace.layouts import Ask
from keywright.keyspace.references import Place
from keywright.keyspace.relations import Index, ManyToMany, ManyToOne, OneToOne
from keywright.keyspace.wires import Effect, Operation

__all__ = ["PlantedFault", "Planter", "plant"]

GARBAGE = (b"\xff\xfe\xfd", b"{", b"", b"neither this nor that", b"-")
HOUR_MS = 3_600_000


class PlantedFault(NamedTuple):
    """One planted fault: the code that an audit should report, the full name of the key, and the damage."""

    code: str
    name: bytes
    what: str


def plant(
    db: Database,
    spaces: Iterable[Keyspace],
    *,
    each: int = 5,
    unknown: int = 20,
    seed: int = 0,
    older: Mapping[type[Key], Callable[[Any], Call[Any]]] | None = None,
) -> list[PlantedFault]:
    """Damage a database: at most `each` faults of one sort on one template, and `unknown` strange keys.

    `older` has, for key classes with older shapes, the call that leaves a key in one. The same seed on the
    same data does the same damage.
    """
    planter = Planter(db, tuple(spaces), each, seed)
    planter.relations()
    planter.references()
    planter.older(older or {})
    planter.values()
    planter.strangers(unknown)
    return planter.faults


class Planter:
    """A planter of faults. It keeps track of the damaged keys."""

    def __init__(self, db: Database, spaces: Sequence[Keyspace], each: int, seed: int) -> None:
        self.db = db
        self.spaces = spaces
        self.each = each
        self.random = random.Random(seed)
        self.faults: list[PlantedFault] = []
        self._taken: set[bytes] = set()
        self._keys = {kind: self._stored(kind) for space in spaces for kind in space}

    def relations(self) -> None:
        """Plant half relations, dangling entries, and records that are in no index."""
        for space in self.spaces:
            for link in space.links:
                if isinstance(link, Index):
                    self._index(link.of, link.by)
                elif isinstance(link, ManyToOne):
                    self._many_to_one(link)
                elif isinstance(link, OneToOne):
                    self._one_to_one(link)
                elif isinstance(link, ManyToMany):
                    self._many_to_many(link)

    def references(self) -> None:
        """Delete targets of references."""
        for space in self.spaces:
            for reference in space.references:
                if not reference.required:
                    continue
                for key in self._victims(reference.source):
                    place = next(iter(reference.places(key, self._value(key))), None)
                    if place is None or not self._free(place.key):
                        continue
                    self._remove(place)
                    self._planted("KW401", key, f"removed {reference.name}", place.key)

    def older(self, writers: Mapping[type[Key], Callable[[Any], Call[Any]]]) -> None:
        for kind, write in writers.items():
            for key in self._victims(kind):
                self.db.run(write(key))
                self._planted("KW103", key, "an older shape")

    def values(self) -> None:
        """Plant every fault that concerns one key alone."""
        for space in self.spaces:
            for kind in space:
                expiries = (self._endless, self._too_long, self._endless_field, self._expiring_field)
                values = (self._undecodable, self._incomplete, self._unsealed, self._broken_seal)
                groups = (self._without_group, self._foreign_group)
                for damage in (*expiries, *values, *groups, self._wrong_type, self._other_version):
                    for key in self._victims(kind):
                        damage(key)

    def strangers(self, count: int) -> None:
        """Write keys that match no template."""
        leads = [self._prefix(space) for space in self.spaces]
        for number in range(count):
            name = self.random.choice(leads) + f"stray-{number % 3}:{self.random.randrange(10**9)}".encode()
            if any(space.find(name, self.db.context) for space in self.spaces):
                continue
            self._raw(b"SET", name, b"whose is this?")
            self.faults.append(PlantedFault("KW101", name, "a stranger"))

    def _index(self, of: type[Key], by: type[Any]) -> None:
        index = by()
        self._taken.add(self.db.context.name(index))
        for key in self._victims(of):
            self._send(b"SREM", index, index.declaration.encode(_identity(key)))
            self._planted("KW405", key, f"left out of {by.__name__}")
        for fresh in self._fresh(_only_alphabet(of), of):
            self._send(b"SADD", index, index.declaration.encode(fresh))
            self.faults.append(PlantedFault("KW404", self.db.context.name(index), f"names {fresh!r}"))

    def _many_to_one(self, link: ManyToOne[Any, Any]) -> None:
        for key in self._victims(link.forward):
            inverse = _made(link.inverse, self.db.run(key.get()))
            self._send(b"SREM", inverse, inverse.declaration.encode(_identity(key)))
            self._planted("KW402", key, "removed from its inverse", inverse)
        for inverse in self._victims(link.inverse, sets=True):
            for fresh in self._fresh(_only_alphabet(link.forward), link.forward, 1):
                self._send(b"SADD", inverse, inverse.declaration.encode(fresh))
                self._planted("KW403", inverse, f"knows {fresh!r}")
        if link.index is not None:
            self._index(link.forward, link.index)

    def _one_to_one(self, link: OneToOne[Any, Any]) -> None:
        for key in self._victims(link.forward):
            inverse = _made(link.inverse, self.db.run(key.get()))
            if self._free(inverse):
                self._send(b"UNLINK", inverse)
                self._planted("KW402", key, "its inverse is gone", inverse)
        ids = zip(
            self._fresh(_only_alphabet(link.inverse), link.inverse),
            self._fresh(_only_alphabet(link.forward), link.forward),
            strict=False,
        )
        for fresh, owner in ids:
            inverse = _made(link.inverse, fresh)
            self._send(b"SET", inverse, inverse.declaration.encode(owner))
            self._planted("KW403", inverse, f"points to {owner!r}")
        for of, by in ((link.forward, link.index), (link.inverse, link.inverse_index)):
            if by is not None:
                self._index(of, by)

    def _many_to_many(self, link: ManyToMany[Any, Any]) -> None:
        for key in self._victims(link.forward, sets=True):
            partner = next(iter(self.db.run(key.members())))
            inverse = _made(link.inverse, partner)
            self._send(b"SREM", inverse, inverse.declaration.encode(_identity(key)))
            self._planted("KW402", key, "removed from its inverse", inverse)
        for inverse in self._victims(link.inverse, sets=True):
            for fresh in self._fresh(_only_alphabet(link.forward), link.forward, 1):
                self._send(b"SADD", inverse, inverse.declaration.encode(fresh))
                self._planted("KW403", inverse, f"knows {fresh!r}")

    def _endless(self, key: Any) -> None:
        expiry = self.db.context.expiry_of(type(key))
        if expiry and not expiry.optional and self._expiry(key) and self._send(b"PTTL", key) > 0:
            self._send(b"PERSIST", key)
            self._planted("KW301", key, "made endless")

    def _too_long(self, key: Any) -> None:
        longest = self._expiry(key)
        if longest and self._send(b"PTTL", key) > 0:
            self._send(b"PEXPIRE", key, 3 * longest + HOUR_MS)
            self._planted("KW302", key, "made to last longer")

    def _endless_field(self, key: Any) -> None:
        """Remove the expiry of a field that is declared with one."""
        for field, expiry in self._fields(key):
            if expiry and not expiry.optional and self._field_command(b"HPERSIST", key, field) == 1:
                self._planted("KW304", key, "given an endless field")
                return

    def _expiring_field(self, key: Any) -> None:
        """Give an expiry to a field that is declared without one."""
        for field, expiry in self._fields(key):
            if expiry is None and field not in key.declaration.storage.required(key):
                self._field_command(b"HPEXPIRE", key, field, HOUR_MS)
                self._planted("KW305", key, "given a field that expires")
                return

    def _fields(self, key: Any) -> list[tuple[bytes, Expiry | None]]:
        """Return the stored fields with their declared expiries, where a class declares any."""
        rules = key.declaration.field_expiry
        if rules is None or not self.db.server().can("field expiry"):
            return []
        return [(field, rules.of(field)) for field in self._send(b"HKEYS", key)]

    def _without_group(self, key: Any) -> None:
        """Delete a declared consumer group of a stream."""
        name = self.db.context.name(key)
        for group in key.declaration.storage.groups[:1]:
            if self._raw_words(b"XGROUP", b"DESTROY", name, group.encode()):
                self._planted("KW207", key, "without a consumer group")

    def _foreign_group(self, key: Any) -> None:
        """Create a consumer group that is not declared."""
        if key.declaration.storage.groups:
            self._raw_words(b"XGROUP", b"CREATE", self.db.context.name(key), b"foreign", b"$")
            self._planted("KW208", key, "given a consumer group")

    def _field_command(self, verb: bytes, key: Any, field: bytes, *operands: int) -> int:
        (reply,) = self._send(verb, key, *operands, b"FIELDS", 1, field)
        return int(reply)

    def _undecodable(self, key: Any) -> None:
        if key.declaration.sealed or key.declaration.upgrades:
            return
        command = key.declaration.storage.malformed(_refused, key)
        if command is not None:
            self._ask(command, key)
            self._planted("KW202", key, "made undecodable")

    def _incomplete(self, key: Any) -> None:
        required = key.declaration.storage.required(key)
        if not required or key.declaration.upgrades:
            return
        stored = self._send(b"HKEYS", key)
        if len(stored) > 1 and (there := [member for member in required if member in stored]):
            self._send(b"HDEL", key, self.random.choice(there))
            self._planted("KW203", key, "lost a member")

    def _unsealed(self, key: Any) -> None:
        if self._is_sealed_string(key) and is_sealed(self._send(b"GET", key)):
            self._send(b"SET", key, b"plaintext", b"KEEPTTL")
            self._planted("KW204", key, "stored in clear")

    def _broken_seal(self, key: Any) -> None:
        if self._is_sealed_string(key) and is_sealed(stored := self._send(b"GET", key)):
            self._send(b"SET", key, stored[:-1] + bytes([stored[-1] ^ 1]), b"KEEPTTL")
            self._planted("KW205", key, "its seal was broken")

    def _is_sealed_string(self, key: Key) -> bool:
        return key.redis_type == "string" and key.declaration.sealed

    def _wrong_type(self, key: Any) -> None:
        self._send(b"UNLINK", key)
        if key.redis_type == "string":
            self._send(b"SADD", key, b"member")
        else:
            self._send(b"SET", key, b"a string")
        self._planted("KW201", key, "made another type")

    def _other_version(self, key: Any) -> None:
        binding = self.db.context.bindings.get(key.declaration.space)
        version = key.declaration.space.version if binding is None else binding.version
        if version is None:
            return
        name = self._prefix(key.declaration.space) + b"v0:" + bytes(key)
        dump = self._send(b"DUMP", key)
        self._raw(b"RESTORE", name, 0, dump, b"REPLACE")
        self._taken.add(self.db.context.name(key))
        self.faults.append(PlantedFault("KW102", name, "a copy of an older version"))

    def _victims(self, kind: type[Key], *, sets: bool = False) -> Iterator[Any]:
        """Yield some stored keys of a class without a fault. The caller need not damage each."""
        planted = len(self.faults)
        for key in self._keys.get(kind, ()):
            if len(self.faults) - planted >= self.each:
                return
            if self._free(key) and (not sets or key.redis_type == "set"):
                yield key

    def _free(self, key: Key) -> bool:
        return self.db.context.name(key) not in self._taken

    def _planted(self, code: str, key: Key, what: str, *others: Key) -> None:
        self.faults.append(PlantedFault(code, self.db.context.name(key), what))
        self._taken.update(map(self.db.context.name, (key, *others)))

    def _stored(self, kind: type[Key]) -> list[Any]:
        found = sorted(set(self.db.scan(kind)), key=bytes)
        self.random.shuffle(found)
        return found

    def _expiry(self, key: Key) -> int | None:
        expiry = self.db.context.expiry_of(type(key))
        if expiry is not None and expiry.optional:
            return expiry.longest_ms
        expiry = self.db.context.expiry_for(key)
        if expiry is None:
            return None
        # Of one that follows from the value it is only known that a year is more than any sample lasts.
        return expiry.longest_ms or 24 * 365 * HOUR_MS

    def _value(self, key: Key) -> Any:
        storage = key.declaration.storage
        stored = self._ask(storage.layout.everything, key)
        if key.declaration.sealed:
            stored = self.db.context.placed(type(key), self.db.context.name(key), stored)
        return storage.value(stored, key)

    def _remove(self, place: Place) -> None:
        entry, layout = place.stored_field, place.key.declaration.storage.layout
        if entry is None:
            self._send(b"UNLINK", place.key)
            return
        removal = layout.removal(place.key, entry, self._ask(layout.find(entry), place.key))
        self._ask(removal.command, place.key)

    def _fresh(self, alphabet: Alphabet[Any], kind: type[Key], count: int | None = None) -> Iterator[Any]:
        """Yield ids that no stored key has."""
        wanted = self.each if count is None else count
        patterns = [alphabet.render(_identity(key)) for key in self._keys[kind][:20]] or [
            alphabet.render(sample) for sample in alphabet.samples
        ]
        for _ in range(50 * wanted):
            if not wanted:
                return
            text = "".join(map(self._altered, self.random.choice(patterns)))
            try:
                fresh = alphabet.parse(text)
                name = self.db.context.name(kind(fresh))  # type: ignore[call-arg]  # one variable
            except ValueError:
                continue
            if name not in self._taken and not self._raw(b"EXISTS", name):
                self._taken.add(name)
                wanted -= 1
                yield fresh

    def _altered(self, char: str) -> str:
        for alike in (string.digits, "abcdef", string.ascii_lowercase, string.ascii_uppercase):
            if char in alike and self.random.random() < 0.8:
                return self.random.choice(alike)
        return char

    def _prefix(self, space: Keyspace) -> bytes:
        binding = self.db.context.bindings.get(space)
        prefix = space.prefix if binding is None else binding.prefix
        return f"{prefix}:".encode() if prefix else b""

    def _send(self, verb: bytes, key: Key, *operands: bytes | int) -> Any:
        return self._raw(verb, self.db.context.name(key), *operands)

    def _ask(self, ask: Ask, key: Key) -> Any:
        return self._send(ask.verb, key, *ask.operands)

    def _raw_words(self, verb: bytes, word: bytes, name: bytes, *operands: bytes) -> Any:
        """Send a command whose subcommand comes before the key."""
        return self.db.run(Plain(Operation("plant", verb, Effect.ONCE), (word, name, *operands), name))

    def _raw(self, verb: bytes, name: bytes, *operands: bytes | int) -> Any:
        return self.db.run(Plain(Operation("plant", verb, Effect.ONCE), (name, *operands), name))


def _refused(codec: Codec[Any]) -> bytes | None:
    """Return bytes that a codec refuses, or None if it accepts any."""
    for bad in GARBAGE:
        try:
            codec.decode(bad)
        except CodecError:
            return bad
    return None


def _identity(key: Key) -> Any:
    """Return the only variable of a related key."""
    return key.declaration.values(key)[0]


def _only_alphabet(kind: type[Key]) -> Alphabet[Any]:
    (alphabet,) = kind.declaration.template.alphabets.values()
    return alphabet


def _made(kind: Callable[..., Any], identity: Any) -> Any:
    return kind(identity)
