"""`keywright get` shows any key as JSON and changes nothing."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

import pytest

import cli_spaces as spaces
from invoking import Invoke
from keywright import Call, Database, Keyring, Secret, connect
from keywright.testing import RedisServer

MOMENT = datetime(2019, 8, 8, 17, 30, tzinfo=UTC)
SHOWN = "2019-08-08T17:30:00+00:00"
BIG = 2**60 + 1


@pytest.fixture
def keyring() -> Keyring:
    return Keyring.generate("k1")


@pytest.fixture
def db(redis_url: str, keyring: Keyring) -> Iterator[Database]:
    with connect(redis_url, spaces.kinds.bind(keyring=keyring)) as database:
        yield database


ORDER = spaces.Order(MOMENT, spaces.Colour.RED, BIG)

STORED: list[tuple[str, Call[Any], Any]] = [
    ("order:a", spaces.Orders("a").put(ORDER), {"placedAt": SHOWN, "colour": "red", "buyer": BIG}),
    ("pet:a", spaces.Pets("a").put(spaces.Dog("dog", ["sit"])), {"kind": "dog", "tricks": ["sit"]}),
    ("members", spaces.Members().add(BIG, 7, 10), [7, 10, BIG]),
    ("tokens", spaces.Tokens().add(Secret("in clear")), ["(secret)"]),
    ("due", spaces.Due().add("a", MOMENT), [{"member": "a", "score": SHOWN}]),
    (
        "ranks",
        spaces.Ranks().add_many({"a": 0.5, "b": float("inf")}),
        [{"member": "a", "score": 0.5}, {"member": "b", "score": "inf"}],
    ),
    ("names", spaces.Names().put_many({BIG: "é"}), {str(BIG): "é"}),
    ("hidden", spaces.Hidden().put(Secret("in clear"), 3), {"(secret) 1": 3}),
    ("recent", spaces.Recent().push("b", "a", "b"), ["b", "a", "b"]),
    (
        "log",
        spaces.Log().add(spaces.Line("hi", 2), entry_id="5-1"),
        [{"id": "5-1", "value": {"text": "hi", "level": 2}}],
    ),
    ("total", spaces.Total().add(2**62), 2**62),
    ("blob", spaces.Blob().set(b"\xff"), {"base64": "/w=="}),
    ("blob", spaces.Blob().set(b""), {"base64": ""}),
    ("settings", spaces.Settings().set({"a": 2**53 + 1}), {"a": 2**53 + 1}),
    ("sealing", spaces.Sealing().set("in clear"), "(sealed)"),
]


@pytest.mark.parametrize(("name", "write", "shown"), STORED, ids=[name for name, _, _ in STORED])
def test_every_kind_is_shown_as_json(
    db: Database, redis_url: str, invoke: Invoke, name: str, write: Call[Any], shown: Any
) -> None:
    db.run(write)
    done = invoke("get", "cli_spaces:kinds", f"kinds:{name}", "--url", redis_url)
    assert (done.exit_code, done.stderr) == (0, "")
    found = json.loads(done.stdout)
    if name == "order:a":
        assert (found.pop("note"), found.pop("password")) == (None, None)
    assert found == shown
    assert "in clear" not in done.output


@pytest.mark.parametrize("known", [False, True])
def test_a_sealed_member_stays_hidden_with_and_without_its_key(
    db: Database,
    redis_url: str,
    invoke: Invoke,
    keyring: Keyring,
    monkeypatch: pytest.MonkeyPatch,
    known: bool,
) -> None:
    order = spaces.Order(MOMENT, spaces.Colour.RED, 1, password=Secret("in clear"))
    db.run(spaces.Orders("a").put(order))
    if known:
        monkeypatch.setenv("KEYWRIGHT_SEAL_KEYS", keyring.export())
    done = invoke("get", "cli_spaces:kinds", "kinds:order:a", "--url", redis_url)
    assert json.loads(done.stdout)["password"] == "(sealed)"
    assert "in clear" not in done.output


def test_a_seal_that_the_given_keys_do_not_open_exits_with_1(
    db: Database, redis_url: str, invoke: Invoke, monkeypatch: pytest.MonkeyPatch
) -> None:
    db.run(spaces.Sealing().set("in clear"))
    monkeypatch.setenv("KEYWRIGHT_SEAL_KEYS", Keyring.generate("other").export())
    done = invoke("get", "cli_spaces:kinds", "kinds:sealing", "--url", redis_url)
    assert done.exit_code == 1
    assert "unknown key 'k1'" in done.stderr


@pytest.mark.parametrize("name", ["session", "visitors"])
def test_looking_does_not_renew_a_sliding_expiry(
    db: Database, redis_url: str, invoke: Invoke, keywright_server: RedisServer, name: str
) -> None:
    db.run(spaces.Session().set("a"))
    db.run(spaces.Visitors().add("a"))
    keywright_server.call("PEXPIRE", f"kinds:{name}", 5_000)
    assert invoke("get", "cli_spaces:kinds", f"kinds:{name}", "--url", redis_url).exit_code == 0
    left = keywright_server.call("PTTL", f"kinds:{name}")
    assert isinstance(left, int)
    assert 0 < left <= 5_000


def test_looking_does_not_upgrade_an_older_shape(
    redis_url: str, invoke: Invoke, keywright_server: RedisServer
) -> None:
    keywright_server.call("HSET", "kinds:versioned", "message", "old")
    done = invoke("get", "cli_spaces:kinds", "kinds:versioned", "--url", redis_url)
    assert json.loads(done.stdout) == {"message": "old"}
    assert "older shape 'v1'" in done.stderr
    assert keywright_server.call("HGETALL", "kinds:versioned") == [b"message", b"old"]


def test_no_command_of_a_look_writes(
    db: Database, redis_url: str, invoke: Invoke, keywright_server: RedisServer
) -> None:
    for _, write, _ in STORED:
        db.run(write)
    keywright_server.call("CONFIG", "RESETSTAT")
    for name, _, _ in STORED:
        invoke("get", "cli_spaces:kinds", f"kinds:{name}", "--url", redis_url)
    info = keywright_server.call("INFO", "commandstats")
    assert isinstance(info, bytes)
    used = {line.split(":")[0].removeprefix("cmdstat_").upper() for line in info.decode().splitlines()[1:]}
    reading = {"TYPE", "GET", "STRLEN", "HLEN", "HGETALL", "SCARD", "SMEMBERS", "ZCARD", "ZRANGE", "LLEN"}
    reading |= {"LRANGE", "XLEN", "XRANGE"}
    around = {
        "AUTH",
        "INFO",
        "COMMAND|INFO",
        "CONFIG|RESETSTAT",
        "HELLO",
        "CLIENT|SETINFO",
        "CLIENT|SETNAME",
        "SELECT",
    }
    assert used - around == reading


@pytest.mark.parametrize("name", ["members", "names", "recent", "ranks", "log"])
def test_a_large_collection_is_cut_with_a_note(
    db: Database, redis_url: str, invoke: Invoke, name: str
) -> None:
    db.run(spaces.Members().add(*range(3_000)))
    db.run(spaces.Names().put_many(dict.fromkeys(range(3000), "a")))
    db.run(spaces.Recent().push(*map(str, range(3_000))))
    db.run(spaces.Ranks().add_many({str(number): float(number) for number in range(3_000)}))
    for number in range(1, 60):
        db.run(spaces.Log().add(spaces.Line("a"), entry_id=f"{number}-0"))
    done = invoke("get", "cli_spaces:kinds", f"kinds:{name}", "--url", redis_url, "--limit", "50")
    assert done.exit_code == 0
    assert len(json.loads(done.stdout)) == 50
    assert f"truncated: 50 of {59 if name == 'log' else 3000} entries" in done.stderr


def test_a_missing_key_exits_with_1(redis_url: str, invoke: Invoke) -> None:
    done = invoke("get", "cli_spaces:kinds", "kinds:total", "--url", redis_url)
    assert (done.exit_code, done.stdout) == (1, "")
    assert done.stderr == "error: kinds:total does not exist.\n"


def test_a_name_of_no_template_exits_with_2_and_the_nearest_one(redis_url: str, invoke: Invoke) -> None:
    done = invoke("get", "cli_spaces:kinds", "kinds:order:a:b", "--url", redis_url)
    assert done.exit_code == 2
    assert "The closest template is 'order:<order>'" in done.stderr


def test_a_name_without_the_prefix_exits_with_2_and_points_to_it(redis_url: str, invoke: Invoke) -> None:
    done = invoke("get", "cli_spaces:kinds", "order:a", "--url", redis_url)
    assert done.exit_code == 2
    assert "Check the prefix" in done.stderr


def test_another_prefix_can_be_given(redis_url: str, invoke: Invoke, keywright_server: RedisServer) -> None:
    keywright_server.call("SET", "other:total", 5)
    done = invoke("get", "cli_spaces:kinds", "other:total", "--url", redis_url, "--prefix", "other")
    assert done.stdout == "5\n"


@pytest.mark.parametrize(
    ("command", "message"),
    [
        (("SET", "kinds:total", "many"), "should hold a signed 64-bit integer, but holds b'many'"),
        (("SADD", "kinds:total", "a"), "should hold a counter (string), but holds a set"),
        (("HSET", "kinds:pet:a", "kind", "fish"), "one of cat, dog as member 'kind'"),
        (("HSET", "kinds:pet:a", "kind", "cat"), "the member 'lives'"),
        (("HSET", "kinds:pet:a", "kind", "cat", "lives", "x"), "as member 'lives', but holds b'x'"),
        (("SADD", "kinds:members", "a"), "should hold a snowflake"),
        (("XADD", "kinds:log", "1-1", "level", "2"), "the member 'text'"),
    ],
)
def test_data_that_is_not_as_declared_exits_with_1(
    redis_url: str, invoke: Invoke, keywright_server: RedisServer, command: tuple[str, ...], message: str
) -> None:
    keywright_server.call(*command)
    done = invoke("get", "cli_spaces:kinds", command[1], "--url", redis_url)
    assert (done.exit_code, done.stdout) == (1, "")
    assert message in done.stderr


def test_a_server_that_is_away_exits_with_3(invoke: Invoke) -> None:
    done = invoke("get", "cli_spaces:kinds", "kinds:total", "--url", "redis://127.0.0.1:1")
    assert done.exit_code == 3
    assert "127.0.0.1:1 cannot be reached" in done.stderr


def test_redis_url_is_used_unless_url_is_given(
    redis_url: str, invoke: Invoke, keywright_server: RedisServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    keywright_server.call("SET", "kinds:total", 5)
    monkeypatch.setenv("REDIS_URL", redis_url)
    assert invoke("get", "cli_spaces:kinds", "kinds:total").stdout == "5\n"
    wrong = invoke("get", "cli_spaces:kinds", "kinds:total", "--url", "redis://127.0.0.1:1")
    assert wrong.exit_code == 3


def test_a_url_of_no_known_form_exits_with_2(invoke: Invoke) -> None:
    done = invoke("get", "cli_spaces:kinds", "kinds:total", "--url", "http://localhost")
    assert done.exit_code == 2
    assert "is not supported. Use redis://" in done.stderr


def test_every_kind_of_the_sample_was_shown() -> None:
    shown = {spaces.kinds.parse(f"kinds:{name}".encode()).kind for name, _, _ in STORED}
    assert shown == {kind.kind for kind in spaces.kinds}
