"""`keywright migrate`: plans, sweeps that may be killed, conversions, and exit codes."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import pytest
import redis

from invoking import invoke_keywright
from keywright import Keyring, connect
from keywright.testing.conditions import wait_until
from keywright.testing.runs import Raw
from keywright.tools.migrate import Bookmark
from keywright_discord.spectacles import schema as spectacles
from keywright_discord.spectacles.store import SpectaclesCache
from keywright_discord.traffic import Traffic

MODEL = "migrating:now"
TESTS = str(Path(__file__).parent.parent)


class Ran(NamedTuple):
    code: int
    output: str

    @property
    def data(self) -> dict[str, Any]:
        found: dict[str, Any] = json.loads(self.output)
        return found


Invoke = Callable[..., Ran]


@pytest.fixture
def invoke(redis_url: str, monkeypatch: pytest.MonkeyPatch) -> Invoke:
    """Return a function that runs the command against the server and returns its exit code and output."""
    monkeypatch.delenv("REDIS_URL", raising=False)

    def run(*arguments: str, url: str | None = redis_url) -> Ran:
        given = [] if url is None else ["--url", url]
        result = invoke_keywright("migrate", *arguments, *given)
        if result.exception is not None and not isinstance(result.exception, SystemExit):
            raise result.exception
        return Ran(result.exit_code, result.stdout or result.stderr)

    return run


def _old(raw: Raw, count: int) -> None:
    for n in range(count):
        raw("SADD", f"loans:r{n}", f"b{n}")
        raw("HSET", f"sheet:s{n}", "line", f"title {n}/{n}")


def test_without_yes_it_counts_and_changes_nothing(invoke: Invoke, raw: Raw) -> None:
    _old(raw, 30)
    before = raw.names()
    ran = invoke(MODEL)
    assert ran.code == 1
    assert "reader:<reader>:loans: 30 to be moved" in ran.output
    assert "sheet:<sheet>: 30 to be upgraded" in ran.output
    assert "Add --yes" in ran.output
    assert raw.names() == before
    assert raw("HGET", "sheet:s1", "line")


def test_with_yes_it_sweeps_audits_and_lists_droppable_declarations(invoke: Invoke, raw: Raw) -> None:
    _old(raw, 30)
    ran = invoke(MODEL, "--yes", "--format", "json")
    assert ran.code == 0
    assert ran.data["templates"]["reader:<reader>:loans"]["moved"] == 30
    assert ran.data["templates"]["sheet:<sheet>"]["upgraded"] == 30
    assert ran.data["contract"]["ready"]
    assert "Loans: moved_from 'loans:<reader>'" in ran.data["contract"]["droppable"]
    assert raw("SMEMBERS", "reader:r3:loans") == {b"b3"}
    again = invoke(MODEL)
    assert (again.code, "Nothing is old." in again.output) == (0, True)


def test_a_contract_is_refused_while_old_keys_are_left(invoke: Invoke, raw: Raw) -> None:
    _old(raw, 3)
    ran = invoke(MODEL, "--contract")
    assert ran.code == 1
    assert "old: 3 of loans:<reader>" in ran.output
    assert "must stay" in ran.output
    invoke(MODEL, "--yes")
    assert invoke(MODEL, "--contract").code == 0


def test_refused_keys_are_listed_masked_and_exit_with_1(invoke: Invoke, raw: Raw) -> None:
    raw("SADD", "loans:ann", "older")
    raw("SADD", "reader:ann:loans", "newer")
    raw("HSET", "sheet:secret", "line", "broken")
    ran = invoke(MODEL, "--yes")
    assert ran.code == 1
    assert "1 under both names, and different" in ran.output
    assert "1 that cannot be upgraded" in ran.output
    assert "ann" not in ran.output.replace("cannot", "")
    assert "secret" not in ran.output
    assert "reader:ann:loans" in invoke(MODEL, "--yes", "--show-ids").output
    invoke(MODEL, "--yes", "--discard-old")
    assert not raw("EXISTS", "loans:ann")


def test_a_prefix_is_respected(invoke: Invoke, raw: Raw) -> None:
    raw("SADD", "lib:loans:ann", "dune")
    raw("SADD", "loans:ann", "another program's")
    assert invoke(MODEL, "--prefix", "lib", "--yes").code == 0
    assert raw("SMEMBERS", "lib:reader:ann:loans") == {b"dune"}
    assert raw("EXISTS", "loans:ann")


def test_an_invalid_invocation_has_its_exit_code(
    invoke: Invoke, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.chdir(tmp_path)
    assert invoke(MODEL, url=None).code == 2
    assert invoke("nothing").code == 2
    assert invoke(MODEL, "--layout", "drc").code == 2
    assert invoke(MODEL, url="redis://127.0.0.1:1").code == 3


class Sweeper:
    """The command in a process of its own."""

    def __init__(self, *arguments: str) -> None:
        # The current folder is searched for the model.
        self.process = subprocess.Popen(
            [sys.executable, "-m", "keywright", "migrate", *arguments],
            cwd=TESTS,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )

    def end(self, signal_number: int) -> int:
        self.process.send_signal(signal_number)
        self.process.communicate(timeout=30)
        return self.process.returncode


@pytest.fixture
def start() -> Iterator[Callable[..., Sweeper]]:
    started: list[Sweeper] = []

    def begin(*arguments: str) -> Sweeper:
        started.append(Sweeper(*arguments))
        return started[-1]

    yield begin
    for each in started:
        if each.process.poll() is None:
            each.process.kill()
            each.process.communicate()


@pytest.mark.parametrize(
    ("how", "jobs"),
    [(signal.SIGKILL, "1"), (signal.SIGINT, "1"), (signal.SIGKILL, "2"), (signal.SIGINT, "2")],
)
def test_a_sweep_that_is_ended_in_the_middle_goes_on(
    redis_url: str,
    raw: Raw,
    tmp_path: Path,
    invoke: Invoke,
    start: Callable[..., Sweeper],
    how: int,
    jobs: str,
) -> None:
    count, path = 3000, tmp_path / "bookmark"
    with redis.Redis.from_url(redis_url) as client:
        pipe = client.pipeline(transaction=False)
        for n in range(count):
            pipe.sadd(f"loans:r{n}", f"b{n}")
        pipe.execute()
    slowly = ("--max-rate", "200", "--jobs", jobs)
    sweeper = start(MODEL, "--url", redis_url, "--yes", *slowly, "--resume", str(path))

    def left() -> int:
        return sum(name.startswith(b"loans:") for name in raw.names())

    wait_until(lambda: path.exists() and left() < count - 200, "a part is swept")
    assert sweeper.end(how) == (-how if how == signal.SIGKILL else 1)
    assert 0 < left() < count
    ran = invoke(MODEL, "--yes", "--resume", str(path), "--format", "json")
    assert (ran.code, left()) == (0, 0)
    assert all(raw("SISMEMBER", f"reader:r{n}:loans", f"b{n}") for n in range(0, count, 7))
    assert not path.exists()


def test_a_conversion_and_a_migration_of_its_own_have_one_job(redis_url: str) -> None:
    for arguments in (("spectacles", "--layout", "drc"), ("openmod", "--yes")):
        done = invoke_keywright("migrate", *arguments, "--url", redis_url, "--jobs", "2")
        assert done.exit_code == 2
        assert "runs in one process. Leave out --jobs." in done.stderr


def test_a_bookmark_of_other_names_is_not_gone_on_from(invoke: Invoke, raw: Raw, tmp_path: Path) -> None:
    path = tmp_path / "bookmark"
    Bookmark.at(path, f"migrate {MODEL}").save()
    ran = invoke(MODEL, "--yes", "--prefix", "lib", "--resume", str(path))
    assert ran.code == 2
    assert f"not of 'migrate {MODEL} --prefix lib'" in ran.output
    assert invoke(MODEL, "--yes", "--from-version", "v0", "--resume", str(path)).code == 2
    assert invoke(MODEL, "--yes", "--resume", str(path)).code == 0


def test_values_sealed_with_an_unknown_key_keep_their_declarations(
    invoke: Invoke, raw: Raw, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KEYWRIGHT_SEAL_KEYS", Keyring.generate("first").export())
    raw("SET", "token:ann", "secret")
    assert invoke("migrating:vault", "--yes").code == 0
    monkeypatch.delenv("KEYWRIGHT_SEAL_KEYS")
    ran = invoke("migrating:vault", "--contract")
    assert ran.code == 1
    assert "not known: token:<reader>: it is sealed" in ran.output


def _audit(actor: str, person: str) -> dict[str, str]:
    return {
        "type": "banuser",
        "actor": actor,
        "thingId": person,
        "permalink": "/r/x",
        "createdAt": "1600000000000",
    }


def _audits(url: str, count: int) -> None:
    """Return v1 records whose people are known from Redis alone: bans by special accounts."""
    with redis.Redis.from_url(url) as client:
        pipe = client.pipeline(transaction=False)
        for n in range(count):
            pipe.hset(f"audit:t3_{n}", mapping=_audit("Anti-Evil Operations", f"t2_{n}"))
            if n % 5000 == 4999:
                pipe.execute()
        pipe.execute()


def test_thousands_of_records_of_openmod_are_swept(invoke: Invoke, redis_url: str, raw: Raw) -> None:
    count = 5_000
    _audits(redis_url, count)
    ran = invoke("openmod", "--yes", "--format", "json", "--full-speed")
    assert ran.code == 0
    assert ran.data["templates"]["audit:<post>"] == {"moved": 0, "upgraded": count, "both": 0, "refused": 0}
    assert ran.data["contract"] == {
        "ready": True,
        "old": {},
        "unknown": {},
        "droppable": ["ExtractHash: the upgrade from 'v1'"],
    }
    assert raw("HGETALL", "audit:t3_7") == {
        b"type": b"banuser",
        b"actor": b"t2_antieviloperations",
        b"target": b"t2_7",
    }


def test_records_that_name_unknown_people_are_left_and_listed(
    invoke: Invoke, redis_url: str, raw: Raw
) -> None:
    _audits(redis_url, 3)
    raw("HSET", "audit:t3_9", *(word for pair in _audit("some_mod", "t2_9").items() for word in pair))
    ran = invoke("openmod", "--yes")
    assert ran.code == 1
    assert "3 upgraded, 1 that cannot be upgraded" in ran.output
    assert "give --config to look them up" in ran.output
    assert raw("HGET", "audit:t3_9", "actor") == b"some_mod"


def test_a_spectacles_cache_is_converted(invoke: Invoke, redis_url: str, raw: Raw) -> None:
    with connect(redis_url, *spectacles.bind("bot", message_ttl=None)) as db:
        events = Traffic(1).events(200, guilds=2, members=20)
        db.run(SpectaclesCache().apply([(name, msgspec.json.encode(data)) for name, data in events]))
    before = raw.names()
    planned = invoke("spectacles", "--layout", "drc", "--prefix", "bot")
    assert planned.code == 1
    assert "not converted: thread members" in planned.output
    assert raw.names() == before
    ran = invoke(
        "spectacles", "--layout", "drc", "--prefix", "bot", "--to-prefix", "new", "--yes", "--format", "json"
    )
    assert ran.code == 0
    assert ran.data["entities"] > 100
    assert raw("SCARD", "new:v1json:guilds") == 2


def test_the_seal_keys_of_the_environment_seal(
    invoke: Invoke, raw: Raw, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KEYWRIGHT_SEAL_KEYS", Keyring.generate("first").export())
    raw("SET", "token:ann", "secret")
    ran = invoke("migrating:vault", "--yes")
    assert ran.code == 0, ran.output
    assert b"secret" not in raw("GET", "token:ann")
