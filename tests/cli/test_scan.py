"""`keywright scan` lists keys by template, with decoded variables; secrets stay masked."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import cli_spaces as spaces
from invoking import Invoke
from keywright import Secret, connect, gather
from keywright.testing import Raw, RedisServer

KINDS = "cli_spaces:kinds"


@pytest.fixture
def url(redis_url: str) -> str:
    with connect(redis_url) as db:
        db.run(gather(*(spaces.Pets(f"p{n}").put(spaces.Cat("cat", n)) for n in range(30))))
        db.run(gather(spaces.Total().add(2), spaces.Session().set("ada")))
    return redis_url


def listed(invoke: Invoke, *arguments: str) -> list[dict[str, Any]]:
    done = invoke("scan", *arguments, "--format", "json")
    assert done.exit_code == 0, done.output
    return [json.loads(line) for line in done.stdout.splitlines()]


def test_every_key_of_the_model_is_listed_with_its_template(invoke: Invoke, url: str, raw: Raw) -> None:
    raw("SET", "kinds:undeclared", "x")
    raw("SET", "pet:p1", "of nobody")
    found = listed(invoke, KINDS, "--url", url)
    assert len({each["name"] for each in found}) == len(found) == 32
    assert {each["template"] for each in found} == {"pet:<pet>", "total", "session"}
    assert {"name": "kinds:pet:p7", "template": "pet:<pet>", "variables": {"pet": "p7"}} in found


@pytest.mark.parametrize("name", ["pet:<pet>", "Pets"])
def test_one_template_is_listed_by_its_text_or_its_class(invoke: Invoke, url: str, name: str) -> None:
    assert len(listed(invoke, KINDS, name, "--url", url)) == 30


def test_a_variable_and_a_pattern_narrow_the_list(invoke: Invoke, url: str) -> None:
    (found,) = listed(invoke, KINDS, "Pets", "--where", "pet=p7", "--url", url)
    assert found["variables"] == {"pet": "p7"}
    assert len(listed(invoke, KINDS, "--match", "kinds:pet:p1?", "--url", url)) == 10
    assert len(listed(invoke, KINDS, "Pets", "--match", "*p2*", "--limit", "3", "--url", url)) == 3


def test_values_are_decoded_and_secrets_masked(invoke: Invoke, redis_url: str) -> None:
    with connect(redis_url) as db:
        db.run(gather(spaces.Tokens().add(Secret("hunter2")), spaces.Pets("a").put(spaces.Cat("cat", 9))))
        db.run(spaces.Session().set("ada"))
    done = invoke("scan", KINDS, "--values", "--url", redis_url)
    assert "hunter2" not in done.output
    found = {each["name"]: each for each in listed(invoke, KINDS, "--values", "--url", redis_url)}
    assert found["kinds:tokens"]["value"] == ["(secret)"]
    assert found["kinds:pet:a"]["value"] == {"kind": "cat", "lives": 9}
    assert found["kinds:pet:a"]["ttl_ms"] is None
    assert found["kinds:session"]["ttl_ms"] > 0


def test_a_key_that_does_not_decode_has_its_problem_in_its_line(
    invoke: Invoke, redis_url: str, raw: Raw
) -> None:
    raw("SET", "kinds:pet:a", "no hash")
    (found,) = listed(invoke, KINDS, "--values", "--url", redis_url)
    assert "a hash" in found["problem"] or "hash" in found["problem"]
    assert "value" not in found


def test_a_cluster_is_listed_node_by_node(invoke: Invoke, cluster_url: str) -> None:
    with connect(cluster_url) as db:
        db.run(gather(*(spaces.Pets(f"p{n}").put(spaces.Cat("cat", n)) for n in range(200))))
    assert len(listed(invoke, KINDS, "Pets", "--url", cluster_url, "--max-rate", "100000")) == 200


def test_names_do_not_control_a_terminal(invoke: Invoke, redis_url: str, raw: Raw) -> None:
    raw("RPUSH", "queue:evil\x1b[31m", "x")
    done = invoke("scan", "cli_spaces:queues", "--url", redis_url)
    assert "\x1b" not in done.stdout


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        (("pet:<id>",), "Did you mean 'pet:<pet>'?"),
        (("Petz",), "Did you mean 'Pets'?"),
        (("--where", "pet=1"), "Name a TEMPLATE too"),
        (("Pets", "--where", "dog=1"), "the variables are pet"),
        (("Pets", "--where", "pet=a:b"), "must be"),
        (("--match", "*" * 5), "stars"),
    ],
)
def test_what_cannot_be_listed_says_what_can(
    invoke: Invoke, redis_url: str, arguments: tuple[str, ...], reason: str
) -> None:
    done = invoke("scan", KINDS, *arguments, "--url", redis_url)
    assert (done.exit_code, done.stdout) == (2, "")
    assert reason in done.stderr


def test_the_model_of_the_project_is_the_default(
    invoke: Invoke, url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    done = invoke("scan", "--url", url)
    assert done.exit_code == 2
    assert 'write model = "shop.schema:shop"' in done.stderr
    (tmp_path / "pyproject.toml").write_text(f'[tool.keywright]\nmodel = "{KINDS}"\nurl = "{url}"\n')
    assert len(listed(invoke, "--limit", "5")) == 5
    assert len(listed(invoke, "Pets")) == 30
    assert json.loads(invoke("get", "kinds:total").stdout) == 2
    assert json.loads(invoke("check", "--format", "json").stdout)["keyspace"] == "kinds"
    assert json.loads(invoke("stats", "--format", "json").stdout)["names"] == 32
    assert invoke("export", "-o", "all.jsonl").exit_code == 0
    assert "are stored already" in invoke("import", "all.jsonl").stdout


def test_only_reading_commands_are_sent(invoke: Invoke, url: str, keywright_server: RedisServer) -> None:
    keywright_server.call("CONFIG", "RESETSTAT")
    listed(invoke, KINDS, "--values", "--url", url)
    assert invoke("export", KINDS, "--url", url).exit_code == 0
    used = keywright_server.text("INFO", "commandstats")
    assert not {"set", "hset", "sadd", "unlink", "del", "evalsha", "pexpireat"} & {
        line.partition(":")[0].removeprefix("cmdstat_") for line in used.splitlines()
    }
