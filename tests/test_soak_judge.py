"""The judge of the soak sees planted damage, and imports nothing of what it judges."""

from __future__ import annotations

import ast
import json
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from soak.judge import keyspace, messages, openmod
from soak.judge.findings import Findings
from soak.judge.logs import attempts
from soak.judge.raw import everything

from keywright.testing import RedisServer

JUDGE = Path(__file__).parents[1] / "soak" / "judge"
LOG = """\
try\tpush\ta-0/a1\t
ok\tpush\ta-0/a1\t
try\tpush\ta-0/a2\t
doubt\tpush\ta-0/a2\tDeadlineError
try\tpush\ta-0/a3\t
no\tpush\ta-0/a3\tConnectionLostError
try\tadd\ta/1\t
ok\tadd\ta/1\t
try\tassign\tp1/t1\t
ok\tassign\tp1/t1\t
try\tmove\tp1/u1\t
ok\tmove\tp1/u1\t
try\tsit\tp1/d1\t
ok\tsit\tp1/d1\t
try\ttag\tp1/x1\t
ok\ttag\tp1/x1\t
try\tprofile\tp1\t
ok\tprofile\tp1\t
try\tnote\ta1/1\t
ok\tnote\ta1/1\t
try\tfinish\t1\t
ok\tfinish\t1\t
try\tpush\ta-0/a4\t
"""
SOUND = [
    "RPUSH log:a-0 a1 a2",
    "SET hits:a 1",
    "SET person:p1:team u1",
    "SADD team:u1:members p1",
    "SET moves:p1 1",
    "SET person:p1:desk d1",
    "SET desk:d1:person p1",
    "SADD person:p1:tags x1",
    "SADD tag:x1:people p1",
    "HSET profile:p1 name p1",
    "SADD profiles p1",
    "SET note:a1 1",
    "SET job:{1} done",
    "SET job:{1}:runs 1",
]
Judge = Callable[..., Findings]


@pytest.fixture(scope="module")
def server(keywright_server: RedisServer) -> Iterator[RedisServer]:
    with RedisServer(tcp=True) as server:
        yield server


@pytest.fixture
def judge(server: RedisServer, tmp_path: Path) -> Judge:
    """Judge sound data and the damage that these commands do to it."""
    log = tmp_path / "acknowledged"
    log.write_text(LOG)

    def judged(*damage: str) -> Findings:
        server.call("FLUSHALL")
        for command in (*SOUND, *damage):
            server.call(*command.split(" "))
        return keyspace.judge_keyspace([log], everything([server.port]))

    return judged


def test_sound_data_passes(judge: Judge) -> None:
    found = judge()
    assert found.passed, found.details
    assert found.acknowledged == 9
    assert found.errors == {"DeadlineError": 1, "ConnectionLostError": 1, "(killed)": 1}


@pytest.mark.parametrize(
    "damage",
    [
        "LREM log:a-0 0 a1",
        "SET hits:a 0",
        "DEL note:a1",
        "SET note:a1 0",
        "DEL job:{1}:runs",
        "SREM person:p1:tags x1",
    ],
)
def test_a_lost_write_is_found(judge: Judge, damage: str) -> None:
    assert judge(damage).lost == 1


@pytest.mark.parametrize(
    "damage", ["RPUSH log:a-0 a1", "SET hits:a 2", "SET moves:p1 2", "SET job:{1}:runs 2"]
)
def test_a_doubled_write_is_found(judge: Judge, damage: str) -> None:
    assert judge(damage).doubled == 1


@pytest.mark.parametrize(
    "damage",
    [
        "SREM team:u1:members p1",
        "SADD team:t1:members p1",
        "DEL desk:d1:person",
        "SET desk:d2:person p1",
        "SREM tag:x1:people p1",
        "SADD tag:x2:people p1",
        "SREM profiles p1",
        "SADD profiles p2",
        "DEL moves:p1",
        "HSET keywright:journal:1 intent {}",
    ],
)
def test_a_broken_relation_index_or_journal_is_found(judge: Judge, damage: str) -> None:
    found = judge(damage)
    assert (found.lost, found.doubled, found.violations) == (0, 0, 1), found.details


def test_a_write_that_was_refused_and_is_there_is_found(judge: Judge) -> None:
    assert judge("RPUSH log:a-0 a3").violations == 1


def test_a_call_that_was_made_again_after_a_refusal_counts_once(server: RedisServer, tmp_path: Path) -> None:
    log = tmp_path / "acknowledged"
    log.write_text("no\tpush\ta-0/a1\tConnectionLostError\nok\tpush\ta-0/a1\t\n")
    server.call("FLUSHALL")
    server.call("RPUSH", "log:a-0", "a1")
    found = keyspace.judge_keyspace([log], everything([server.port]))
    assert (found.acknowledged, found.passed) == (1, True)
    server.call("RPUSH", "log:a-0", "a1")
    assert keyspace.judge_keyspace([log], everything([server.port])).doubled == 1


def test_a_loss_without_wait_is_counted_and_allowed(server: RedisServer, tmp_path: Path) -> None:
    log = tmp_path / "acknowledged"
    log.write_text("ok\tpush\tb-0/b1\t\n")
    server.call("FLUSHALL")
    found = keyspace.judge_keyspace([], everything([server.port]), unsafe=[log])
    assert (found.lost, found.allowed_lost, found.passed) == (0, 1, True)


def test_a_lost_and_an_invented_message_are_found(tmp_path: Path) -> None:
    published, worked = tmp_path / "published", tmp_path / "worked"
    published.write_text("".join(f"try\tpublish\t{n}\t\nok\tpublish\t{n}\t\n" for n in range(1, 5)))
    worked.write_text("ok\thandle\t1\t\nok\thandle\t1\t\nok\thandle\t9\t\n")
    found = messages.judge_messages(published, worked, queued={"2"})
    assert (found.acknowledged, found.lost, found.repeated, found.violations) == (4, 2, 1, 1)


def test_an_extract_that_was_published_twice_is_found(tmp_path: Path) -> None:
    world = tmp_path / "world.json"
    post = {"author": "t2_1", "subreddit": "log", "deleted": False, "removed": False, "body": "`openmod-1`"}
    thing = post | {"subreddit": "here", "body": ""}
    log = [{"action": "removelink", "actor": "t2_2", "target": "t3_1"}]
    world.write_text(
        json.dumps({"log": log, "target": "log", "submissions": {"t3_1": thing, "t3_8": post, "t3_9": post}})
    )
    record = {b"type": b"removelink", b"actor": b"t2_2", b"target": b"t2_1", b"link": b"t3_1"}
    keys = {
        "soak-openmod:audit:t3_8": record,
        "soak-openmod:audit:t3_9": record,
        "soak-openmod:mod-actions:t3_1": [(b"t3_8", 1.0), (b"t3_9", 1.0)],
        "soak-openmod:user:t2_1": [(b"t3_1", 1.0)],
        "soak-openmod:cache:t3_1": {b"type": b"post"},
    }
    assert openmod.judge_openmod(world, keys).doubled == 2


def test_half_a_line_of_a_killed_load_is_left_out(tmp_path: Path) -> None:
    log = tmp_path / "log"
    log.write_text("ok\tpush\t1\t\nok\tpush\t2")
    assert [attempt.item for attempt in attempts([log])] == ["1"]


@pytest.mark.parametrize("module", sorted(JUDGE.rglob("*.py")), ids=lambda path: path.name)
def test_the_judge_shares_no_code_with_the_library(module: Path) -> None:
    imported = set()
    for node in ast.walk(ast.parse(module.read_text("utf-8"))):
        if isinstance(node, ast.Import):
            imported |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert not node.level, "relative imports would hide where a name comes from"
            imported.add(node.module or "")
    ours = {name for name in imported if name.startswith(("keywright", "soak"))}
    assert all(name.startswith("soak.judge") for name in ours), ours
