"""Inference: a declaration from names and values, proved, complete and free of anything that runs."""

from __future__ import annotations

import json
import pickle
import random
import zlib
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from audit_samples import SAMPLES
from declaring import key_classes
from inferred_modules import declared_space, inferred_names, inferred_server, refuse_code, unproved
from keywright import Keyspace, connect
from keywright.errors import UsageError
from keywright.keyspace.call import Plain
from keywright.operations import Effect, Operation
from keywright.tools.infer import NameSample, infer
from keywright.tools.infer.model import require_declarations
from keywright.tools.infer.names import LONGEST_NAME, MOST_NAMES, PER_STRATUM


def templates(*names: str) -> set[str]:
    space = declared_space(inferred_names(name.encode() for name in names))
    assert unproved(space) == []
    return {kind.declaration.template.source for kind in space}


def hints(*names: str) -> dict[str, str]:
    space = declared_space(inferred_names(name.encode() for name in names))
    return {
        name: type(alphabet).__name__
        for kind in space
        for name, alphabet in kind.declaration.template.alphabets.items()
    }


def test_variables_are_named_after_the_word_before_them() -> None:
    found = templates("user:1", "user:2", "user:1:posts", "user:2:posts", "entries:7:tags:8")
    assert found == {"user:<user>", "user:<user>:posts", "entries:<entry>:tags:<tag>"}


@pytest.mark.parametrize(
    ("values", "alphabet"),
    [
        (["1", "22", "-3"], "Signed64"),
        (["18446744073709551615", "1"], "Unsigned64"),
        (["881212345678901234", "981212345678901234"], "Snowflake"),
        (["f81d4fae-7dec-41d0-a765-00a0c91e6bf6"], "Uuid"),
        (["01ARZ3NDEKTSV4RRFFQ69G5FAV"], "Ulid"),
        (["d41d8cd98f00b204e9800998ecf8427e", "0cc175b9c0f1b6a831c399e269772661"], "Hex"),
        (["2026-11-16", "2026-11-17"], "Day"),
        (["20261116", "20261117", "20261118"], "Day"),
        (["ann@example.org", "bob@example.org"], "Email"),
        (["hT7dQ2mZkL9pWx3v_A", "a-8FzK1mQp0RtYwEuI", "Zx9cVb7nMl5kJh3gFd"], "Base64Url"),
        (["2026-11-16T12:00:00Z"], "Instant"),
        ([f"w{n}-{'x' * n}é" for n in range(30)], "Segment"),
    ],
)
def test_alphabet_of_a_variable(values: list[str], alphabet: str) -> None:
    assert hints(*(f"thing:{value}" for value in values)) == {"thing": alphabet}


@pytest.mark.parametrize("separator", [":", "/", "|", ".", "-", "_"])
def test_separators(separator: str) -> None:
    found = templates(*(f"user{separator}{n}{separator}posts" for n in range(40)))
    assert found == {f"user{separator}<user>{separator}posts"}


def test_ids_are_glued_to_words() -> None:
    task = "celery-task-meta-f81d4fae-7dec-41d0-a765-00a0c91e6bf6"
    assert templates(task) == {"celery-task-meta-<celery_task_meta>"}


def test_hash_tags() -> None:
    assert templates("cart:{17}:items", "cart:{18}:items") == {"cart:{<cart>}:items"}


def test_braces_that_are_not_a_hash_tag_are_text() -> None:
    assert templates("a{{b", "}c{") == {r"a\{\{b", r"\}c\{"}


def test_words_with_the_same_substructure_are_one_variable() -> None:
    parts = ("wait", "meta", "id", "17", "18")
    found = templates(*(f"bull:{queue}:{part}" for queue in ("mail", "video", "audio") for part in parts))
    assert found == {"bull:<bull>:wait", "bull:<bull>:meta", "bull:<bull>:id", "bull:<bull>:<number>"}


def test_words_that_hold_different_things_are_templates() -> None:
    found = templates(*(f"{word}:{n}" for word in ("user", "post", "group") for n in range(20)))
    assert found == {"user:<user>", "post:<post>", "group:<group>"}


def test_overlaps_are_resolved_by_precedence() -> None:
    names = [f"job:{word}" for word in ("wait", "meta")]
    names += [f"job:{n:x}zz-{n}{letter}Q{n}kk{n}" for n in range(100, 140) for letter in "abc"]
    space = declared_space(inferred_names(name.encode() for name in names))
    assert unproved(space) == []
    assert type(space.parse(b"job:wait")).declaration.template.source == "job:wait"


def test_names_that_are_not_utf8_are_declared() -> None:
    names = [b"blob:\xff%d\xfe" % n for n in range(30)]
    space = declared_space(inferred_names(names))
    assert unproved(space) == []
    assert all(space.find(name) is not None for name in names)


def test_a_module_without_show_ids_has_no_ids() -> None:
    names = [b"user:12345678:x", b"mail:ann@example.org", b"s:f81d4fae-7dec-41d0-a765-00a0c91e6bf6"]
    text = inferred_names(names).text
    assert not any(secret in text for secret in ("12345678", "ann@", "f81d4fae"))
    assert "12345678" in inferred_names(names, show_ids=True).text


def test_no_names_are_refused() -> None:
    with pytest.raises(UsageError, match="no names to infer from"):
        inferred_names([])


def test_a_keyspace_name_that_is_not_an_identifier_is_refused() -> None:
    sample = NameSample()
    sample.add(b"a")
    for name in ("x; import os", "class", "Value", ""):
        with pytest.raises(UsageError, match="--space"):
            infer(sample, space=name)


def test_names_that_are_too_long_are_counted() -> None:
    found = inferred_names([b"user:1", b"x" * (LONGEST_NAME + 1), b"y" * (5 * LONGEST_NAME), b"user:2"])
    assert (found.names, found.matched, found.too_long) == (4, 2, 2)
    assert "2 keys were not looked at: their names are too long" in found.coverage


def test_a_sample_does_not_grow_with_the_names() -> None:
    sample = NameSample()
    for n in range(20_000):
        sample.add(b"user:%d:posts" % n)
    assert sample.count == 20_000
    assert len(list(sample)) == PER_STRATUM
    assert round(sum(each.weight for each in sample)) == 20_000
    for n in range(MOST_NAMES):
        sample.add(b"%x" % (n * 7919) + "äöü"[n % 3].encode() * (n % 300))
    assert len(list(sample)) <= MOST_NAMES + 22_000


@settings(max_examples=150, deadline=None)
@given(st.data())
def test_a_random_keyspace_is_inferred_proved_and_complete(data: st.DataObject) -> None:
    names = set()
    for _ in range(data.draw(st.integers(1, 4))):
        kind, variables = data.draw(key_classes(Keyspace("random", "Made at run time.")))
        for _ in range(data.draw(st.integers(1, 6))):
            values = {name: data.draw(values) for name, values in variables.items()}
            names.add(bytes(kind(**values)))
    listed = sorted(name for name in names if not set(name) & set(b"\r\n"))
    if listed:
        space = declared_space(inferred_names(listed))
        assert unproved(space) == []
        assert [name for name in listed if space.find(name) is None] == []


@settings(max_examples=300, deadline=None)
@given(st.lists(st.binary(min_size=1, max_size=40), min_size=1, max_size=40))
def test_hostile_names_are_data(names: list[bytes]) -> None:
    sample = NameSample()
    for name in names:
        sample.add(name)
    space = declared_space(infer(sample, show_ids=True))
    assert unproved(space) == []
    assert [name for name in names if space.find(name) is None] == []


HOSTILE = (
    b'"""\nimport os; os.abort()\n"""',
    b"'); import os; os.abort() #",
    b"\\x41\\",
    b"<user>:[x]:{y}",
    b"user:\n__import__('os')",
    b"class Evil: pass",
    b"\xe2\x80\xaeevil",
    b"{}{}{}",
    b"\x00" * 20,
    b":" * 50,
)


def test_hostile_texts_never_leave_their_literals(redis_url: str) -> None:
    noise = random.Random(18)
    with connect(redis_url) as db:
        for number in range(1500):
            name = b":".join(
                (noise.choice(HOSTILE), noise.randbytes(noise.randrange(6)), b"%d" % noise.randrange(9))
            )
            value = noise.choice(
                (*HOSTILE, noise.randbytes(40), json.dumps({HOSTILE[number % 6].decode(): 1}).encode())
            )
            match number % 5:
                case 0:
                    db.run(raw(b"SET", name, value))
                case 1:
                    db.run(raw(b"HSET", name, noise.choice(HOSTILE), value).attempt())
                case 2:
                    db.run(raw(b"SADD", name, value).attempt())
                case 3:
                    db.run(raw(b"XADD", name, b"*", noise.choice(HOSTILE), value).attempt())
                case 4:
                    db.run(raw(b"ZADD", name, b"1", value).attempt())
    found = inferred_server(redis_url)
    refuse_code(found.text)
    assert found.text.isascii()
    assert unproved(declared_space(found)) == []


class Boom:
    def __reduce__(self) -> Any:
        return (pytest.fail, ("a value was unpickled",))


def test_kinds_codecs_and_expiries_of_a_server(redis_url: str) -> None:
    with connect(redis_url) as db:
        for n in range(8):
            key = b":%d" % n
            db.run(raw(b"SET", b"count" + key, b"%d" % (n * n)))
            db.run(
                raw(
                    b"SET",
                    b"doc" + key,
                    msgspec.json.encode({"name": "x", "size": n} | ({"tag": "t"} if n % 2 else {})),
                )
            )
            db.run(raw(b"SET", b"packed" + key, msgspec.msgpack.encode({"name": "x", "size": n})))
            db.run(raw(b"SET", b"pickled" + key, pickle.dumps(Boom())))
            db.run(raw(b"SET", b"zipped" + key, zlib.compress(b"text" * 30)))
            db.run(raw(b"SET", b"seen" + key, b"%d" % (1_700_000_000 + n)))
            db.run(raw(b"HSET", b"person" + key, b"name", b"Ann", b"age", b"%d" % n))
            db.run(raw(b"HSET", b"scores" + key, b"%d" % (n + 1000), b"1.5", b"%d" % (n + 2000), b"2"))
            db.run(raw(b"SADD", b"friends" + key, b"%d" % n, b"7"))
            db.run(raw(b"ZADD", b"board" + key, b"1.5", b"ann"))
            db.run(raw(b"RPUSH", b"todo" + key, b"wash"))
            db.run(raw(b"XADD", b"events" + key, b"*", b"kind", b"made"))
            db.run(raw(b"SET", b"session" + key, b"token", b"EX", b"600"))
    found = inferred_server(redis_url)
    space = declared_space(found)
    assert unproved(space) == []
    assert {key.declared.words[0]: key.kind for key in found.keys} == {
        "count": "Value[int]",
        "doc": "Value[Annotated[DocDetails, Json]]",
        "packed": "Value[Annotated[PackedDetails, MessagePack]]",
        "pickled": "Value[bytes]",
        "zipped": "Value[bytes]",
        "seen": "Value[Annotated[datetime, EpochSeconds()]]",
        "person": "Record[PersonDetails]",
        "scores": "Map[int, float]",
        "friends": "Set[int]",
        "board": "SortedSet[str, float]",
        "todo": "List[str]",
        "events": "Stream[EventsDetails]",
        "session": "Value[str]",
    }
    assert {key.declared.words[0]: key.expiry.seconds for key in found.keys if key.expiry.seconds} == {
        "session": 600
    }
    assert "tag: str | None = None" in found.text
    assert "pickled by Python" in found.text


@pytest.mark.parametrize("name", sorted(SAMPLES))
def test_shipped_models_are_inferred_and_every_key_is_matched(name: str, redis_url: str) -> None:
    sample = SAMPLES[name]()
    with sample.open(redis_url) as db:
        sample.fill(db)
        names = db.run(Plain(Operation("keys", b"KEYS", Effect.READ), (b"*",)))
    found = inferred_server(redis_url)
    space = declared_space(found)
    assert unproved(space) == []
    assert [each for each in names if space.find(each) is None] == []
    assert found.names == len(names)


def raw(verb: bytes, name: bytes, *operands: bytes) -> Plain:
    return Plain(Operation("plant", verb, Effect.ONCE), (name, *operands), name)


@pytest.mark.parametrize(
    "text",
    [
        "import os\nos.system('true')",
        "open('x')",
        "class A(B):\n    def f(self): ...",
        "[x for x in y]",
        "f'{x}'",
    ],
)
def test_a_module_that_holds_more_than_declarations_is_not_run(text: str) -> None:
    with pytest.raises(UsageError, match="not a declaration"):
        require_declarations(text)
