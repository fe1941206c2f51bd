"""Relations between keys: both directions and their indexes, written together or not at all.

Each write reads what is there, then commits with a check that it still is; a commit that loses to
another writer starts over, a bounded number of times. On a single server the commit is one script;
across the slots of a cluster it goes through the journal. Ids are the variables of the keys.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, Generic, TypeVar, cast

from keywright.errors import DeclarationError, TakenError
from keywright.keyspace.alphabets import Signed64
from keywright.keyspace.call import Call, Ready, Steps, nothing, procedure
from keywright.keyspace.checks import Check, equals, has_member, owned
from keywright.keyspace.codecs import Codec
from keywright.keyspace.commits.journal import commit, settled
from keywright.keyspace.commits.retry import Also, Writes, optimistic
from keywright.keyspace.composition import gather, gather_list
from keywright.keyspace.key import Key
from keywright.keyspace.kinds.set import Set
from keywright.keyspace.kinds.sorted_set import SortedSet
from keywright.keyspace.kinds.value import Value
from keywright.keyspace.misuse import explained

if TYPE_CHECKING:
    pass

A = TypeVar("A")
B = TypeVar("B")
T = TypeVar("T")


class Link:
    """Base of relations and indexes: a name, a keyspace, and the keys it keeps."""

    def __init__(self, name: str, keys: Sequence[type[Key]]) -> None:
        self.name = name
        self.keys = tuple(keys)
        spaces = {key._space for key in keys}
        if len(spaces) != 1:
            raise DeclarationError(
                name, "its keys belong to different keyspaces", "Relate keys of one keyspace."
            )
        spaces.pop().links.append(self)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.name})"


class ManyToOne(Link, Generic[A, B]):
    """Each A has at most one B (`forward`); each B knows all of its A (`inverse`)."""

    def __init__(self, forward: type[Value[B]], inverse: type[Set[A]], index: type[Set[A]] | None) -> None:
        indexes = [] if index is None else [index]
        name = _match(forward, inverse, (Value, Set), indexes)
        super().__init__(name, [forward, inverse, *indexes])
        self.forward = forward
        self.inverse = inverse
        self.index = index

    def of(self, a: A) -> Call[B | None]:
        """Return what `a` is related to, or None."""
        key = _key(self.forward, a)
        return settled(key, key.get())

    def inverse_of(self, b: B) -> Call[set[A]]:
        """Return all that are related to `b`."""
        return _key(self.inverse, b).members()

    @explained
    def assign(self, a: A, b: B, *, also: Also = ()) -> Call[bool]:
        """Relate a to b, with the writes in `also` in the same step. Return False if they were related.

        Raise TakenError, and change nothing, if a has another partner: `replace` moves it.
        """
        return self._move(a, b, also, may_move=False)

    @explained
    def replace(self, a: A, b: B, *, also: Also = ()) -> Call[bool]:
        """Relate a to b and end the former relation of a. Return False if they were related."""
        return self._move(a, b, also, may_move=True)

    @explained
    def clear(self, a: A, *, also: Also = ()) -> Call[bool]:
        """End the relation of a. Return whether it had one."""
        forward = _key(self.forward, a)

        def attempt() -> Steps[bool | None]:
            old = yield forward.get()
            if old is None:
                return (yield from _only(self.name, also))
            return (yield from _try(self.name, [_is(forward, old)], [*self._unlink(a, old), *also]))

        return optimistic(f"clear {self.name}", attempt, also)

    @procedure
    def clear_inverse(self, b: B) -> Steps[int]:
        """End every relation of b. Return how many there were."""
        members: set[A] = yield _key(self.inverse, b).members()
        ended = yield gather_list(self._clear_from(a, b) for a in members)
        return sum(ended)

    def _clear_from(self, a: A, b: B) -> Call[bool]:
        forward = _key(self.forward, a)

        def attempt() -> Steps[bool | None]:
            old = yield forward.get()
            if old != b:
                # The set names an a that belongs elsewhere: leave the forward side, mend the set.
                yield from _try(self.name, [_is(forward, old)], [_key(self.inverse, b).remove(a)])
                return False
            return (yield from _try(self.name, [_is(forward, old)], self._unlink(a, b)))

        return optimistic(f"clear {self.name}", attempt)

    def _move(self, a: A, b: B, also: Also, *, may_move: bool) -> Call[bool]:
        forward = _key(self.forward, a)

        def attempt() -> Steps[bool | None]:
            old = yield forward.get()
            if old == b:
                return (yield from _only(self.name, also))
            if old is not None and not may_move:
                raise TakenError(self.name, a, old, b)
            writes = [*self._unlink(a, old, keep_index=True), *self.joined(a, b), *also]
            return (yield from _try(self.name, [_is(forward, old)], writes))

        return optimistic(f"assign {self.name}", attempt, also)

    def holds(self, a: A, b: B | None) -> Check:
        """Return a check for `commit`: a is related to b, or to nothing for None."""
        return _is(_key(self.forward, a), b)

    def joined(self, a: A, b: B) -> Writes:
        """Return the writes that relate a free a to b, for a commit that checks `holds(a, None)`."""
        return [_key(self.forward, a).set(b), _key(self.inverse, b).add(a), *_indexed(self.index, a)]

    def parted(self, a: A, b: B) -> Writes:
        """Return the writes that end the relation of a and b, for a commit that checks `holds(a, b)`."""
        return self._unlink(a, b)

    def _unlink(self, a: A, old: B | None, *, keep_index: bool = False) -> Writes:
        if old is None:
            return []
        writes: Writes = [_key(self.inverse, old).remove(a)]
        if keep_index:
            return writes
        return [_key(self.forward, a).delete(), *writes, *_unindexed(self.index, a)]


class OneToOne(Link, Generic[A, B]):
    """Each A has at most one B and each B at most one A."""

    def __init__(
        self,
        forward: type[Value[B]],
        inverse: type[Value[A]],
        index: type[Set[A]] | None,
        other: type[Set[B]] | None,
    ) -> None:
        indexes = [key for key in (index, other) if key is not None]
        name = _match(forward, inverse, (Value, Value), indexes)
        super().__init__(name, [forward, inverse, *indexes])
        self.forward = forward
        self.inverse = inverse
        self.index = index
        self.inverse_index = other

    def of(self, a: A) -> Call[B | None]:
        """Return what `a` is related to, or None."""
        key = _key(self.forward, a)
        return settled(key, key.get())

    def inverse_of(self, b: B) -> Call[A | None]:
        """Return what `b` is related to, or None."""
        key = _key(self.inverse, b)
        return settled(key, key.get())

    @explained
    def assign(self, a: A, b: B, *, also: Also = ()) -> Call[bool]:
        """Relate a and b, with the writes in `also` in the same step. Return False if they were related.

        Raise TakenError, and change nothing, if either has another partner: `replace` ends those first.
        """
        return self._join(a, b, also, may_move=False)

    @explained
    def replace(self, a: A, b: B, *, also: Also = ()) -> Call[bool]:
        """Relate a and b and end the relations of both, in one step. Return False if they were related."""
        return self._join(a, b, also, may_move=True)

    @explained
    def clear(self, a: A, *, also: Also = ()) -> Call[bool]:
        """End the relation of a. Return whether it had one."""
        forward = _key(self.forward, a)

        def attempt() -> Steps[bool | None]:
            b = yield forward.get()
            if b is None:
                return (yield from _only(self.name, also))
            checks = [_is(forward, b)]
            back = yield _key(self.inverse, b).get()
            # A half link: the partner belongs to another, whose relation must stay.
            writes = self.parted(a, b) if back == a else [forward.delete(), *_unindexed(self.index, a)]
            checks.append(_is(_key(self.inverse, b), back))
            return (yield from _try(self.name, checks, [*writes, *also]))

        return optimistic(f"clear {self.name}", attempt, also)

    @explained
    def clear_inverse(self, b: B, *, also: Also = ()) -> Call[bool]:
        """End the relation of b. Return whether it had one."""
        return self.reversed().clear(b, also=also)

    def reversed(self) -> OneToOne[B, A]:
        """Return the same relation from the other side; not another declaration."""
        mirror = cast("OneToOne[B, A]", object.__new__(OneToOne))
        mirror.name, mirror.keys = self.name, self.keys
        mirror.forward, mirror.inverse = self.inverse, self.forward
        mirror.index, mirror.inverse_index = self.inverse_index, self.index
        return mirror

    def _join(self, a: A, b: B, also: Also, *, may_move: bool) -> Call[bool]:
        forward, inverse = _key(self.forward, a), _key(self.inverse, b)

        def attempt() -> Steps[bool | None]:
            old_b, old_a = yield gather(forward.get(), inverse.get())
            if old_b == b and old_a == a:
                return (yield from _only(self.name, also))
            if not may_move and old_b not in (None, b):
                raise TakenError(self.name, a, old_b, b)
            if not may_move and old_a not in (None, a):
                raise TakenError(self.name, b, old_a, a)
            checks = [_is(forward, old_b), _is(inverse, old_a)]
            writes: Writes = []
            if old_b not in (None, b):
                yield from self.reversed()._leave(old_b, a, checks, writes)
            if old_a not in (None, a):
                yield from self._leave(old_a, b, checks, writes)
            return (yield from _try(self.name, checks, [*writes, *self.joined(a, b), *also]))

        return optimistic(f"assign {self.name}", attempt, also)

    def _leave(self, former: A, b: B, checks: list[Check], writes: Writes) -> Steps[None]:
        """Collect the writes that end the side of a former partner of b, unless it has another by now."""
        forward = _key(self.forward, former)
        held = yield forward.get()
        checks.append(_is(forward, held))
        if held == b:
            writes += [forward.delete(), *_unindexed(self.index, former)]

    def holds(self, a: A, b: B | None) -> Check:
        """Return a check for `commit`: the side of a holds b, or nothing for None. See `reversed()`."""
        return _is(_key(self.forward, a), b)

    def joined(self, a: A, b: B) -> Writes:
        """Return the writes that relate a and b, for a commit that checks that both sides are free."""
        writes: Writes = [_key(self.forward, a).set(b), _key(self.inverse, b).set(a)]
        return [*writes, *_indexed(self.index, a), *_indexed(self.inverse_index, b)]

    def parted(self, a: A, b: B) -> Writes:
        """Return the writes that end the relation of a and b, for a commit that checks both sides."""
        writes: Writes = [_key(self.forward, a).delete(), _key(self.inverse, b).delete()]
        return [*writes, *_unindexed(self.index, a), *_unindexed(self.inverse_index, b)]


class ManyToMany(Link, Generic[A, B]):
    """Each A has a set of B and each B the set of its A."""

    def __init__(self, forward: type[Set[B]], inverse: type[Set[A]]) -> None:
        name = _match(forward, inverse, (Set, Set))
        super().__init__(name, [forward, inverse])
        self.forward = forward
        self.inverse = inverse

    def of(self, a: A) -> Call[set[B]]:
        """Return all that `a` is related to."""
        key = _key(self.forward, a)
        return settled(key, key.members())

    def inverse_of(self, b: B) -> Call[set[A]]:
        """Return all that `b` is related to."""
        return _key(self.inverse, b).members()

    @explained
    def assign(self, a: A, b: B, *, also: Also = ()) -> Call[bool]:
        """Relate a and b. Return False if they were related."""
        return self._set(a, b, also, present=True)

    @explained
    def clear(self, a: A, b: B, *, also: Also = ()) -> Call[bool]:
        """End the relation of a and b. Return whether there was one."""
        return self._set(a, b, also, present=False)

    @explained
    def replace(self, a: A, partners: Iterable[B], *, also: Also = ()) -> Call[bool]:
        """Make these the only partners of a, in one step. Return False if they were."""
        wanted = set(partners)
        forward = _key(self.forward, a)

        def attempt() -> Steps[bool | None]:
            old: set[B] = yield forward.members()
            if old == wanted:
                return (yield from _only(self.name, also))
            gone, new = old - wanted, wanted - old
            checks = [has_member(forward, forward._encode(b)) for b in gone]
            checks += [has_member(forward, forward._encode(b), present=False) for b in new]
            writes: Writes = [_key(self.inverse, b).remove(a) for b in gone]
            writes += [_key(self.inverse, b).add(a) for b in new]
            writes += [change for change in (_some(forward.remove, gone), _some(forward.add, new)) if change]
            return (yield from _try(self.name, checks, [*writes, *also]))

        return optimistic(f"replace {self.name}", attempt, also)

    @explained
    def clear_all(self, a: A, *, also: Also = ()) -> Call[bool]:
        """End every relation of a. Return whether there were any."""
        return self.replace(a, (), also=also)

    def _clear_from(self, a: A, b: B) -> Call[bool]:
        """End a relation seen from b; if a does not hold it, repair the side of b."""
        forward, inverse = _key(self.forward, a), _key(self.inverse, b)

        def attempt() -> Steps[bool | None]:
            there = yield forward.has(b)
            checks = [has_member(forward, forward._encode(b), present=there)]
            forget: Writes = [forward.remove(b)] if there else []
            return (yield from _try(self.name, checks, [*forget, inverse.remove(a)]))

        return optimistic(f"clear {self.name}", attempt)

    def _set(self, a: A, b: B, also: Also, *, present: bool) -> Call[bool]:
        forward, inverse = _key(self.forward, a), _key(self.inverse, b)

        def attempt() -> Steps[bool | None]:
            there = yield forward.has(b)
            if there == present:
                return (yield from _only(self.name, also))
            checks = [has_member(forward, forward._encode(b), present=there)]
            change: Writes = (
                [forward.add(b), inverse.add(a)] if present else [forward.remove(b), inverse.remove(a)]
            )
            return (yield from _try(self.name, checks, [*change, *also]))

        return optimistic(f"assign {self.name}", attempt, also)


class Index(Link, Generic[A]):
    """A set that names every existing key of one kind, kept with it."""

    def __init__(self, of: type[Key], by: type[Set[A]]) -> None:
        name = f"{of.__name__} in {by.__name__}"
        if issubclass(by, SortedSet):
            raise DeclarationError(
                name,
                f"{by.__name__} is a sorted set, and an index has no scores",
                f"Use a Set, or LiveIndex({of.__name__}, by={by.__name__}), whose put() takes the score.",
            )
        _require(name, by, Set)
        if len(of._template.variables) != 1 or by._template.variables:
            raise DeclarationError(name, "an index lists keys of one variable in one set", "Use such keys.")
        if not same_ids(by._codec, _variable(of)):
            raise DeclarationError(
                name,
                f"{by.__name__} holds {by._codec.expected}, "
                f"but {of.__name__} is named by {_variable(of).expected}",
                "Give both the same id type.",
            )
        super().__init__(name, [of, by])
        self.of = of
        self.by = by

    def put(self, key: Key, write: Call[Any], *, also: Also = ()) -> Call[None]:
        """Write a key and list it in the index, in one step. `write` is a single command on the key."""
        member = key._values[0]
        return commit(self.name, [owned(key)], [write, _key(self.by).add(member), *also]).map(nothing)

    @procedure
    def delete(self, key: Key, *, also: Also = ()) -> Steps[bool]:
        """Delete a key and drop it from the index, in one step. Return whether the index listed it."""
        member = key._values[0]
        there = yield _key(self.by).has(member)
        yield commit(self.name, [owned(key)], [key.delete(), _key(self.by).remove(member), *also])
        return bool(there)

    def members(self) -> Call[set[A]]:
        return _key(self.by).members()


@explained
def many_to_one(
    forward: type[Value[B]],
    *,
    inverse: type[Set[A]],
    index: type[Set[A]] | None = None,
) -> ManyToOne[A, B]:
    """Relate many to one: `forward` holds the one, `inverse` the many; `index` names all that have one."""
    return ManyToOne(forward, inverse, index)


@explained
def one_to_one(
    forward: type[Value[B]],
    *,
    inverse: type[Value[A]],
    index: type[Set[A]] | None = None,
    inverse_index: type[Set[B]] | None = None,
) -> OneToOne[A, B]:
    """Relate one to one: each side holds the other; index sets move with them."""
    return OneToOne(forward, inverse, index, inverse_index)


@explained
def many_to_many(forward: type[Set[B]], *, inverse: type[Set[A]]) -> ManyToMany[A, B]:
    """Relate many to many: each side holds the set of the others."""
    return ManyToMany(forward, inverse)


@explained
def index(of: type[Key], *, by: type[Set[A]]) -> Index[A]:
    """Keep a set that names every existing key of one kind."""
    return Index(of, by)


@procedure
def erase(key: Key) -> Steps[bool]:
    """Delete a key with all that is part of it: its parts, its relations on both sides, its index entries.

    What is part of it are the keys declared `part_of` its class. Relations of those parts are ended
    first, each in a step of its own; then the key, its parts and its index entry go in one step. A
    process that dies in between leaves a key with fewer relations, and erasing it again finishes.
    What another writer relates meanwhile stays related, on both sides.
    """
    kind = type(key)
    # By name: a part may declare the variables in another order.
    variables = {name: getattr(key, name) for name in kind._template.variables}
    identity = next(iter(variables.values()), None)
    family = [kind, *(part for part in kind._space.keys if part._part_of is kind)]
    links = kind._space.links
    related = {side for link in links if not isinstance(link, Index) for side in link.keys}
    there = yield key.exists()
    yield gather_list(_ended(link, family, identity) for link in links)
    # The sides of relations are gone by now, or belong to a writer who came in between.
    parts = [part(**variables) for part in family if part not in related]
    writes: Writes = [part.delete() for part in parts]
    writes += [
        _key(link.by).remove(identity) for link in links if isinstance(link, Index) and link.of in family
    ]
    if writes:
        yield commit(f"erase {type(key).__name__}", [owned(part) for part in parts], writes, subject=key)
    return bool(there)


def _ended(link: Link, family: list[type[Key]], identity: Any) -> Call[Any]:
    if isinstance(link, ManyToOne):
        if link.forward in family:
            return link.clear(identity)
        return link.clear_inverse(identity) if link.inverse in family else Ready(None)
    if isinstance(link, OneToOne):
        if link.forward in family:
            return link.clear(identity)
        return link.clear_inverse(identity) if link.inverse in family else Ready(None)
    if isinstance(link, ManyToMany):
        if link.forward in family:
            return link.clear_all(identity)
        return _from_the_other_side(link, identity) if link.inverse in family else Ready(None)
    return Ready(None)


@procedure
def _from_the_other_side(link: ManyToMany[Any, Any], b: Any) -> Steps[Any]:
    members = yield _key(link.inverse, b).members()
    yield gather_list(link._clear_from(a, b) for a in members)


def _try(name: str, checks: list[Check], writes: Writes) -> Steps[bool | None]:
    outcome = yield commit(name, checks, writes)
    return True if outcome else None


def _only(name: str, also: Also) -> Steps[bool]:
    """Write `also` alone: the relation is already as wanted."""
    if also:
        yield commit(name, [], also)
    return False


def _key(kind: Callable[..., T], *identity: Any) -> T:
    return kind(*identity)


def _is(key: Value[T], value: T | None) -> Check:
    return equals(key, None if value is None else key._encode(value))


def _indexed(kind: type[Set[T]] | None, member: T) -> Writes:
    return [] if kind is None else [_key(kind).add(member)]


def _unindexed(kind: type[Set[T]] | None, member: T) -> Writes:
    return [] if kind is None else [_key(kind).remove(member)]


def _some(change: Callable[..., Call[int]], members: set[T]) -> Call[int] | None:
    return change(*members) if members else None


def _require(name: str, kind: type[Key], wanted: type[Key]) -> None:
    if not issubclass(kind, wanted):
        raise DeclarationError(
            name, f"{kind.__name__} is a {kind.kind}, not a {wanted.kind}", f"Use a {wanted.__name__} here."
        )


def _match(
    forward: type[Key],
    inverse: type[Key],
    kinds: tuple[type[Key], type[Key]],
    indexes: Sequence[type[Key]] = (),
) -> str:
    """Return the name of a relation. Raise DeclarationError if a side does not hold ids of the other."""
    name = f"{forward.__name__} ↔ {inverse.__name__}"
    _require(name, forward, kinds[0])
    _require(name, inverse, kinds[1])
    for each in indexes:
        _require(name, each, Set)
    for holder, named in ((forward, inverse), (inverse, forward)):
        if len(named._template.variables) != 1:
            raise DeclarationError(
                name, f"{named.__name__} has not exactly one variable", "Relate such keys."
            )
        held = holder._codecs[0]
        if held.sealed:
            raise DeclarationError(
                name, f"{holder.__name__} is sealed, so its value cannot be compared", "Do not seal ids."
            )
        if not same_ids(held, _variable(named)):
            raise DeclarationError(
                name,
                f"{holder.__name__} holds {held.expected}, but {named.__name__} is named by "
                f"{_variable(named).expected}",
                "Give both the same id type.",
            )
    return name


def _variable(kind: type[Key]) -> Any:
    return kind._template.alphabets[kind._template.variables[0]]


def same_ids(held: Codec[Any], alphabet: Any) -> bool:
    """Return whether a codec stores exactly the ids of an alphabet."""
    return getattr(held, "alphabet", None) == alphabet or (
        getattr(held, "alphabet", None) is None and held.python_type is alphabet.python_type
    )


def named_elsewhere(holder: type[Key]) -> Iterator[type[Key]]:
    """Yield the kinds whose ids a kind holds for a relation, where it may hold what is no such id."""
    for link in holder._space.links:
        pairs: list[tuple[type[Key] | None, type[Key]]] = []
        if isinstance(link, Index):
            pairs = [(link.by, link.of)]
        elif isinstance(link, ManyToOne | OneToOne | ManyToMany):
            pairs = [(link.forward, link.inverse), (link.inverse, link.forward)]
            if not isinstance(link, ManyToMany):
                pairs.append((link.index, link.forward))
            if isinstance(link, OneToOne):
                pairs.append((link.inverse_index, link.inverse))
        for by, named in pairs:
            if by is not holder or getattr(holder._codecs[0], "alphabet", None) is not None:
                continue
            if _variable(named) != Signed64():  # all that a codec of int has
                yield named
