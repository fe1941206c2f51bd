"""`keywright infer`: a module on standard output or in a file, coverage on standard error."""

from __future__ import annotations

import json
import random
from pathlib import Path

import pytest
import redis

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
            customer = b"c%05xff" % (n * 7919)
            db.run(Plain(set_, (b"customer:" + customer, b"x"), b"customer:" + customer))
            db.run(Plain(set_, (b"invoice:%d" % n, customer), b"invoice:%d" % n))
    done = invoke("infer", "--url", url)
    assert done.exit_code == 0, done.output
    assert 'class Visits(Value[int], key="visits:<visit>", space=inferred' in done.stdout
    assert "expiry=expires_in(timedelta(hours=1))" in done.stdout
    assert "90 of 90 keys, 100.00%, match 3 templates" in done.stderr
    assert (
        "# 100 % of 30 values lead to customer:<customer>, 0 % of random ones.\nrefers(Invoice,"
        in done.stdout
    )


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


def test_an_update_of_several_databases_adds_links_to_the_classes_of_the_module(
    invoke: Invoke, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, redis_url: str
) -> None:
    monkeypatch.chdir(tmp_path)
    noise = random.Random(18)
    users = [noise.randrange(10**9, 10**10) for _ in range(40)]
    with redis.Redis.from_url(redis_url) as client, redis.Redis.from_url(f"{redis_url}?db=2") as pages:
        for user in users:
            client.hset(f"user:{user}", mapping={"name": f"name {user}", "age": user % 80})
        client.mset({"xq vb": "a", "wei\x01zz": "b", "q&zz": "c"})
        pages.mset({f"page:{n}": "text" for n in range(9)})
        assert invoke("infer", "--url", redis_url, "-o", "numbered.py").exit_code == 0
        before = Path("numbered.py").read_text()
        assert 'key="<name>", space=inferred_0, fallback=True' in before
        for n, user in enumerate(users):
            client.set(f"user:{user}:team", n % 8)
            client.sadd(f"team:{n % 8}:members", user)
        pages.mset({f"author:{n}": f"{n}" for n in range(9)})
    done = invoke("infer", "--url", redis_url, "--update", "numbered.py")
    assert done.exit_code == 0, done.output
    assert "inferred_0: 40 of 91 keys were declared; 2 new templates" in done.stderr
    assert "inferred_0: 3 keys have no structure that repeats, or too long names: the fallback" in done.stderr
    assert "inferred_2: 9 of 18 keys were declared; 1 new templates" in done.stderr
    text = Path("numbered.py").read_text()
    refuse_code(text)
    added = text.removeprefix(before)
    assert len(added) < len(text)
    assert "many_to_one(UserTeam, inverse=TeamMembers)" in added
    assert "refers(UserTeam, User, lambda key, _: [key.user]" in added
    assert 'class Author(Value[int], key="author:<author>", space=inferred_2)' in added
    audited = invoke("audit", "numbered:inferred_0,numbered:inferred_2", "--url", redis_url)
    assert audited.exit_code == 0, audited.output
    again = invoke("infer", "--url", redis_url, "--update", "numbered.py")
    assert "inferred_0: 88 of 91 keys were declared; 0 new templates" in again.stderr
    assert Path("numbered.py").read_text() == text
    names = ("infer", "--names", "-", "--update", "numbered.py")
    unchosen = invoke(*names, stdin=NAMES)
    assert (unchosen.exit_code, "--space" in unchosen.stderr) == (2, True)
    chosen = invoke(*names, "--space", "inferred_2", stdin=NAMES)
    assert (chosen.exit_code, "3 new templates" in chosen.stderr) == (0, True), chosen.stderr
    checked = invoke("check", "numbered:inferred_0,numbered:inferred_2")
    assert checked.exit_code == 0, checked.output


def test_an_update_adds_a_relation_to_a_class_of_the_module_under_a_prefix(
    invoke: Invoke, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, redis_url: str
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("prefixed_shop.py").write_text(
        "from keywright import Id, Keyspace, Value\n\n"
        'shop = Keyspace("shop", "Teams.", prefix="shop")\n\n\n'
        'class TeamOf(Value[Id], key="member:<member>:team", space=shop):\n'
        '    """The team of a member."""\n\n    member: Id\n'
    )
    noise = random.Random(18)
    with redis.Redis.from_url(redis_url) as client:
        for n in range(40):
            member, team = f"m{noise.randrange(16**6):06x}x", f"t{n % 8}{(n % 8) * 7919:05x}q"
            client.set(f"shop:member:{member}:team", team)
            client.sadd(f"shop:team:{team}:people", member)
    done = invoke("infer", "--url", redis_url, "--update", "prefixed_shop.py")
    assert done.exit_code == 0, done.output
    assert "1 references and relations of the new templates" in done.stderr
    assert "many_to_one(TeamOf, inverse=TeamPeople)" in Path("prefixed_shop.py").read_text()
    audited = invoke("audit", "prefixed_shop:shop", "--url", redis_url)
    assert audited.exit_code == 0, audited.output


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


DOCUMENT = """# Keys

| Key | Type | TTL | Description |
|---|---|---|---|
| `user:{id}` | hash | | a user |
| `user:{id}:posts` | set of u64 | 10 minutes | the newest posts |
"""


def test_the_module_of_a_document_is_proved(
    invoke: Invoke, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("keys.md").write_text(DOCUMENT)
    done = invoke("infer", "--document", "keys.md", "-o", "documented_shop.py", "--space", "shop")
    assert (done.exit_code, done.stdout) == (0, ""), done.output
    assert "2 templates from the document" in done.stderr
    checked = invoke("check", "documented_shop:shop")
    assert checked.exit_code == 0, checked.output
    piped = invoke("infer", "--document", "-", "--space", "shop", stdin=DOCUMENT)
    assert piped.stdout == Path("documented_shop.py").read_text()
    refuse_code(piped.stdout)


@pytest.mark.parametrize(
    "other", [("--url", "redis://localhost"), ("--names", "-"), ("--update", "schema.py")]
)
def test_a_document_and_another_source_are_refused_together(invoke: Invoke, other: tuple[str, str]) -> None:
    done = invoke("infer", "--document", "-", *other, stdin=DOCUMENT)
    assert done.exit_code == 2
    assert "--document is instead of a server, --names and --update" in done.stderr
