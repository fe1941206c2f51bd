"""The edits of keys that are sides of relations: both sides and their indexes change in one commit."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from keywright.engine import AsyncDatabase
from keywright.errors import KeywrightError
from keywright.explorer.edit_forms import (
    Change,
    DeleteKey,
    EditForm,
    FormTexts,
    InvalidInput,
    forms_of_kind,
)
from keywright.explorer.edit_states import State, name_state
from keywright.explorer.inputs import Input, input_of
from keywright.keyspace import Call, Key, Keyspace, Set, gather
from keywright.keyspace.checks import Check, has_member
from keywright.keyspace.codecs import CodecError
from keywright.keyspace.relations import Index, Link, ManyToMany, ManyToOne, OneToOne

__all__ = ["Roles"]

MOST_PARTNERS = 100
OF_AN_ENTRY = frozenset({"put", "remove"})
Relation = ManyToOne[Any, Any] | OneToOne[Any, Any] | ManyToMany[Any, Any]


class Roles:
    """The roles of key classes in the relations of some keyspaces, and the edits that they allow."""

    def __init__(self, spaces: Iterable[Keyspace]) -> None:
        self._sides: dict[type[Key], list[tuple[Relation, bool]]] = {}
        self._kept: dict[type[Key], str] = {}
        self._listed: dict[type[Key], list[Index[Any]]] = {}
        for space in spaces:
            for link in space.links:
                self._add(link)

    def _add(self, link: Link) -> None:
        if isinstance(link, Index):
            self._kept[link.by] = link.name
            self._listed.setdefault(link.of, []).append(link)
            return
        assert isinstance(link, ManyToOne | OneToOne | ManyToMany)
        self._sides.setdefault(link.forward, []).append((link, True))
        self._sides.setdefault(link.inverse, []).append((link, False))
        for index in link.keys[2:]:
            self._kept[index] = link.name

    def why_not(self, kind: type[Key]) -> str | None:
        """Return why keys of a class are not edited by themselves."""
        if kind in self._kept:
            return f"It is an index, which is written with {self._kept[kind]}."
        if len(self._sides.get(kind, ())) > 1:
            return "It is a side of several relations. Change it in a program."
        return None

    def forms(self, kind: type[Key]) -> tuple[type[EditForm], ...]:
        """Return the edits of a class."""
        if self.why_not(kind) is not None:
            return ()
        if kind not in self._sides:
            return forms_of_kind(kind)
        return (AddPartner, RemovePartner, PartAll) if issubclass(kind, Set) else (Relate, PartAll)

    def offered(self, kind: type[Key], *, entry: bool, exists: bool) -> list[type[EditForm]]:
        """Return the edits that the page of a key, or of one entry of it, offers."""
        return [
            form
            for form in self.forms(kind)
            if (form.action in OF_AN_ENTRY) == entry and (exists or form.creates)
        ]

    def form(
        self, db: AsyncDatabase, key: Key, action: str, entry: bytes | None = None, shape: int = 0
    ) -> EditForm | None:
        """Return the form of an action on a key, or None if its class has no such action."""
        found = next((form for form in self.forms(type(key)) if form.action == action), None)
        if found is None or (entry is None) == (action in OF_AN_ENTRY):
            return None
        made = found(db, key, entry, shape)
        if isinstance(made, RelationForm):
            relation, forward = self._sides[type(key)][0]
            made.bind(relation, forward=forward)
        if isinstance(made, DeleteKey):
            parts = [kind for kind in type(key).declaration.space if kind.declaration.part_of is type(key)]
            variables = {name: getattr(key, name) for name in key.declaration.template.variables}
            made.parts = [kind(**variables) for kind in parts if kind not in self._sides]
            made.related = [kind(**variables) for kind in parts if kind in self._sides]
        return made

    def listing(self, key: Key, *, present: bool) -> list[Call[Any]]:
        """Return the writes that list a new key in the indexes of its class, or drop it from them."""
        identity = next(iter(key.declaration.values(key)), None)
        indexes: list[Any] = [link.by() for link in self._listed.get(type(key), ())]
        return [index.add(identity) if present else index.remove(identity) for index in indexes]


class RelationForm(EditForm):
    """An edit of one side. `relation` and `forward` are set by `bind`."""

    relation: Relation
    forward: bool

    def bind(self, relation: Relation, *, forward: bool) -> None:
        self.relation, self.forward = relation, forward

    @property
    def identity(self) -> Any:
        return self.key.declaration.values(self.key)[0]

    async def joining(self, other: Any) -> Change:
        """Return the change that relates this side to another, and ends relations that exclude it."""
        a, b = (self.identity, other) if self.forward else (other, self.identity)
        link = self.relation
        if isinstance(link, ManyToMany):
            return _in_many(link, a, b, present=True)
        if isinstance(link, ManyToOne):
            return await self._moving(link, a, b)
        return await self._pairing(link, a, b)

    def parting(self, other: Any) -> Change:
        """Return the change that ends one relation, if both sides have it."""
        a, b = (self.identity, other) if self.forward else (other, self.identity)
        link = self.relation
        if isinstance(link, ManyToMany):
            return _in_many(link, a, b, present=False)
        if isinstance(link, ManyToOne):
            return Change([link.holds(a, b)], link.parted(a, b))
        return Change([link.holds(a, b), link.reversed().holds(b, a)], link.parted(a, b))

    async def _moving(self, link: ManyToOne[Any, Any], a: Any, b: Any) -> Change:
        old = await self._held(link.of(a))
        if old == b:
            raise _unchanged()
        left: Any = None if old is None else link.inverse(old)  # type: ignore[call-arg]  # one variable
        former = [] if left is None else [left.remove(a)]
        return Change([link.holds(a, old)], [*former, *link.joined(a, b)])

    async def _pairing(self, link: OneToOne[Any, Any], a: Any, b: Any) -> Change:
        old_b, old_a = await self._held(gather(link.of(a), link.inverse_of(b)))
        if (old_b, old_a) == (b, a):
            raise _unchanged()
        checks, writes = [link.holds(a, old_b), link.reversed().holds(b, old_a)], []
        ended = [(link.reversed(), old_b, a)] if old_b not in (None, b) else []
        ended += [(link, old_a, b)] if old_a not in (None, a) else []
        for side, former, other in ended:
            checks.append(side.holds(former, other))
            forward: Any = side.forward(former)  # type: ignore[call-arg]  # one variable
            index: Any = None if side.index is None else side.index()
            writes += [forward.delete(), *([] if index is None else [index.remove(former)])]
        return Change(checks, [*writes, *link.joined(a, b)])

    async def _held(self, read: Call[Any]) -> Any:
        try:
            return await self.db.run(read)
        except KeywrightError as error:
            raise InvalidInput({"": str(error)}) from error


def _in_many(link: ManyToMany[Any, Any], a: Any, b: Any, *, present: bool) -> Change:
    forward: Any = link.forward(a)  # type: ignore[call-arg]  # a side has one variable
    inverse: Any = link.inverse(b)  # type: ignore[call-arg]
    check = has_member(forward, forward.declaration.encode(b), present=not present)
    writes = [forward.add(b), inverse.add(a)] if present else [forward.remove(b), inverse.remove(a)]
    return Change([check], writes)


def _unchanged() -> InvalidInput:
    return InvalidInput({"": "Nothing is changed: they are related."})


class Relate(RelationForm):
    action, title, creates = "relate", "Relate to another", True

    def inputs(self, state: State) -> list[Input]:
        return [input_of("partner", "Related to", self.key.declaration.storage.item, state.stored)]

    async def change(self, state: State, texts: Mapping[str, str]) -> Change:
        read = FormTexts(texts, self.inputs(state))
        partner = read.value("partner", self.key.declaration.storage.item)
        read.finish()
        joined = await self.joining(partner)
        return Change([*state.checks, *joined.checks], joined.writes)


class AddPartner(RelationForm):
    action, title, creates = "relate", "Relate one more", True

    async def state(self) -> State:
        return await name_state(self.db, self.key)

    def inputs(self, state: State) -> list[Input]:
        return [input_of("partner", "Related to", self.key.declaration.storage.item)]

    async def change(self, state: State, texts: Mapping[str, str]) -> Change:
        read = FormTexts(texts, self.inputs(state))
        partner = read.value("partner", self.key.declaration.storage.item)
        read.finish()
        return await self.joining(partner)


class RemovePartner(RelationForm):
    action, title, removes = "remove", "End a relation", True

    def refusal(self, state: State) -> str | None:
        return super().refusal(state) or ("There is no such entry." if not state.stored else None)

    async def change(self, state: State, texts: Mapping[str, str]) -> Change:
        assert self.entry is not None
        try:
            partner = self.key.declaration.storage.item.decode(self.entry)
        except CodecError as error:
            raise InvalidInput({"": "It does not decode. Repair the finding of the audit."}) from error
        parted = self.parting(partner)
        return Change([*state.checks, *parted.checks], parted.writes)


class PartAll(RelationForm):
    action, title, removes = "delete", "End the relation", True

    def refusal(self, state: State) -> str | None:
        if state.facts.stored_type == "set" and (state.facts.size or 0) > MOST_PARTNERS:
            return f"It has more than {MOST_PARTNERS} relations. End them one by one, or in a program."
        return super().refusal(state)

    async def change(self, state: State, texts: Mapping[str, str]) -> Change:
        storage = self.key.declaration.storage
        stored = state.stored if isinstance(state.stored, list) else [state.stored]
        try:
            partners = [storage.item.decode(each) for each in stored if each is not None]
        except CodecError as error:
            raise InvalidInput({"": "It does not decode. Repair the finding of the audit."}) from error
        checks: list[Check] = [*state.checks]
        writes: list[Call[Any]] = []
        for partner in partners:
            parted = self.parting(partner)
            checks += parted.checks
            writes += parted.writes
        return Change(checks, writes)
