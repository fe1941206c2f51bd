"""The commands that read a dump instead of a server: `audit`, `stats`, `infer`, `get`, `diff`."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
import redis

from audit_samples import SAMPLES
from dumps import crafted, dump_of, record, text
from invoking import Invoke
from keywright.testing.damage import plant

DRC = SAMPLES["drc"]()


@pytest.fixture
def dump(redis_url: str, tmp_path: Path) -> Path:
    with DRC.open(redis_url) as db:
        DRC.fill(db)
    with redis.Redis.from_url(redis_url) as client:
        return dump_of(client, tmp_path / "dump.rdb")


def test_an_audit_of_a_dump_says_that_it_is_of_a_file_and_of_which_moment(invoke: Invoke, dump: Path) -> None:
    done = invoke("audit", "drc", "--rdb", str(dump), "--checksum")
    assert done.exit_code == 0, done.output
    first = done.stdout.replace("\n", " ")
    assert re.search(
        r"drc on .*dump\.rdb \(a dump of Redis \S+ at \S+ \S+ UTC, sizes as in the file\)", first
    )
    assert "drc is as declared." in done.stdout


def test_findings_of_a_dump_exit_with_1_and_equal_those_of_the_server(
    invoke: Invoke, redis_url: str, tmp_path: Path
) -> None:
    with DRC.open(redis_url) as db:
        DRC.fill(db)
        plant(db, DRC.model.spaces, each=2)
    live = invoke("audit", "drc", "--url", redis_url, "--format", "json")
    with redis.Redis.from_url(redis_url) as client:
        path = dump_of(client, tmp_path / "dump.rdb")
    done = invoke("audit", "drc", "--rdb", str(path), "--format", "json")
    assert done.exit_code == live.exit_code == 1
    of_file, of_server = json.loads(done.stdout), json.loads(live.stdout)
    assert of_file["counts"] == of_server["counts"]
    assert of_file["names"] == of_server["names"]


def test_stats_of_a_dump_count_what_the_server_has(invoke: Invoke, redis_url: str, dump: Path) -> None:
    def counted(*source: str) -> dict[str, int]:
        data: Any = json.loads(invoke("stats", "drc", *source, "--format", "json").stdout)
        return {row["template"]: row["keys"] for row in data["templates"]}

    assert counted("--rdb", str(dump)) == counted("--url", redis_url)


def test_stats_without_a_model_and_infer_read_all_databases_of_a_dump(
    invoke: Invoke, redis_url: str, tmp_path: Path
) -> None:
    with redis.Redis.from_url(redis_url) as client:
        for n in range(50):
            client.hset(f"user:{n + 1000}", mapping={"name": f"n{n}", "team": n % 5 + 20})
        client.select(2)
        for n in range(5):
            client.sadd(f"team:{n + 20}:members", *range(1000 + n, 1050, 5))
        path = dump_of(client, tmp_path / "dump.rdb")
    module = invoke("infer", "--rdb", str(path))
    live = invoke("infer", "--url", redis_url.partition("?")[0])
    assert module.exit_code == 0, module.output
    assert "inferred_2" in module.stdout
    assert "wrote from a dump" in module.stdout
    assert module.stdout.replace("a dump", "a server") == live.stdout
    stats = invoke("stats", "--rdb", str(path))
    assert stats.exit_code == 0, stats.output
    assert "database 2" in stats.stdout


def test_get_shows_a_key_of_a_dump_as_of_the_server(invoke: Invoke, redis_url: str, dump: Path) -> None:
    with redis.Redis.from_url(redis_url) as client:
        names = sorted(client.scan_iter(count=1000))[::40]
    for name in map(bytes.decode, names):
        of_file = invoke("get", "drc", name, "--rdb", str(dump))
        assert of_file.exit_code == 0, of_file.output
        assert of_file.stdout == invoke("get", "drc", name, "--url", redis_url).stdout
    missing = invoke("get", "drc", "keywright:v1json:users:1", "--rdb", str(dump))
    assert missing.exit_code == 1, missing.output


def test_two_dumps_are_compared_by_template(
    invoke: Invoke, redis_url: str, dump: Path, tmp_path: Path
) -> None:
    same = invoke("diff", str(dump), str(dump), "--model", "drc")
    assert same.exit_code == 0, same.output
    with redis.Redis.from_url(redis_url) as client:
        name = next(client.scan_iter(match="*messages*"))
        client.delete(name)
        after = dump_of(client, tmp_path / "after.rdb")
    done = invoke("diff", str(dump), str(after), "--model", "drc", "--keys")
    assert done.exit_code == 1
    assert re.search(r"removed  messages:<message> #[0-9a-f]{6}\n", done.stdout)
    assert re.search(r"messages:<message> +0 +1 +0 +0 +[0-9]+", done.stdout)
    assert name.decode() not in done.stdout
    shown = invoke(
        "diff", str(dump), str(after), "--model", "drc", "--keys", "--show-ids", "--format", "json"
    )
    data = json.loads(shown.stdout)
    assert data["keys"] == [
        {"sort": "removed", "template": "messages:<message>", "key": name.decode(), "what": ""}
    ]
    assert data["templates"]["messages:<message>"]["removed"] == 1


def test_commands_behind_the_dump_are_reported(invoke: Invoke, tmp_path: Path) -> None:
    path = tmp_path / "appendonly.aof"
    path.write_bytes(crafted(record(b"other", 0, text(b"x"))) + b"*1\r\n$8\r\nFLUSHALL\r\n")
    done = invoke("stats", "drc", "--rdb", str(path))
    assert done.exit_code == 0
    assert "18 bytes of commands behind the dump were not read" in done.stderr


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        (("audit", "drc", "--rdb", "FILE", "--url", "redis://localhost"), "--rdb is instead of a server"),
        (("audit", "drc", "--rdb", "nowhere.rdb"), "nowhere.rdb cannot be read"),
        (("audit", "drc", "--checksum", "--url", "redis://localhost"), "--checksum is of a dump"),
        (("stats", "drc", "--rdb", "FILE", "--watch"), "a dump does not change"),
        (("infer", "--rdb", "FILE", "--names", "FILE"), "--names is instead of a server"),
        (("diff", "FILE", "--model", "drc"), "--model compares two dumps"),
        (("diff", "drc", "drc", "--keys"), "need --model"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, tuple) else "",
)
def test_a_wrong_invocation_is_refused_with_the_remedy(
    invoke: Invoke, tmp_path: Path, arguments: tuple[str, ...], reason: str
) -> None:
    path = tmp_path / "dump.rdb"
    path.write_bytes(crafted())
    done = invoke(*(str(path) if each == "FILE" else each for each in arguments))
    assert done.exit_code == 2, done.output
    assert reason in done.stderr


def test_a_file_that_is_not_a_dump_exits_with_3(invoke: Invoke, tmp_path: Path) -> None:
    path = tmp_path / "dump.rdb"
    path.write_bytes(b"something else")
    done = invoke("audit", "drc", "--rdb", str(path))
    assert done.exit_code == 3
    assert "cannot be read as a dump: it does not begin with REDIS or VALKEY" in done.stderr
