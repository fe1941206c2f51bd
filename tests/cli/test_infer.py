"""`keywright infer`: a module on standard output or in a file, coverage on standard error."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from inferred_modules import refuse_code
from invoking import Invoke
from keywright import connect
from keywright.keyspace.call import Plain
from keywright.operations import Effect, Operation

NAMES = "user:1\nuser:2\nuser:1:posts\nsession:f81d4fae-7dec-41d0-a765-00a0c91e6bf6\n"


def test_the_module_of_names_is_proved(
    invoke: Invoke, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("names.txt").write_text(NAMES)
    done = invoke("infer", "--names", "names.txt", "-o", "inferred_shop.py", "--space", "shop")
    assert (done.exit_code, done.stdout) == (0, ""), done.output
    assert "4 of 4 keys, 100.00%, match 3 templates" in done.stderr
    checked = invoke("check", "inferred_shop:shop")
    assert checked.exit_code == 0, checked.output
    assert "shop is proved" in checked.stdout


def test_names_are_read_from_standard_input(invoke: Invoke) -> None:
    done = invoke("infer", "--names", "-", stdin=NAMES)
    assert done.exit_code == 0, done.output
    refuse_code(done.stdout)
    assert 'key="user:<user>:posts"' in done.stdout


@pytest.mark.parametrize("server", ["redis_url", "cluster_url"])
@pytest.mark.cluster
def test_a_server_is_read_and_not_written(
    invoke: Invoke, request: pytest.FixtureRequest, server: str
) -> None:
    url = request.getfixturevalue(server)
    set_ = Operation("plant", b"SET", Effect.REPEATABLE)
    with connect(url) as db:
        for n in range(30):
            name = b"visits:%d" % n
            db.run(Plain(set_, (name, b"%d" % n, b"EX", b"3600"), name))
    done = invoke("infer", "--url", url)
    assert done.exit_code == 0, done.output
    assert 'class Visits(Value[int], key="visits:<visit>", space=inferred' in done.stdout
    assert "expiry=expires_in(timedelta(seconds=3600))" in done.stdout
    assert "30 of 30 keys, 100.00%, match 1 template" in done.stderr


def test_an_empty_server_exits_with_2(invoke: Invoke, redis_url: str) -> None:
    done = invoke("infer", "--url", redis_url)
    assert (done.exit_code, done.stdout) == (2, "")
    assert "there are no names to infer from" in done.stderr


def test_names_and_a_server_are_refused_together(invoke: Invoke) -> None:
    done = invoke("infer", "--names", "-", "--url", "redis://localhost", stdin=NAMES)
    assert done.exit_code == 2
    assert "--names is instead of a server" in done.stderr


def test_a_file_that_cannot_be_written_is_refused_before_the_work(invoke: Invoke, tmp_path: Path) -> None:
    done = invoke("infer", "--names", "-", "-o", str(tmp_path / "no" / "x.py"), stdin=NAMES)
    assert done.exit_code == 2
    assert "does not exist" in done.stderr


def test_stats_without_a_model_counts_by_inferred_templates(invoke: Invoke, redis_url: str) -> None:
    with connect(redis_url) as db:
        for n in range(30):
            name = b"visits:%d" % n
            db.run(Plain(Operation("plant", b"SET", Effect.REPEATABLE), (name, b"1"), name))
    done = invoke("stats", "--url", redis_url, "--format", "json")
    assert done.exit_code == 0, done.output
    counted = json.loads(done.stdout)
    assert [(each["template"], each["keys"]) for each in counted["templates"]] == [("visits:<visit>", 30)]
    assert "no MODEL is given, so one is inferred from the server" in done.stderr


def test_stats_without_a_model_take_no_prefix(invoke: Invoke, redis_url: str) -> None:
    done = invoke("stats", "--url", redis_url, "--prefix", "eu")
    assert done.exit_code == 2
    assert "--prefix needs a MODEL" in done.stderr


def test_an_update_appends_what_is_new_and_changes_nothing_else(
    invoke: Invoke, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("names.txt").write_text(NAMES)
    assert invoke("infer", "--names", "names.txt", "-o", "updated_shop.py", "--space", "shop").exit_code == 0
    before = Path("updated_shop.py").read_bytes() + b"# mine \xc3\xa9\n"
    Path("updated_shop.py").write_bytes(before)
    names = f"{NAMES}order:2026-11-16\norder:2026-11-17\nuser:x9\nuser:y{'z' * 9}\n"
    done = invoke("infer", "--names", "-", "--update", "updated_shop.py", stdin=names)
    assert done.exit_code == 0, done.output
    assert "4 of 8 keys were declared" in done.stderr
    after = Path("updated_shop.py").read_bytes()
    assert after.startswith(before)
    refuse_code(after.decode())
    checked = invoke("check", "updated_shop:shop")
    assert checked.exit_code == 0, checked.output
    assert b'key="order:<order>"' in after[len(before) :]
    again = invoke("infer", "--names", "-", "--update", "updated_shop.py", stdin=names)
    assert "8 of 8 keys were declared; 0 new templates" in again.stderr
    assert Path("updated_shop.py").read_bytes() == after


@pytest.mark.parametrize(
    ("text", "error"),
    [
        ("x = 1\n", "has none"),
        ("1 / 0\n", "cannot be imported: ZeroDivisionError"),
        (None, "is not a Python"),
    ],
)
def test_an_update_of_a_module_without_a_keyspace_is_refused(
    invoke: Invoke, tmp_path: Path, text: str | None, error: str
) -> None:
    path = tmp_path / "wrong_shop.py"
    if text is not None:
        path.write_text(text)
    done = invoke("infer", "--names", "-", "--update", str(path), stdin=NAMES)
    assert done.exit_code == 2
    assert error in done.stderr
    assert not path.exists() or path.read_text() == text
