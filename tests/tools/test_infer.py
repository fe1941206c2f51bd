"""Inference: a declaration from names and values, proved, complete and free of anything that runs."""

from __future__ import annotations

import json
import pickle
import random
import subprocess
import sys
import zlib
from contextlib import suppress
from typing import Annotated, Any

import msgspec
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from audit_samples import SAMPLES
from declaring import key_class, key_classes
from inferred_modules import (
    BOMBS,
    HOSTILE,
    declared_space,
    hostile_keys,
    hostile_names,
    inferred_names,
    inferred_server,
    refuse_code,
    unproved,
)
from keywright import Bytes, Id, Keyspace, check, connect
from keywright.errors import ServerRefusedError, UsageError, VariableError
from keywright.keyspace.call import Plain
from keywright.operations import Effect, Operation
from keywright.tools.infer import NameSample, infer
from keywright.tools.infer.facts import Facts
from keywright.tools.infer.model import require_declarations
from keywright.tools.infer.names import LONGEST_NAME, MOST_NAMES, PER_STRATUM
from keywright.tools.infer.sources import is_gone
from keywright.tools.plugins import load_catalogue
from keywright.tools.segments import likely_pattern


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
    tasks = [f"celery-task-meta-f81d4fae-7dec-41d0-a765-00a0c91e6bf{n}" for n in range(3)]
    assert templates(*tasks) == {"celery-task-meta-<celery_task_meta>"}


def test_short_ids_that_are_glued_to_a_letter_are_not_words() -> None:
    rooms = [f"booking:b{n}:room" for n in range(300)]
    cards = [f"card:c{n}" for n in range(1, 300)]
    assert templates(*rooms, *cards) == {"booking:b<number>:room", "card:c<number>"}


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


QUOTAS = ("3/second", "50/minute", "100/hour", "500/day")


def test_a_part_that_some_names_lack_is_an_optional_segment() -> None:
    names = [f"quota:api/{quota}" for quota in QUOTAS]
    names += [f"quota:api/user-{n}/{quota}" for n in range(9) for quota in QUOTAS]
    assert templates(*names) == {"quota:api[/<api>]/<number>/<word>"}
    names += [f"quota:web/10.0.0.{n}/GET {{id}}/{quota}" for n in range(9) for quota in QUOTAS[:2]]
    assert templates(*names) == {"quota:<quota>[/<name>]/<number>/<word>"}


def test_keys_that_expired_before_they_were_read_are_in_the_family_of_their_names() -> None:
    sample = NameSample()
    facts = {}
    for subject in ("", *(f"user-{n}/" for n in range(20))):
        for quota in QUOTAS:
            name = f"quota:api/{subject}{quota}".encode()
            sample.add(name)
            if subject[-2:] != "7/" or quota != QUOTAS[0]:
                facts[name] = Facts("string", 1000, (b"1",))
    (key,) = infer(sample, facts).keys
    assert key.declared.template.source == "quota:api[/<api>]/<number>/<word>"


def test_a_single_part_is_a_word() -> None:
    names = [f"quota:api/{word}{quota}" for word in ("", "old/") for quota in QUOTAS]
    assert not any("[" in found for found in templates(*names))


def test_words_before_names_that_exist_without_them_are_an_optional_segment() -> None:
    ids = [f"f81d4fae-7dec-41d0-a765-00a0c91e6bf{n}" for n in range(6)]
    names = [f"{before}{each}{end}" for before in ("", "old:") for each in ids for end in ("", ":log")]
    assert templates(*names) == {"[<id>:]<uuid>", "[<id>:]<uuid>:log"}
    names = [f"job:{name}" for name in names]
    assert templates(*names) == {"job:<job>", "job:<job>:log", "job:old:<old>", "job:old:<old>:log"}
    names += [f"job:test:{each}{end}" for each in ids for end in ("", ":log")]
    assert templates(*names) == {"job:[<job>:]<uuid>", "job:[<job>:]<uuid>:log"}


def counters(*names: str) -> str:
    """Return the module of names that all hold numbers."""
    sample = NameSample()
    for name in names:
        sample.add(name.encode())
    found = infer(sample, {name.encode(): Facts("string", None, (b"7",)) for name in names})
    assert unproved(declared_space(found)) == []
    return found.text


def test_a_few_words_of_programs_after_ids_are_an_enumeration() -> None:
    text = counters(*(f"quota:{n}:{unit}" for n in range(20) for unit in ("second", "minute", "hour", "day")))
    assert '    word: Literal["day", "hour", "minute", "second"]\n' in text
    assert "# guess: <word>: one of these 4 words.\n" in text


def test_names_of_people_and_of_queues_are_not_an_enumeration() -> None:
    text = counters(*(f"seen:{n}:{name}" for n in range(20) for name in ("alice", "bob", "carol", "dora")))
    assert 'key="seen:<seen>:<id>"' in text
    text += counters(*(f"bull:{queue}:{n}" for queue in ("mail", "video", "audio") for n in range(20)))
    assert "Literal" not in text


def test_a_name_without_text_of_its_own_has_what_no_other_template_has() -> None:
    names = [b"user:%d" % n for n in range(9)] + [b"xq vb", b"zzt n\xff", b"qq\x00"]
    found = inferred_names(names)
    assert 'class Name(Value[bytes], key="<name>", space=inferred, fallback=True):' in found.text
    space = declared_space(found)
    assert type(space.find(b"user:1")).__name__ == "User"
    assert type(space.find(b"user:x")).__name__ == "Name"


def test_a_module_has_no_long_lines_and_is_formatted() -> None:
    names = [f"{'very-long-word-' * 4}{n}:{word}" for n in range(30) for word in ("wait", "meta", "id")]
    names += [f"job:{n:x}zz-{n}{letter}Q{n}kk{n}" for n in range(100, 140) for letter in "abc"]
    names += [f"job:{'long-' * 9}{word}" for word in ("wait", "meta", "count", "index", "limit")]
    text = inferred_names(name.encode() for name in names).text
    assert max(map(len, text.splitlines())) <= 110
    command = [sys.executable, "-m", "ruff", "format", "--line-length", "110", "--diff", "-"]
    formatted = subprocess.run(command, input=text, capture_output=True, text=True, check=False)
    assert formatted.returncode == 0, formatted.stdout


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
        sample.add(b"%x" % (n * 7919) + "äöü"[n % 3].encode() * (n % 20))
    assert len(list(sample)) <= MOST_NAMES + 22_000


TEXTS = st.one_of(
    st.integers(-(2**63), 2**63 - 1).map(lambda number: b"%d" % number),
    st.floats().map(lambda number: repr(number).encode()),
    st.datetimes().map(lambda moment: moment.isoformat().encode()),
    st.uuids().map(lambda found: str(found).encode()),
    st.text(max_size=20).map(str.encode),
    st.binary(max_size=20),
)
DOCUMENTS = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**60), 2**60) | st.text(max_size=8),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(("name", "size", "at")) | st.text(), inner)
    ),
    max_leaves=6,
)
VALUES = st.one_of(
    TEXTS,
    DOCUMENTS.map(msgspec.json.encode),
    DOCUMENTS.map(msgspec.msgpack.encode),
    DOCUMENTS.map(lambda document: zlib.compress(msgspec.json.encode(document))),
    DOCUMENTS.map(pickle.dumps),
)
FIELDS = st.dictionaries(st.sampled_from((b"name", b"size", b"at")) | TEXTS, VALUES, min_size=1, max_size=4)
TTLS = st.none() | st.integers(0, 2**62)
HELD = st.sampled_from(
    (
        st.builds(Facts, st.just("string"), TTLS, st.tuples(VALUES)),
        st.builds(Facts, st.just("hash"), TTLS, fields=st.tuples(FIELDS)),
        st.builds(Facts, st.just("set"), TTLS, st.lists(TEXTS, max_size=3).map(tuple)),
        st.builds(Facts, st.just("list"), TTLS, st.lists(VALUES, max_size=3).map(tuple)),
        st.builds(
            Facts,
            st.just("zset"),
            TTLS,
            st.tuples(TEXTS),
            st.tuples(st.floats().map(lambda score: b"%r" % score)),
        ),
        st.builds(Facts, st.just("stream"), TTLS, fields=st.lists(FIELDS, max_size=3).map(tuple)),
    )
)
"""What the keys of a class hold."""


@settings(max_examples=40, deadline=None)
@given(st.data())
def test_a_random_keyspace_is_inferred_proved_and_complete(data: st.DataObject) -> None:
    drawn = Keyspace("random", "Made at run time.")
    classes = [data.draw(key_classes(drawn)) for _ in range(data.draw(st.integers(1, 3)))]
    if data.draw(st.booleans()):
        waiting = key_class(drawn, "job:wait", {})
        job = key_class(drawn, "job:<job>", {"job": Id}, name="Job", yields_to=waiting)
        other = key_class(drawn, "<text>", {"text": Annotated[bytes, Bytes(b"")]}, name="Any", fallback=True)
        classes += [(waiting, {}), (job, {"job": st.text("abc", min_size=1)})]
        classes.append(
            (other, {"text": st.binary(min_size=1).filter(lambda name: not name.startswith(b"job:"))})
        )
    assume(not [finding for finding in check(drawn) if finding.severity == "error"])
    names: dict[bytes, Facts] = {}
    for kind, variables in classes:
        held = data.draw(HELD)
        for _ in range(data.draw(st.integers(1, 6))):
            values = {name: data.draw(values) for name, values in variables.items()}
            with suppress(VariableError):  # a name of a class to which it yields
                names[bytes(kind(**values))] = data.draw(held)
    listed = sorted(name for name in names if not set(name) & set(b"\r\n"))
    if listed:
        sample = NameSample()
        for name in listed:
            sample.add(name)
        for found in (inferred_names(listed), infer(sample, names)):
            space = declared_space(found)
            assert unproved(space) == []
            assert [name for name in listed if space.find(name) is None] == []


@settings(max_examples=50, deadline=None)
@given(st.lists(st.binary(min_size=1, max_size=40), min_size=1, max_size=40))
def test_hostile_names_are_data(names: list[bytes]) -> None:
    sample = NameSample()
    for name in names:
        sample.add(name)
    space = declared_space(infer(sample, show_ids=True))
    assert unproved(space) == []
    assert [name for name in names if space.find(name) is None] == []


def test_hostile_texts_never_leave_their_literals(redis_url: str) -> None:
    noise = random.Random(18)
    with connect(redis_url) as db:
        for number in range(400):
            name = b":".join(
                (noise.choice(HOSTILE), noise.randbytes(noise.randrange(6)), b"%d" % noise.randrange(9))
            )
            value = noise.choice(
                (
                    *HOSTILE,
                    *BOMBS,
                    noise.randbytes(40),
                    json.dumps({HOSTILE[number % 6].decode(): 1}).encode(),
                    msgspec.msgpack.encode({HOSTILE[number % 6]: 1}),
                    zlib.compress(noise.choice(HOSTILE)),
                )
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


@pytest.mark.parametrize("show_ids", [False, True])
def test_many_hostile_names_are_data(show_ids: bool) -> None:
    """`make bench ARGS=infer` does it with a million."""
    sample = NameSample()
    for name in hostile_names(250):
        sample.add(name)
    found = infer(sample, show_ids=show_ids)
    assert found.text.isascii()
    assert unproved(declared_space(found)) == []


@pytest.mark.parametrize("show_ids", [False, True])
def test_many_hostile_values_are_data(show_ids: bool) -> None:
    """`make bench ARGS=infer` does it with a million."""
    facts = dict(hostile_keys(300, 8))
    sample = NameSample()
    for name in facts:
        sample.add(name)
    found = infer(sample, facts, show_ids=show_ids)
    assert found.text.isascii()
    assert unproved(declared_space(found)) == []


@pytest.mark.parametrize(
    ("facts", "found"),
    [
        (Facts("string", 2**62, (b"x",)), "expiry=may_expire()"),
        (Facts("string", None, (msgspec.msgpack.encode({7: "x", 300: "y"}),)), "dict[int, str]"),
        (
            Facts("string", None, (msgspec.msgpack.encode({7: "x", "a": "y"}),)),
            "Value[Annotated[Any, Message",
        ),
        (
            Facts("stream", None, fields=({b"name": b"x"},), groups=(b"", b"\xff\xfe", b"billing")),
            "Consumer groups that are not shown: 2.",
        ),
    ],
)
def test_what_a_server_has_and_a_declaration_cannot_say_is_left_out(facts: Facts, found: str) -> None:
    names = [b"thing:%d" % number for number in range(4)]
    sample = NameSample()
    for name in names:
        sample.add(name)
    inference = infer(sample, dict.fromkeys(names, facts), show_ids=True)
    assert found in inference.text
    assert unproved(declared_space(inference)) == []


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
        "pickled": "Value[Annotated[bytes, Pickled]]",
        "zipped": "Value[Annotated[str, Zlib]]",
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


def test_keys_that_a_part_keeps_from_expiring_make_the_expiry_optional(redis_url: str) -> None:
    with connect(redis_url) as db:
        names = [b"f81d4fae-7dec-41d0-a765-00a0c91e6b%02x" % n for n in range(60)]
        for name in (*names, b"old:" + names[0], *(name + b":log" for name in names)):
            db.run(raw(b"SET", name, b"text", b"EX", b"600"))
        db.run(raw(b"SET", b"old:" + names[0] + b":log", b"text"))
    found = {key.declared.template.source: key.expiry for key in inferred_server(redis_url).keys}
    assert found["[<id>:]<uuid>:log"].optional
    assert found["[<id>:]<uuid>"].seconds == 600


def test_a_stream_that_is_gone_before_its_groups_are_read_is_not_an_error(redis_url: str) -> None:
    with connect(redis_url) as db, pytest.raises(ServerRefusedError) as refused:
        db.run(raw(b"XINFO", b"GROUPS", b"events"))
    assert is_gone(refused.value)


def test_a_name_that_is_not_shown_is_a_value_beside_one_that_holds_the_same(redis_url: str) -> None:
    with connect(redis_url) as db:
        for name in (b"low-priority", b"zaphod"):
            db.run(raw(b"RPUSH", name, json.dumps({"task": 1, "arguments": []}).encode()))
        db.run(raw(b"RPUSH", b"events", json.dumps({"kind": 1}).encode()))
    found = inferred_server(redis_url)
    assert {key.declared.template.source: key.kind for key in found.keys} == {
        "<id>": "List[Annotated[IdDetails, Json]]",
        "events": "List[Annotated[EventsDetails, Json]]",
    }
    assert found.matched == found.names
    assert "zaphod" not in found.text


@pytest.mark.parametrize("name", sorted(SAMPLES))
def test_shipped_models_are_inferred_and_every_key_is_matched(name: str, redis_url: str) -> None:
    sample = SAMPLES[name]()
    with sample.open(redis_url) as db:
        sample.fill(db)
        names = db.run(Plain(Operation("keys", b"KEYS", Effect.READ), (b"*",)))
    found = inferred_server(redis_url, load_catalogue())
    assert found.programs == ()
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


@pytest.mark.parametrize(
    ("name", "pattern"),
    [
        (b"box:old:17", "box:old:<number>"),
        (b"task-meta-f81d4fae-7dec-41d0-a765-00a0c91e6bf6", "task-meta-<uuid>"),
        (b"logs/2024-01-01/errors", "logs/<date>/errors"),
        (b"{cart:17}:items", "{cart:<number>}:items"),
        (b"blob:0123456789abcdef", "blob:<hex>"),
        (b"mail:ada@example.org", "mail:<email>"),
        (b"Zo\xc3\xab Smith:1", "<text>:<number>"),
        (b"\xff:1", "<text>:<number>"),
        (b"x" * 100_000, "<text>"),
        (b"", ""),
    ],
)
def test_the_likely_pattern_of_an_unknown_name(name: bytes, pattern: str) -> None:
    assert likely_pattern(name) == pattern
