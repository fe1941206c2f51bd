"""The edits of each kind of key: the inputs of their forms, and the checks and writes of their commits.

The writes are the calls of the kinds, so that encoding, sealing and declared expiries apply. A key that is a
side of a relation has the edits in `relation_forms` instead.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any, ClassVar, NamedTuple

from keywright.engine import AsyncDatabase
from keywright.errors import ValueRefusedError
from keywright.explorer.edit_states import LARGEST, State, entry_state, name_state, whole_state
from keywright.explorer.inputs import Input, entered, input_of, parse
from keywright.explorer.key_reader import MOST_BYTES
from keywright.explorer.presentation import left
from keywright.keyspace import (
    Call,
    Counter,
    Geo,
    Key,
    List,
    Map,
    Record,
    Set,
    SortedSet,
    Stream,
    Value,
    gather_list,
)
from keywright.keyspace.checks import Check
from keywright.keyspace.codecs import Codec, CodecError, Rfc3339
from keywright.keyspace.fields import FieldSet, Member, Shape
from keywright.keyspace.kinds.opener import Opener
from keywright.keyspace.layouts import pairs

__all__ = ["Change", "DeleteKey", "EditForm", "FormTexts", "InvalidInput", "forms_of_kind"]

_BYTES = re.compile(r"""b(['"]).*?(?:\1|…)(?P<reason> \(.*\))?""", re.DOTALL)
_UNITS = {"s": 1, "min": 60, "h": 3600, "d": 86_400}


class InvalidInput(Exception):  # noqa: N818  # a form shows it; it is not an error of the program
    """Texts of a form that cannot be applied: a problem for each input, "" for the form as a whole."""

    def __init__(self, problems: Mapping[str, str]) -> None:
        super().__init__(problems)
        self.problems = dict(problems)


class Change(NamedTuple):
    """The checks and writes of one edit."""

    checks: list[Check]
    writes: list[Call[Any]]


class EditForm:
    """One edit of one key. A class names its action, its title and its button."""

    action: ClassVar[str]
    title: ClassVar[str]
    button: ClassVar[str] = "Show the commands"
    creates: ClassVar[bool] = False
    """Whether the key may be absent."""
    removes: ClassVar[bool] = False

    def __init__(self, db: AsyncDatabase, key: Key, entry: bytes | None = None, shape: int = 0) -> None:
        self.db = db
        self.key: Any = key
        self.entry = entry
        self.shape = shape
        self.hidden = bool(key.hides)

    async def state(self) -> State:
        if self.entry is not None:
            return await entry_state(self.db, self.key, self.entry)
        return await whole_state(self.db, self.key)

    def inputs(self, state: State) -> list[Input]:
        return []

    def shapes(self) -> list[str]:
        """Return the names of the shapes that a new value may have; none if there is one."""
        return []

    def refusal(self, state: State) -> str | None:
        """Return why this edit is not possible on the key as it is stored."""
        if not state.as_declared:
            return f"It is stored as a {state.facts.stored_type}. Delete it, or repair it from the audit."
        if not state.exists and not self.creates:
            return "There is no such key."
        return None

    async def change(self, state: State, texts: Mapping[str, str]) -> Change:
        """Return the checks and writes. Raise InvalidInput."""
        raise NotImplementedError


class FormTexts:
    """The texts of a form, parsed one by one; the problems are reported together."""

    def __init__(self, texts: Mapping[str, str], inputs: Iterable[Input]) -> None:
        self.texts = texts
        self.inputs = {each.name: each for each in inputs}
        self.problems: dict[str, str] = {}

    def text(self, name: str) -> str | None:
        """Return the entered text; None if it was not sent, or is empty and so keeps the stored value."""
        text, made = self.texts.get(name), self.inputs[name]
        if text is None or (made.kept and not text):
            return None
        return entered(text, made.text)

    def changed(self, name: str) -> str | None:
        """Return the entered text if it is not the one that was shown."""
        text = self.text(name)
        return None if text is None or text == self.inputs[name].text else text

    def value(self, name: str, codec: Codec[Any]) -> Any:
        """Return a value; after a problem, None."""
        text = self.text(name)
        if text is None:
            self.problems[name] = f"expected {codec.expected}"
            return None
        return self.parsed(name, codec, text)

    def parsed(self, name: str, codec: Codec[Any], text: str) -> Any:
        try:
            return parse(codec, text)
        except CodecError as error:
            hidden = codec.secret or codec.sealed
            self.problems[name] = f"expected {codec.expected}" if hidden else _words(error, text)
        except (ValueError, OverflowError):
            self.problems[name] = f"expected {codec.expected}"
        return None

    def finish(self) -> None:
        if self.problems:
            raise InvalidInput(self.problems)


def _unreadable(db: AsyncDatabase, state: State) -> str | None:
    """Return why a value that is edited whole cannot be."""
    if not state.exists:
        return None
    if state.stored is None:
        return "It is larger than 1 MiB. Change it in a program."
    older = Opener(type(state.key), db.context).older(state.stored, state.key)
    return older and f"It is stored in the older shape {older.version}. Migrate it, or read it in a program."


def _words(error: CodecError, text: str) -> str:
    """Return an error of a codec with the text that was entered instead of its bytes."""
    found = error.found
    if (match := _BYTES.fullmatch(found)) is not None:
        found = f"“{text[:80]}”{match['reason'] or ''}"
    return f"expected {error.expected}, found {found}"


class SetValue(EditForm):
    action, title, creates = "set", "Change the value", True

    def inputs(self, state: State) -> list[Input]:
        codec = self.key.declaration.storage.item
        return [input_of("value", "Value", codec, state.stored, hidden=self.hidden)]

    def refusal(self, state: State) -> str | None:
        return super().refusal(state) or _unreadable(self.db, state)

    async def change(self, state: State, texts: Mapping[str, str]) -> Change:
        read = FormTexts(texts, self.inputs(state))
        if state.exists and read.changed("value") is None:
            raise InvalidInput({"": "Nothing is changed."})
        value = read.value("value", self.key.declaration.storage.item)
        read.finish()
        key, declared = self.key, self.db.context.expiry_for(self.key)
        if isinstance(key, Counter):
            keeps = declared is None and (state.facts.ttl_ms or -1) > 0
            lasting = [key.expire(timedelta(milliseconds=state.facts.ttl_ms or 0))] if keeps else []
            return Change(state.checks, [key.set(value), *lasting])
        return Change(state.checks, [key.set(value, keep_ttl=declared is None and state.exists)])


class ChangeRecord(EditForm):
    action, title, creates = "change", "Change members", True

    def inputs(self, state: State) -> list[Input]:
        stored, shape = state.members, self.shape_of(state)
        made = [
            input_of(
                _field(member),
                member.stored.decode(),
                member.codec,
                stored.get(member.stored),
                required=member.required,
                hidden=self.hidden,
            )
            for member in shape.members
        ]
        for each, member in zip(made, shape.members, strict=True):
            if not state.exists and member.literals and len(member.literals) == 1:
                each.text = member.literals[0]
        return made

    def refusal(self, state: State) -> str | None:
        return super().refusal(state) or _unreadable(self.db, state)

    def shapes(self) -> list[str]:
        fields = self._fields()
        return [] if isinstance(fields, Shape) else [shape.type.__name__ for shape in self.key.shapes()]

    def shape_of(self, state: State) -> Shape[Any]:
        fields = self._fields()
        if isinstance(fields, Shape):
            return fields
        shapes: tuple[Shape[Any], ...] = self.key.shapes()
        try:
            if state.exists:
                return fields.shape_of(state.members)
        except CodecError:
            pass  # its discriminator is broken: the form corrects it
        return shapes[self.shape % len(shapes)]

    def _fields(self) -> FieldSet[Any]:
        fields: FieldSet[Any] = self.key.declaration.storage.fields_of(self.key)
        return fields

    async def change(self, state: State, texts: Mapping[str, str]) -> Change:
        read, shape = FormTexts(texts, self.inputs(state)), self.shape_of(state)
        if not state.exists:
            return Change(state.checks, [self.key.write(_whole(read, shape))])
        members = {}
        for member in shape.members:
            text = read.changed(_field(member))
            if text is not None:
                members[member.attribute] = _member_value(read, member, text)
        read.finish()
        if not members:
            raise InvalidInput({"": "Nothing is changed."})
        try:
            writes = self.key.changes(**members)
        except ValueRefusedError as error:
            raise InvalidInput({"": f"expected {error.expected}, found {error.found}"}) from error
        return Change(state.checks, [*writes, *self._expiring(state, shape, members)])

    def _expiring(self, state: State, shape: Shape[Any], members: Mapping[str, Any]) -> list[Call[Any]]:
        """Check the record as it will be. Return the write of an expiry that follows from it."""
        if self.key.declaration.sealed:
            return []
        stored = state.members
        for member in shape.members:
            if member.attribute in members:
                encoded = shape.encode(member, members[member.attribute])
                stored.pop(member.stored, None)
                stored |= {} if encoded is None else {member.stored: encoded}
        try:
            value = self.key.declaration.decode_members(self.key, stored)
        except CodecError as error:
            raise InvalidInput({"": f"The record would not be as declared: {error}."}) from error
        declared = self.db.context.expiry_for(self.key)
        if declared is None or not callable(declared.moment):
            return []
        resolved = declared.resolved(value)
        return [] if resolved is None else [self.key.expire_at(resolved.moment)]


def _field(member: Member) -> str:
    return f"member.{member.stored.decode()}"


def _member_value(read: FormTexts, member: Member, text: str) -> Any:
    if not member.required and not text:
        return None
    return read.parsed(_field(member), member.codec, text)


def _whole(read: FormTexts, shape: Shape[Any]) -> Any:
    """Return a new value of a shape."""
    arguments = {}
    for member in shape.members:
        text = read.text(_field(member))
        if not member.required and not text:
            arguments[member.argument] = member.default() if callable(member.default) else member.default
        elif text is None:
            read.problems[_field(member)] = f"expected {member.codec.expected}"
        else:
            arguments[member.argument] = read.parsed(_field(member), member.codec, text)
    read.finish()
    if shape.others is not None:
        arguments[shape.others.argument] = {}
    try:
        return shape.made(arguments)
    except CodecError as error:
        raise InvalidInput({"": str(error)}) from error


class _NewEntry(EditForm):
    """An edit that adds an entry, and checks that there is none."""

    creates = True

    async def state(self) -> State:
        return await name_state(self.db, self.key)

    def absence(self, entry: bytes) -> list[Check]:
        """Return the check that there is no such entry."""
        return [self.key.declaration.storage.layout.absence(self.key, entry)]


class PutField(EditForm):
    action, title = "put", "Change an entry"

    def inputs(self, state: State) -> list[Input]:
        storage, entry = self.key.declaration.storage, self.entry or b""
        field = input_of("field", "Field", storage.field, entry, hidden=self.hidden)
        field.fixed = True
        value = storage.item.for_member(entry)
        return [field, input_of("value", "Value", value, state.stored, hidden=self.hidden)]

    def refusal(self, state: State) -> str | None:
        gone = "There is no such entry." if state.stored is None else None
        return super().refusal(state) or gone

    async def change(self, state: State, texts: Mapping[str, str]) -> Change:
        read, storage = FormTexts(texts, self.inputs(state)), self.key.declaration.storage
        if read.changed("value") is None:
            raise InvalidInput({"": "Nothing is changed."})
        value = read.value("value", storage.item)
        read.finish()
        return Change(state.checks, [self.key.put(storage.field.decode(self.entry), value)])


class AddField(_NewEntry):
    action, title = "add", "Add an entry"

    def inputs(self, state: State) -> list[Input]:
        storage = self.key.declaration.storage
        return [input_of("field", "Field", storage.field), input_of("value", "Value", storage.item)]

    async def change(self, state: State, texts: Mapping[str, str]) -> Change:
        read, storage = FormTexts(texts, self.inputs(state)), self.key.declaration.storage
        field, value = read.value("field", storage.field), read.value("value", storage.item)
        read.finish()
        absence = self.absence(storage.field.encode(field))
        return Change(absence, [self.key.put(field, value)])


class AddMember(_NewEntry):
    action, title = "add", "Add a member"

    def inputs(self, state: State) -> list[Input]:
        return [input_of("member", "Member", self.key.declaration.storage.item)]

    async def change(self, state: State, texts: Mapping[str, str]) -> Change:
        read, codec = FormTexts(texts, self.inputs(state)), self.key.declaration.storage.item
        member = read.value("member", codec)
        read.finish()
        return Change(self.absence(codec.encode(member)), [self.key.add(member)])


class AddScored(AddMember):
    def inputs(self, state: State) -> list[Input]:
        score = self.key.declaration.storage.score
        return [*super().inputs(state), Input("score", "Score", "text", _score_words(score))]

    async def change(self, state: State, texts: Mapping[str, str]) -> Change:
        read, storage = FormTexts(texts, self.inputs(state)), self.key.declaration.storage
        member, score = read.value("member", storage.item), _score(read, storage.score)
        read.finish()
        return Change(self.absence(storage.item.encode(member)), [self.key.add(member, score)])


class MoveMember(EditForm):
    action, title = "put", "Change a score"

    def inputs(self, state: State) -> list[Input]:
        storage = self.key.declaration.storage
        member = input_of("member", "Member", storage.item, self.entry, hidden=self.hidden)
        member.fixed = True
        shown = "" if state.stored is None else _shown_score(storage.score, state.stored)
        return [member, Input("score", "Score", "text", _score_words(storage.score), shown)]

    def refusal(self, state: State) -> str | None:
        gone = "There is no such entry." if state.stored is None else None
        return super().refusal(state) or gone

    async def change(self, state: State, texts: Mapping[str, str]) -> Change:
        read, storage = FormTexts(texts, self.inputs(state)), self.key.declaration.storage
        if read.changed("score") is None:
            raise InvalidInput({"": "Nothing is changed."})
        score = _score(read, storage.score)
        read.finish()
        return Change(state.checks, [self.key.add(storage.item.decode(self.entry), score)])


def _score_words(codec: Any) -> str:
    accepts = codec.score.accepts
    is_time = accepts is datetime or (isinstance(accepts, tuple) and datetime in accepts)
    return f"{codec.expected}, or an RFC 3339 time" if is_time else str(codec.expected)


def _shown_score(codec: Any, stored: bytes) -> str:
    try:
        value = codec.decode(stored)
    except (CodecError, ValueError):
        return stored.decode()
    return value.isoformat() if isinstance(value, datetime) else stored.decode()


def _score(read: FormTexts, codec: Any) -> Any:
    text = read.text("score") or ""
    try:
        if "T" in text.upper():
            return Rfc3339().decode(text.encode())
        return codec.decode(text.encode())
    except (CodecError, ValueError, OverflowError):
        read.problems["score"] = f"expected {_score_words(codec)}, found {text[:80]!r}"
        return None


class PushItem(EditForm):
    action, title, creates = "add", "Add an item", True

    async def state(self) -> State:
        return await name_state(self.db, self.key)

    def inputs(self, state: State) -> list[Input]:
        end = Input("end", "End", "choice", "where it is added", "right", ["right", "left"])
        return [input_of("item", "Item", self.key.declaration.storage.item), end]

    async def change(self, state: State, texts: Mapping[str, str]) -> Change:
        read, codec = FormTexts(texts, self.inputs(state)), self.key.declaration.storage.item
        item = read.value("item", codec)
        end = texts.get("end", "right")
        if end not in ("left", "right"):
            read.problems["end"] = "expected left or right"
        read.finish()
        return Change([], [self.key.push(item, end=end)])


class PutItem(EditForm):
    """A change of an item in its place; of several equal ones, the first."""

    action, title = "put", "Change an item"

    async def state(self) -> State:
        whole = await whole_state(self.db, self.key)
        held = await super().state()
        return held._replace(checks=whole.checks, seen=whole.seen + held.seen)

    def inputs(self, state: State) -> list[Input]:
        return [input_of("item", "Item", self.key.declaration.storage.item, self.entry, hidden=self.hidden)]

    def refusal(self, state: State) -> str | None:
        if (state.facts.memory or 0) > MOST_BYTES:
            return "The list is larger than 1 MiB, so its places cannot be checked. Change it in a program."
        return super().refusal(state) or ("There is no such entry." if not state.stored else None)

    async def change(self, state: State, texts: Mapping[str, str]) -> Change:
        read, codec = FormTexts(texts, self.inputs(state)), self.key.declaration.storage.item
        if read.changed("item") is None:
            raise InvalidInput({"": "Nothing is changed."})
        item = read.value("item", codec)
        read.finish()
        return Change(state.checks, [self.key.put_at(state.stored[0], item)])


class AppendEntry(EditForm):
    action, title, creates = "add", "Add an entry", True

    async def state(self) -> State:
        return await name_state(self.db, self.key)

    def inputs(self, state: State) -> list[Input]:
        shape = self._shape()
        return [
            input_of(_field(m), m.stored.decode(), m.codec, required=m.required, hidden=self.hidden)
            for m in shape.members
        ]

    def shapes(self) -> list[str]:
        fields = self.key.declaration.storage.fields
        return [] if isinstance(fields, Shape) else [shape.type.__name__ for shape in fields.shapes]

    def _shape(self) -> Shape[Any]:
        fields = self.key.declaration.storage.fields
        return fields if isinstance(fields, Shape) else fields.shapes[self.shape % len(fields.shapes)]

    async def change(self, state: State, texts: Mapping[str, str]) -> Change:
        value = _whole(FormTexts(texts, self.inputs(state)), self._shape())
        try:
            return Change([], [self.key.add(value)])
        except ValueRefusedError as error:
            raise InvalidInput({"": str(error)}) from error


class RemoveEntry(EditForm):
    action, title, button, removes = "remove", "Remove an entry", "Show the commands", True

    def refusal(self, state: State) -> str | None:
        gone = "There is no such entry." if state.stored in (None, [], 0) else None
        return super().refusal(state) or gone

    async def change(self, state: State, texts: Mapping[str, str]) -> Change:
        assert self.entry is not None
        if isinstance(self.key, Stream):
            return Change(state.checks, [self.key.remove(self.entry.decode())])
        codec = self.key.declaration.storage.field or self.key.declaration.storage.item
        try:
            entry = codec.decode(self.entry)
        except CodecError as error:
            raise InvalidInput(
                {"": "It does not decode. Remove it with the repair of its finding."}
            ) from error
        return Change(state.checks, [self.key.remove(entry)])


class DeleteKey(EditForm):
    """A deletion of a key with the keys that are part of it."""

    action, title, removes = "delete", "Delete the key", True
    parts: Sequence[Key] = ()
    related: Sequence[Key] = ()
    """Parts that are sides of relations, which must be ended first."""

    def refusal(self, state: State) -> str | None:
        if not state.exists:
            return "There is no such key."
        if (state.facts.memory or 0) > LARGEST:
            return "It is larger than 4 MiB, too large for an undo file. Delete it in a program."
        return None

    async def change(self, state: State, texts: Mapping[str, str]) -> Change:
        stored = await self.db.run(gather_list(part.exists() for part in (*self.related, *self.parts)))
        there = [part for part, found in zip((*self.related, *self.parts), stored, strict=True) if found]
        for part in there:
            if part in self.related:
                raise InvalidInput({"": f"Its {type(part).__name__} is related. End that relation first."})
        return Change(state.checks, [self.key.delete(), *(part.delete() for part in there)])


class ExpireKey(EditForm):
    action, title = "expire", "Change the expiry"

    def inputs(self, state: State) -> list[Input]:
        shown = "" if (state.facts.ttl_ms or -1) < 0 else f"{(state.facts.ttl_ms or 0) // 1000} s"
        limit = self._longest()
        words = "a time like 90 s, 15 min, 2 h, 3 d, or an RFC 3339 time"
        words += f", at most {left(limit)}" if limit is not None else "; empty for no expiry"
        return [Input("expiry", "Expires in", "text", words, shown, required=limit is not None)]

    def refusal(self, state: State) -> str | None:
        declared = self.db.context.expiry_for(self.key)
        if declared is not None and callable(declared.moment):
            return "Its expiry follows from its value. Change that."
        return None if state.exists else "There is no such key."

    def _longest(self) -> int | None:
        declared = self.db.context.expiry_for(self.key)
        return None if declared is None or declared.optional else declared.longest_ms

    async def change(self, state: State, texts: Mapping[str, str]) -> Change:
        text = texts.get("expiry", "").strip()
        limit = self._longest()
        if not text and limit is None:
            if (state.facts.ttl_ms or -1) < 0:
                raise InvalidInput({"": "Nothing is changed: it has no expiry."})
            return Change(state.checks, [self.key.persist()])
        span = _span(text)
        if span is None or span <= timedelta(0):
            raise InvalidInput({"expiry": f"expected a time from now, found {text[:80]!r}"})
        if limit is not None and span > timedelta(milliseconds=limit):
            raise InvalidInput({"expiry": f"its declaration allows at most {left(limit)}"})
        if span > timedelta(days=36_500):
            raise InvalidInput({"expiry": "expected at most 100 years"})
        return Change(state.checks, [self.key.expire(span)])


def _span(text: str) -> timedelta | None:
    try:
        return Rfc3339().decode(text.encode()) - datetime.now(UTC)
    except CodecError:
        pass
    total = timedelta(0)
    words = text.split()
    if not words or len(words) % 2:
        return None
    for number, unit in pairs(words):
        if unit not in _UNITS or not number.isascii() or not number.isdigit() or len(number) > 12:
            return None
        total += timedelta(seconds=int(number) * _UNITS[unit])
    return total


_FORMS: tuple[tuple[type[Key], tuple[type[EditForm], ...]], ...] = (
    (Value, (SetValue,)),
    (Counter, (SetValue,)),
    (Record, (ChangeRecord,)),
    (Map, (AddField, PutField, RemoveEntry)),
    (Set, (AddMember, RemoveEntry)),
    (SortedSet, (AddScored, MoveMember, RemoveEntry)),
    (Geo, (RemoveEntry,)),
    (List, (PushItem, PutItem, RemoveEntry)),
    (Stream, (AppendEntry, RemoveEntry)),
)


def forms_of_kind(kind: type[Key]) -> tuple[type[EditForm], ...]:
    """Return the edits of a class that is not a side of a relation. Every class can be deleted and expire."""
    own = next((forms for base, forms in _FORMS if issubclass(kind, base)), ())
    return (*own, ExpireKey, DeleteKey)
