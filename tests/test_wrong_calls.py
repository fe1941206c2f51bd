"""Every public function, called wrongly in the commonest ways, raises an error with the thing and a remedy.

The list comes from `keywright.__all__`: a new name needs valid arguments here.
"""

from __future__ import annotations

import ast
import builtins
import inspect
import re
import typing
from collections.abc import Callable, Coroutine, Iterator
from datetime import UTC, datetime, timedelta
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Annotated, Any, NamedTuple

import msgspec
import pytest

import keywright as kw
from keywright import (
    Binding,
    Call,
    Claim,
    Context,
    Counter,
    Database,
    DueQueue,
    HyperLogLog,
    Id,
    IdOf,
    Keyspace,
    Lease,
    List,
    LiveIndex,
    Map,
    Plain,
    Raw,
    Record,
    Set,
    SortedSet,
    Stream,
    Value,
    connect,
    invariant,
    many_to_many,
    many_to_one,
    one_to_one,
)
from keywright.errors import KeywrightError
from keywright.keyspace.codecs import SealPlace

shop = Keyspace("wrong", "Keys to call wrongly.")
NOW = datetime(2026, 1, 1, tzinfo=UTC)
SECOND = timedelta(seconds=1)


class Details(msgspec.Struct):
    name: str
    count: int = 0


class Word(Value[str], key="word:<id>", space=shop):
    id: Id


class Blob(Value[bytes], key="blob:<id>", space=shop):
    id: Id


class Detail(Record[Details], key="detail:<id>", space=shop):
    id: Id


class Members(Set[Id], key="members:<id>", space=shop):
    id: Id


class Scores(SortedSet[Id, int], key="scores:<id>", space=shop):
    id: Id


class Queue(List[str], key="queue:<id>", space=shop):
    id: Id


class Table(Map[str, int], key="table:<id>", space=shop):
    id: Id


class Log(Stream[Details], key="log:<id>", space=shop):
    id: Id


class Tally(Counter, key="tally:<id>", space=shop):
    id: Id


class Flags(msgspec.Struct):
    level: Annotated[int, kw.Bits(8)]


class Seen(kw.Bitmap, key="seen:<id>", space=shop, bits=100):
    id: Id


class State(kw.BitFields[Flags], key="state:<id>", space=shop):
    id: Id


class Stops(kw.Geo[Id], key="stops:<id>", space=shop):
    id: Id


class Document(kw.Opaque, key="document:<id>", space=shop, redis_type="ReJSON-RL"):
    id: Id


class Visitors(HyperLogLog[Id], key="visitors:<id>", space=shop):
    id: Id


class Holder(Lease, key="holder:<id>", space=shop):
    id: Id


class Task(Claim, key="task:<id>", space=shop, expiry=kw.expires_in(SECOND)):
    id: Id


class Due(DueQueue[Id], key="due:<id>", space=shop):
    id: Id


class Owner(Value[Id], key="pet:<id>:owner", space=shop):
    id: Id


class Pets(Set[Id], key="owner:<id>:pets", space=shop):
    id: Id


class Left(Value[Id], key="left:<id>", space=shop):
    id: Id


class Right(Value[Id], key="right:<id>", space=shop):
    id: Id


class Likes(Set[Id], key="likes:<id>", space=shop):
    id: Id


class Liked(Set[Id], key="liked:<id>", space=shop):
    id: Id


class Known(Set[Id], key="known", space=shop):
    pass


class Item(Record[Details], key="item:<id>", space=shop, expiry=kw.expires_in(SECOND)):
    id: Id


class Items(Set[Id], key="items", space=shop):
    pass


owners = many_to_one(Owner, inverse=Pets)
pairs = one_to_one(Left, inverse=Right)
likes = many_to_many(Likes, inverse=Liked)
live = LiveIndex(Item, Items)
rule = invariant("rule", "A rule.", [Word])
context = Context([shop.bind(prefix="p")])
ring = kw.Keyring.generate("k")
place = SealPlace(b"t", b"", b"", b"n")
sealed = ring.seal(b"a", place)


class Page(kw.JsonDocument[dict[str, int]], key="page:<id>", space=shop):
    """A page."""

    id: Id


class News(kw.Channel[str], channel="news:<topic>", space=shop):
    """News."""

    topic: Annotated[str, Plain()]


channel = News("a")
text = IdOf(Plain())


def nothing(*_: Any) -> None:
    return None


def ids(_: Any) -> list[str]:
    return []


class Wrong(NamedTuple):
    """One way to call a function wrongly."""

    name: str
    value: Callable[[], Any]


async def forgotten() -> None:
    """A coroutine that nobody awaits."""


COROUTINES: list[Coroutine[Any, Any, None]] = []


def coroutine() -> Coroutine[Any, Any, None]:
    COROUTINES.append(forgotten())
    return COROUTINES[-1]


@pytest.fixture(autouse=True)
def _closed_coroutines() -> Iterator[None]:
    yield
    while COROUTINES:
        COROUTINES.pop().close()


WAYS = [
    Wrong("an object of another type", object),
    Wrong("None", lambda: None),
    Wrong("text", lambda: "text text"),
    Wrong("bytes", lambda: b"bytes \xff"),
    Wrong("a class", lambda: dict),
    Wrong("a key", lambda: Word("a")),
    Wrong("a coroutine", coroutine),
    Wrong("a negative number", lambda: -1),
    Wrong("empty text", lambda: ""),
    Wrong("an empty list", list),
]

# Valid arguments of every public function; those of methods are found by name, for all classes at once.
ARGUMENTS: dict[str, tuple[Any, ...]] = {
    "aconnect": ("redis://localhost",),
    "atomic": (Word("a").get(),),
    "before_first": (":",),
    "characters": ("ab",),
    "check": (shop,),
    "connect": ("redis://127.0.0.1:1",),
    "erase": (Word("a"),),
    "expires_at": (NOW,),
    "expires_in": (SECOND,),
    "gather": (Word("a").get(),),
    "gather_list": ([Word("a").get()],),
    "index": (Detail,),
    "invariant": ("name", "description"),
    "literal": (b"a",),
    "many_to_many": (Likes,),
    "many_to_one": (Owner,),
    "may_expire": (),
    "modify": (Word("a"), nothing),
    "new_token": (),
    "one_to_one": (Left,),
    "preview": (Word("a").get(),),
    "raw": (b"OBJECT", b"FREQ"),
    "recover": (),
    "refers": (Word, Detail, ids),
    "replace_if": (Word("a"), None, None),
    "sha256_hex": ("a",),
    "Binding": (shop,),
    "Bits": (8,),
    "Boolean": ("1", "0"),
    "Choice": ("a", "b"),
    "CodecError": ("expected", "found"),
    "Context": ([shop.bind()],),
    "Derived": ("path", kw.sha256_hex),
    "Duration": ("ms",),
    "EmptyAsNone": (Raw(),),
    "EmbeddedServer": (),
    "Expiry": (1000,),
    "FirstOf": (kw.Int64(), Raw()),
    "Flag": ("yes",),
    "Base64Url": (22,),
    "Bytes": (b":",),
    "Day": ("-",),
    "Except": (Plain(), "wait"),
    "Gzip": (Raw(),),
    "Hex": (64,),
    "Pattern": ("[a-z]+",),
    "Segment": (":",),
    "Truth": ("1", "0"),
    "Uuid": (True, False),
    "IdOf": (Plain(),),
    "Json": (int,),
    "Keyring": ("k", {"k": b"0" * 32}),
    "Keyspace": ("name", "description"),
    "Lz4": (Raw(),),
    "LiveIndex": (Item, Items),
    "MessagePack": (int,),
    "OneOf": (Plain(),),
    "Plain": (":", 10),
    "Prefixed": ("t3_",),
    "Sealed": (Raw(),),
    "SealedIfBound": (Raw(),),
    "Secret": ("a",),
    "Zlib": (Raw(),),
    "Zstd": (Raw(),),
}
KEYWORDS: dict[str, dict[str, Any]] = {
    "Bits": {"signed": True, "overflow": "wrap", "at": 3},
    "index": {"by": Known},
    "many_to_many": {"inverse": Liked},
    "many_to_one": {"inverse": Pets},
    "one_to_one": {"inverse": Right},
    "refers": {"name": "ids"},
}
SUBJECTS: dict[str, tuple[Any, ...]] = {
    "Binding": (Binding(shop),),
    "BitFields": (State("a"),),
    "Bitmap": (Seen("a"),),
    "Call": (Word("a").get(),),
    "Channel": (channel,),
    "ChannelPattern": (News.matching(),),
    "Claim": (Task("a"),),
    "Codec": (text, kw.Json(int)),
    "Context": (context,),
    "Counter": (Tally("a"),),
    "DueQueue": (Due("a"),),
    "Geo": (Stops("a"),),
    "HyperLogLog": (Visitors("a"),),
    "Invariant": (rule,),
    "JsonDocument": (Page("a"),),
    "Key": (Word("a"),),
    "Keyring": (ring,),
    "Keyspace": (shop,),
    "Language": (Plain().language,),
    "Lease": (Holder("a"),),
    "List": (Queue("a"),),
    "LiveIndex": (live,),
    "ManyToMany": (likes,),
    "ManyToOne": (owners,),
    "Map": (Table("a"),),
    "OneToOne": (pairs,),
    "Opaque": (Document("a"),),
    "Alphabet": (Plain(), kw.Hex(4)),
    "Record": (Detail("a"),),
    "Secret": (kw.Secret("a"),),
    "Set": (Members("a"),),
    "SortedSet": (Scores("a"),),
    "Stream": (Log("a"),),
    "Value": (Word("a"), Blob("a")),
    "Retry": (kw.Retry(),),
    "Expiry": (kw.expires_in(SECOND),),
    "Server": (kw.Server("redis", "7", "standalone", frozenset()),),
}
BY_NAME: dict[str, Any] = {
    "a": "x",
    "b": "y",
    "after": SECOND,
    "again_from": "0",
    "also": (),
    "at": NOW,
    "before": "b",
    "bindings": (),
    "by": 1,
    "call": Word("a").get(),
    "change": nothing,
    "channels": b"c",
    "claimed": kw.Claimed("m", NOW),
    "const": "c",
    "consumer": "c",
    "context": context,
    "count": 1,
    "cursor": 0,
    "data": sealed,
    "descending": True,
    "end": "left",
    "entries": {"f": 1},
    "entry": Details("n"),
    "entry_id": "*",
    "examine": nothing,
    "expiry": None,
    "feature": "getdel",
    "field": "f",
    "fields": ["f"],
    "first": 0,
    "found": "x",
    "group": "g",
    "hold": SECOND,
    "identity": "a",
    "idle": SECOND,
    "item": "i",
    "items": ["i"],
    "key": Word("a"),
    "key_id": "k",
    "keep_earlier": False,
    "keep_ttl": False,
    "keyring": ring,
    "kind": Word,
    "last": -1,
    "least": 1,
    "limit": 1,
    "marker": "done",
    "member": "m",
    "members": ["m"],
    "min_id": "0",
    "moment": NOW,
    "more": "x",
    "most": 2,
    "name": b"word:a",
    "names": [b"word:a"],
    "new": "x",
    "offset": 0,
    "operands": (),
    "others": Members("b"),
    "partners": ["y"],
    "patterns": (),
    "payload": b"p",
    "place": 0,
    "plain": b"a",
    "prefer_replica": False,
    "put": "right",
    "reason": "",
    "replies": [b"a"],
    "reply": b"a",
    "score": 1,
    "scores": {"m": 1},
    "source": "a",
    "space": shop,
    "spread": False,
    "start": "0",
    "take": "left",
    "text": "a",
    "texts": [b"a"],
    "timeout": timedelta(milliseconds=20),
    "times": {"m": NOW},
    "to": Members("b"),
    "token": "t",
    "value": "x",
    "values": ["x"],
    "var": "v",
    "version": "v",
    "wait": None,
    "when": None,
    "write": Item("a").put(Details("n")),
    "exact": False,
    "max_length": 10,
    "high": 2,
    "low": 1,
    "end_": "+",
    "attempt": 1,
    "hint": int,
    "shared": (),
    "tails": None,
    "lead": b"",
    "prefix": "p",
    "ids": ["a"],
    "topic": "t",
    "end ": 0,
    "upgrades": None,
    "randomness": None,
}
EXACT: dict[str, Any] = {
    **{
        f"JsonDocument.{name}.path": "$.a"
        for name in ("get_path", "set_path", "add", "append", "merge", "remove")
    },
    "JsonDocument.set.value": {"a": 1},
    "JsonDocument.create.value": {"a": 1},
    "JsonDocument.set_path.value": 1,
    "JsonDocument.append.items": 1,
    "JsonDocument.merge.patch": {"a": 1},
    "Keyring.from_env.name": "KEYS",
    "Keyring.open.place": place,
    "Keyring.seal.place": place,
    "Keyring.from_env_if_set.name": "KEYS",
    "Context.name.key": Word("a"),
    "Context.expiry_of.key": Word,
    "Record.put.value": Details("n"),
    "Record.create.value": Details("n"),
    "Record.write.value": Details("n"),
    "Record.add.member": "count",
    "Record.pick.members": "name",
    "BitFields.add.member": "level",
    "BitFields.pick.members": "level",
    "BitFields.put.value": Flags(1),
    "Bitmap.set_many.bits": {1: True},
    "Bitmap.get_many.offsets": [1],
    "Bitmap.count.start": 0,
    "Bitmap.count.end": -1,
    "Bitmap.first.start": 0,
    "Geo.add.point": kw.Point(1, 2),
    "Geo.add_many.points": {"m": kw.Point(1, 2)},
    "Geo.remove.members": "m",
    "Geo.positions.members": ["m"],
    "Geo.distance.first": "m",
    "Geo.distance.second": "n",
    "Geo.within.center": kw.Point(1, 2),
    "Geo.within.radius": 5,
    "Geo.in_box.center": kw.Point(1, 2),
    "Geo.in_box.width": 5,
    "Geo.in_box.height": 5,
    "HyperLogLog.add.members": "m",
    "HyperLogLog.estimate.others": Visitors("b"),
    "HyperLogLog.merge.others": Visitors("b"),
    "Set.add.members": "m",
    "Set.remove.members": "m",
    "SortedSet.remove.members": "m",
    "Map.remove.fields": "f",
    "Map.put.value": 1,
    "Map.put_if_absent.value": 1,
    "Counter.set.value": 1,
    "Counter.swap.value": 1,
    "Stream.remove.ids": "1-0",
    "Stream.acknowledge.ids": "1-0",
    "Stream.claim.ids": "1-0",
    "Stream.range.end": "+",
    "Stream.range.start": "-",
    "Value.slice.start": 0,
    "Value.slice.end": 1,
    "Value.set_many.values": [("a", "x")],
    "Value.set_along.last": ["a"],
    "Value.set_along.values": ["x"],
    "Key.names_along.last": ["a"],
    "List.push.items": "i",
    "List.move.to": Queue("b"),
    "Set.move.to": Members("b"),
    "LiveIndex.delete.key": Item("a"),
    "LiveIndex.put.key": Item("a"),
    "LiveIndex.put.score": None,
    "Channel.publish.message": "t",
    "Alphabet.render.value": "a",
    "Alphabet.render_all.values": ["a"],
    "Keyspace.bind.expiry": {},
    "Codec.encode_many.values": ["a"],
    "Codec.decode.data": b"a",
    "Codec.encode.value": "a",
    "Expiry.command.name": b"n",
    "SortedSet.replace.scores": {"m": 1},
    "Key.of.source": "a",
    "Set.replace.members": ["m"],
    "Set.has_many.members": ["m"],
    "SortedSet.scores.members": ["m"],
}

DATA = {
    "CacheStats",
    "Caching",
    "ClaimState",
    "Claimed",
    "Clock",
    "Durability",
    "Entry",
    "Finding",
    "Fix",
    "ChannelDeclaration",
    "Message",
    "Near",
    "OtherFields",
    "Published",
    "Observer",
    "OpenTelemetryObserver",
    "Point",
    "RoundTrip",
    "Settings",
}
DATA |= {"Effect", "Upgrade", "Violation"}
"""Protocols, plain tuples of values, and what passes its arguments to another library."""
WITHOUT_ARGUMENTS = {
    "Email",
    "Instant",
    "PlainDecimal",
    "Ulid",
    "UuidText",
    "EpochMs",
    "Pickled",
    "EpochFloat",
    "EpochSeconds",
    "Int64",
    "Raw",
    "Rest",
    "SnowflakeText",
    "Verbatim",
}
HINTS = {"FreeText", "I64", "Id", "RestOfName", "Sha256", "SnowflakeId", "SnowflakeStr", "U64"}
DATABASES = {"AsyncDatabase", "BlockingSubscription", "Database", "Subscription"}
CONTRACTS = {
    "Alphabet": "a key turns the ValueError of its alphabet into VariableError",
    "Codec": "a key turns the CodecError of its codec into ValueRefusedError or StoredDataError",
    "Call.rounds": "the engine calls it",
    "Context.seal": "the engine calls it",
    "Context.placed": "the engine calls it",
    "Invariant.violations": "the audit calls it",
    "Keyring.cipher": "a codec calls it",
    "Keyring.open": "a codec calls it, and turns SealRefused into SealError",
}
"""Methods that Keywright calls on objects of a declaration, with the errors of that contract."""


class Case(NamedTuple):
    """A public function with valid arguments."""

    label: str
    function: Callable[..., Any]
    args: tuple[Any, ...]
    kwargs: dict[str, Any]

    def wrongly(self) -> Iterator[tuple[str, Callable[[], Any]]]:
        for way in WAYS:
            for place in range(len(self.args)):
                args = (*self.args[:place], way.value(), *self.args[place + 1 :])
                yield f"{way.name} as argument {place}", partial(self.function, *args, **self.kwargs)
            for name in self.kwargs:
                kwargs = {**self.kwargs, name: way.value()}
                yield f"{way.name} as {name}", partial(self.function, *self.args, **kwargs)


def cases() -> Iterator[Case]:
    for name, args in ARGUMENTS.items():
        yield Case(name, getattr(kw, name), args, KEYWORDS.get(name, {}))
    for name, subjects in SUBJECTS.items():
        for method in _methods(getattr(kw, name)):
            label = f"{name}.{method}"
            if name not in CONTRACTS and label not in CONTRACTS:
                for subject in subjects:
                    yield _case(label, getattr(subject, method))


def _methods(kind: type) -> list[str]:
    found = []
    for name in dir(kind):
        function = inspect.getattr_static(kind, name)
        function = getattr(function, "__func__", function)
        if not name.startswith("_") and inspect.isfunction(function):
            found.append(name)
    return found


def _case(label: str, function: Callable[..., Any]) -> Case:
    args: list[Any] = []
    kwargs = {}
    for parameter in inspect.signature(function).parameters.values():
        if parameter.kind is parameter.VAR_KEYWORD:
            continue
        value = EXACT.get(f"{label}.{parameter.name}", BY_NAME.get(parameter.name, parameter.default))
        assert value is not parameter.empty, f"{label} needs a value for {parameter.name}"
        if parameter.kind is parameter.KEYWORD_ONLY:
            kwargs[parameter.name] = value
        else:
            args.append(value)
    return Case(label, function, tuple(args), kwargs)


@pytest.fixture
def db(redis_url: str) -> Iterator[Database]:
    with connect(redis_url, settings=kw.Settings(retry=kw.Retry(attempts=1))) as opened:
        yield opened


def outcome(db: Database, use: Callable[[], Any]) -> Exception | None:
    """Return the error of a call, also of the operation that it returns."""
    try:
        made = use()
        if isinstance(made, Call):
            db.run(made)
        elif isinstance(made, Database):
            made.close()
        elif inspect.isgenerator(made):
            list(made)
    except Exception as error:  # noqa: BLE001  # the test judges it
        return error
    return None


def is_helpful(error: Exception | None) -> bool:
    """Return whether it is ours, with a subject and a remedy; a wrong value may also be a right one."""
    return error is None or (
        isinstance(error, KeywrightError) and bool(re.search(r"[.:] [A-Z`]", str(error)))
    )


def test_every_public_name_is_called_here() -> None:
    known = DATA | WITHOUT_ARGUMENTS | HINTS | DATABASES | {"Key", "Call", *ARGUMENTS, *SUBJECTS}
    assert known == set(kw.__all__)


@pytest.mark.parametrize("case", list(cases()), ids=lambda case: case.label)
def test_a_wrong_argument_is_an_error_of_ours_with_a_remedy(case: Case, db: Database) -> None:
    refused = {way: error for way, use in case.wrongly() if not is_helpful(error := outcome(db, use))}
    assert refused == {}


@pytest.mark.parametrize("case", list(cases()), ids=lambda case: case.label)
def test_a_missing_argument_is_an_error_of_the_signature(case: Case, db: Database) -> None:
    required = [
        parameter
        for parameter in inspect.signature(case.function).parameters.values()
        if parameter.default is parameter.empty
        and parameter.kind in (parameter.POSITIONAL_OR_KEYWORD, parameter.KEYWORD_ONLY)
    ]
    if required:
        error = outcome(db, case.function)
        assert isinstance(error, TypeError | KeywrightError)
        assert "missing" in str(error)


def test_a_database_explains_wrong_arguments(db: Database) -> None:
    uses: dict[str, Callable[[Any], Any]] = {
        "run": db.run,
        "run at": lambda value: db.run(Word("a").get(), at=value),
        "scan": lambda value: list(db.scan(value)),
        "names": lambda value: list(db.names(value)),
        "binding": lambda value: connect("redis://127.0.0.1:1", value),
        "settings": lambda value: connect("redis://127.0.0.1:1", settings=value),
    }
    refused = {
        (name, way.name): error
        for name, use in uses.items()
        for way in WAYS
        if not is_helpful(error := outcome(db, partial(use, way.value())))
    }
    assert refused == {}


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        (Word("a"), r"Word\(id='a'\) is not a call. Pass an operation"),
        (Word, r"the class Word is not a call"),
        (Word("a").get, r"is not a call"),
        (None, r"None is not a call"),
    ],
)
def test_something_else_than_a_call_is_named(wrong: Any, message: str, db: Database) -> None:
    with pytest.raises(KeywrightError, match=message):
        db.run(wrong)


def test_a_closed_database_says_so(db: Database) -> None:
    db.close()
    for use in (lambda: db.run(Word("a").get()), lambda: list(db.scan(Word)), lambda: list(db.names(shop))):
        error = outcome(db, use)
        assert isinstance(error, KeywrightError)
        assert "closed" in str(error)


def test_an_error_of_a_function_of_the_caller_stays_as_it_is(db: Database) -> None:
    def broken(_: Any) -> None:
        raise TypeError("mine")

    with pytest.raises(TypeError, match="mine"):
        db.run(Word("a").get().map(broken))
    with pytest.raises(TypeError, match="mine"):
        db.run(kw.modify(Word("a"), broken))


def test_an_id_of_another_type_is_refused_in_the_words_of_the_caller() -> None:
    with pytest.raises(KeywrightError, match=r"not 7\. Pass it as text: '7'\.$"):
        Word(7)  # type: ignore[arg-type]  # what a program without a type checker does


def test_the_choices_of_an_argument_are_listed() -> None:
    message = r"List\.push\(.*end=str\) is not possible: 'top' is not known\. Pass .*end: 'left' \| 'right'"
    with pytest.raises(KeywrightError, match=message):
        Queue("a").push("x", end="top")  # type: ignore[arg-type]  # what a program without a checker does


def test_a_name_as_text_is_refused_with_the_bytes_to_pass() -> None:
    for parse in (Word.parse, shop.parse, shop.find):
        with pytest.raises(KeywrightError, match=r"a key name is bytes, got 'word:a'\. Pass b'word:a'"):
            parse("word:a")  # type: ignore[arg-type]  # what a program without a type checker does


def test_messages_name_only_what_can_be_imported() -> None:
    public = {*kw.__all__, *dir(builtins), *typing.__all__}
    for module in ("errors", "operations", "tools", "testing", "cli"):
        public |= set(import_module(f"keywright.{module}").__all__)
    public.add("Name")  # stands for any key class
    assert set(_named_in_messages()) - public == set()


def _named_in_messages() -> Iterator[str]:
    """Yield the names that strings of the library call or index: `Plain()`, `Value[…]`."""
    for path in (Path(__file__).parents[1] / "src/keywright").rglob("*.py"):
        tree = ast.parse(path.read_text())
        for node in ast.walk(tree):
            if isinstance(node, ast.Call) and getattr(node.func, "id", "").endswith("Error"):
                for text in ast.walk(node):
                    if isinstance(text, ast.Constant) and isinstance(text.value, str):
                        yield from re.findall(r"\b([A-Z][A-Za-z0-9]+)(?=\(|\[)", text.value)
