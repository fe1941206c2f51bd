"""`keywright discord`: packets in, entities out, and a purge that asks first."""

from __future__ import annotations

import json
import stat
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from invoking import Invoke
from keywright import connect
from keywright.cli import app
from keywright.testing import Raw, RedisServer
from keywright_discord import ingest
from keywright_discord.drc import bind, rest
from keywright_discord.drc.store import DrcCache
from keywright_discord.layouts import LAYOUTS
from keywright_discord.traffic import Traffic

from .discord_sample import ANN, ANSWER, BEN, CHANNEL, FIRST, GUILD, OPENING, answer, event, message, user

EVENTS = [*OPENING, event("MESSAGE_CREATE", message()), event("MESSAGE_CREATE", answer())]
PROGRAM = Path(sys.executable).parent / "keywright"


def packet(name: str, data: bytes) -> bytes:
    return b'{"op":0,"t":"%b","s":1,"d":%b}' % (name.encode(), data)


PACKETS = [packet(*each) for each in EVENTS]


@pytest.fixture
def recording(tmp_path: Path) -> Path:
    path = tmp_path / "packets.jsonl"
    path.write_bytes(b"\n".join(PACKETS) + b"\n")
    return path


def piped(data: bytes, *arguments: str) -> Result:
    return CliRunner().invoke(app, ["discord", "ingest", *arguments], input=data, prog_name="keywright")


def rejects(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().splitlines()]


def test_packets_of_a_file_are_applied_and_can_be_looked_at(
    invoke: Invoke, recording: Path, redis_url: str
) -> None:
    done = invoke("discord", "ingest", str(recording), "--prefix", "bot", "--url", redis_url)
    assert (done.exit_code, done.stderr) == (0, "")
    assert done.stdout.startswith("4 events in ")
    assert done.stdout.endswith("4 applied, 0 ignored, 0 rejected.\n")
    assert list(recording.parent.iterdir()) == [recording], "no rejects, no file of them"
    shown = invoke("discord", "get", "message", ANSWER, "--prefix", "bot", "--url", redis_url)
    assert shown.exit_code == 0
    assert json.loads(shown.stdout)["author"] == BEN
    whole = invoke("discord", "get", "message", ANSWER, "--hydrate", "--prefix", "bot", "--url", redis_url)
    assert json.loads(whole.stdout)["author"] == user(BEN)


def test_the_spectacles_layout_takes_a_channel_for_a_message(
    invoke: Invoke, recording: Path, redis_url: str, raw: Raw
) -> None:
    where = ("--layout", "spectacles", "--prefix", "s", "--url", redis_url)
    assert invoke("discord", "ingest", str(recording), *where).exit_code == 0
    assert raw("EXISTS", f"s:MESSAGES:{CHANNEL}:{FIRST}") == 1
    shown = invoke("discord", "get", "message", CHANNEL, FIRST, *where)
    assert json.loads(shown.stdout) == message()
    wrong = invoke("discord", "get", "message", FIRST, *where)
    assert wrong.exit_code == 2
    assert "message takes CHANNEL MESSAGE, but 1 ids were given" in wrong.stderr


def test_packets_come_from_a_pipe_too(
    redis_url: str, raw: Raw, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    done = piped(b"\n".join(PACKETS), "--prefix", "bot", "--url", redis_url)
    assert done.exit_code == 0
    assert raw("EXISTS", "bot:v1json:messages:301") == 1
    bad = piped(b"{}\n", "-", "--prefix", "bot", "--url", redis_url)
    assert bad.exit_code == 1
    assert [each["line"] for each in rejects(tmp_path / "discord.rejects.jsonl")] == [1]


BAD = {
    2: b"not json",
    3: b'{"op":0,"t":"MESSAGE_CREATE"}',
    4: b'{"op":0,"t":null,"d":{}}',
    5: b'{"op":0,"t":"MESSAGE_CREATE","d":{"id":"x","channel_id":"1"}}',
    6: b'{"op":0,"t":"MESSAGE_CREATE","d":[]}',
    7: b'{"op":0,"t":"CHANNEL_UPDATE","d":{"id":"1","guild_id":"2","name":"\xff"}}',
    8: b'{"op":0,"t":"CHANNEL_UPDATE","d":' + b"[" * 5000 + b"]" * 5000 + b"}",
    9: b'{"op":"0"}',
    10: b'{"op":0,"t":"INVITE_DELETE","d":{"guild_id":"1"}}',
    11: b"\x00\x01",
}


def test_bad_lines_are_reported_and_kept_and_the_rest_is_applied(
    invoke: Invoke, tmp_path: Path, redis_url: str, raw: Raw
) -> None:
    path = tmp_path / "packets.jsonl"
    ignored = [b'{"op":11}', b'{"op":0,"t":"TOMORROWS_EVENT","s":1,"d":{}}', b"", b"   "]
    path.write_bytes(b"\n".join([PACKETS[0], *BAD.values(), *PACKETS[1:], *ignored]))
    done = invoke("discord", "ingest", str(path), "--prefix", "bot", "--url", redis_url)
    assert done.exit_code == 1
    assert done.stdout.startswith(f"{len(PACKETS) + len(BAD) + 2} events in ")
    assert f"4 applied, 2 ignored, {len(BAD)} rejected." in done.stdout
    assert done.stderr.count("line ") == 5
    assert "line 2: not a packet: JSON is malformed" in done.stderr
    kept = tmp_path / "packets.jsonl.rejects.jsonl"
    assert f"Rejected lines are in {kept}." in done.stderr
    assert sorted(each["line"] for each in rejects(kept)) == sorted(BAD)
    by_line = {each["line"]: each for each in rejects(kept)}
    assert by_line[2]["text"] == "not json"
    assert by_line[3]["reason"] == "not a packet: a dispatch has `t` and `d`"
    assert by_line[5]["reason"].startswith("MESSAGE_CREATE: message.id must be a snowflake, not 'x'")
    assert by_line[7]["text"].endswith('"name":"\\xff"}}')
    assert stat.S_IMODE(kept.stat().st_mode) == 0o600
    assert raw("EXISTS", "bot:v1json:messages:301") == 1
    assert raw("EXISTS", "bot:v1json:channels:2") == 0


def test_an_event_that_does_not_fit_what_is_stored_is_refused_alone(
    invoke: Invoke, tmp_path: Path, redis_url: str, raw: Raw
) -> None:
    raw("SET", "bot:v1json:channels:7", "no hash")
    path = tmp_path / "packets.jsonl"
    update = packet(*event("CHANNEL_UPDATE", {"id": "31", "guild_id": "7", "name": "new"}))
    path.write_bytes(b"\n".join([*PACKETS, update, packet(*event("USER_UPDATE", user("99")))]))
    kept = tmp_path / "kept"
    done = invoke(
        "discord", "ingest", str(path), "--prefix", "bot", "--url", redis_url, "--rejects", str(kept)
    )
    assert done.exit_code == 1
    assert "5 applied, 0 ignored, 1 rejected." in done.stdout
    assert [each["line"] for each in rejects(kept)] == [5]
    assert raw("EXISTS", "bot:v1json:users:99") == 1
    assert raw("GET", "bot:v1json:channels:7") == b"no hash"


def test_a_line_without_end_is_refused_and_the_next_one_applied(
    invoke: Invoke, recording: Path, redis_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    longest = max(map(len, PACKETS))
    monkeypatch.setattr(ingest, "LONGEST_LINE", longest)
    recording.write_bytes(b"x" * (5 * longest) + b"\n" + recording.read_bytes() + b"y" * (longest + 1))
    done = invoke("discord", "ingest", str(recording), "--url", redis_url)
    assert done.exit_code == 1
    assert "4 applied, 0 ignored, 2 rejected." in done.stdout
    kept = rejects(Path(f"{recording}.rejects.jsonl"))
    assert {each["line"]: each["reason"] for each in kept} == {
        1: f"longer than {longest:,} bytes",
        6: f"longer than {longest:,} bytes",
    }
    assert all(len(each["text"]) <= ingest.EXCERPT for each in kept)


def test_a_recorded_session_is_the_same_in_windows_as_at_once(
    invoke: Invoke, tmp_path: Path, redis_url: str, raw: Raw
) -> None:
    path = tmp_path / "packets.jsonl"
    path.write_bytes(b"\n".join(Traffic(5).packets(900, guilds=2, members=20)))
    done = invoke("discord", "ingest", str(path), "--prefix", "a", "--url", redis_url)
    assert (done.exit_code, done.stderr) == (0, "")
    with connect(redis_url, *bind("b")) as db:
        cache = DrcCache()
        for name, data in Traffic(5).events(900, guilds=2, members=20):
            assert db.run(cache.apply([event(name, data)])) == []
    names = raw.names()
    assert {name[1:] for name in names if name[:1] == b"a"} == {
        name[1:] for name in names if name[:1] == b"b"
    }
    assert all(stored(raw, b"a" + name[1:]) == stored(raw, b"b" + name[1:]) for name in names)


def stored(raw: Raw, name: bytes) -> Any:
    match raw("TYPE", name):
        case b"string":
            return json.loads(raw("GET", name))
        case b"set":
            return set(raw("SMEMBERS", name))
        case _:
            return {field: json.loads(value) for field, value in raw("HGETALL", name).items()}


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("ingest", "nowhere.jsonl"), "nowhere.jsonl cannot be read: No such file"),
        (("ingest", "/"), "/ cannot be read: Is a directory"),
        (("get", "guildd", "1"), "there is no 'guildd' in this layout"),
        (("get", "member", "1"), "member takes GUILD USER, but 1 ids were given"),
        (("get", "message", "1", "2"), "message takes MESSAGE, but 2 ids were given"),
        (("get", "message", "one"), "message must be a Discord id"),
        (("get", "message", "1", "--prefix", ""), "a DRC prefix must not be empty"),
        (("get", "message"), "ID is missing."),
        (("purge", "--layout", "drc"), "--prefix is missing."),
        (("purge", "--prefix", "bot"), "--layout is missing."),
        (("get", "message", "1", "--layout", "x"), "--layout must be one of drc, spectacles, got 'x'."),
    ],
)
def test_a_wrong_invocation_exits_with_2(
    invoke: Invoke, redis_url: str, arguments: tuple[str, ...], message: str
) -> None:
    done = invoke("discord", *arguments, "--url", redis_url)
    assert done.exit_code == 2
    assert message in " ".join(done.stderr.split())


def test_the_rejects_never_overwrite_the_packets(invoke: Invoke, recording: Path, redis_url: str) -> None:
    before = recording.read_bytes()
    link = recording.parent / "link"
    link.symlink_to(recording)
    for path in (recording, link):
        done = invoke("discord", "ingest", str(recording), "--rejects", str(path), "--url", redis_url)
        assert done.exit_code == 2
        assert "the rejects would overwrite the packets" in done.stderr
    assert recording.read_bytes() == before


def test_rejects_that_cannot_be_written_exit_with_2(invoke: Invoke, tmp_path: Path, redis_url: str) -> None:
    path = tmp_path / "packets.jsonl"
    path.write_bytes(b"{}\n")
    done = invoke("discord", "ingest", str(path), "--rejects", str(tmp_path / "no" / "x"), "--url", redis_url)
    assert done.exit_code == 2
    assert "cannot be written: No such file or directory. Name another file" in done.stderr


@pytest.mark.parametrize(
    "arguments", [("get", "guild", "1"), ("purge", "--layout", "drc", "--prefix", "p"), ("ingest",)]
)
def test_a_server_that_is_away_exits_with_3(invoke: Invoke, arguments: tuple[str, ...]) -> None:
    done = invoke("discord", *arguments, "--url", "redis://127.0.0.1:1")
    assert done.exit_code == 3
    assert "127.0.0.1:1 cannot be reached" in done.stderr


def test_a_server_that_refuses_exits_with_3_and_the_line(
    invoke: Invoke, recording: Path, keywright_server: RedisServer, redis_url: str
) -> None:
    keywright_server.call(
        "ACL", "SETUSER", "reader", "reset", "on", ">letmein", "~*", "+@read", "+@connection", "+info"
    )
    where = f"redis://reader:letmein@127.0.0.1:{keywright_server.port}/0"
    done = invoke("discord", "ingest", str(recording), "--url", where)
    keywright_server.call("ACL", "DELUSER", "reader")
    assert done.exit_code == 3
    assert "line 1: " in done.stderr
    assert "NOPERM" in done.stderr


def test_redis_url_is_used_unless_url_is_given(
    invoke: Invoke, recording: Path, redis_url: str, raw: Raw, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("REDIS_URL", redis_url)
    assert invoke("discord", "ingest", str(recording)).exit_code == 0
    assert raw("EXISTS", "keywright:v1json:messages:301") == 1
    assert invoke("discord", "get", "guild", GUILD).exit_code == 0
    assert invoke("discord", "get", "guild", GUILD, "--url", "redis://127.0.0.1:1").exit_code == 3


def test_packets_that_went_into_a_folder_are_read_from_it_by_the_next_command(
    invoke: Invoke, recording: Path, tmp_path: Path
) -> None:
    folder = ("--embedded", str(tmp_path / "cache"))
    assert invoke("discord", "ingest", str(recording), *folder).exit_code == 0
    found = invoke("discord", "get", "guild", GUILD, *folder)
    assert json.loads(found.stdout)["id"] == GUILD


def test_what_is_not_there_exits_with_1(invoke: Invoke, redis_url: str) -> None:
    with connect(redis_url, *bind()) as db:
        db.run(DrcCache().apply([event("GUILD_CREATE", {"id": GUILD})]))
    done = invoke("discord", "get", "member", GUILD, ANN, "--url", redis_url)
    assert (done.exit_code, done.stdout) == (1, "")
    assert done.stderr == "error: member 100 11 is not in the cache.\n"


def test_a_prefix_without_a_cache_is_pointed_out(invoke: Invoke, redis_url: str) -> None:
    done = invoke("discord", "get", "guild", GUILD, "--prefix", "other", "--url", redis_url)
    assert (done.exit_code, done.stdout) == (1, "")
    assert "The cache has no guild at all. Is --prefix that of its gateway" in done.stderr


@pytest.mark.parametrize(
    ("model", "name", "printed"),
    [("drc", "keywright:v1json:guilds", [GUILD]), ("spectacles", "spectacles-private:guilds", [GUILD])],
)
def test_model_names_are_not_taken_by_get_and_check(
    invoke: Invoke, redis_url: str, model: str, name: str, printed: list[str]
) -> None:
    """They were not, though all other tools took them."""
    layout = LAYOUTS[model]
    with connect(redis_url, *layout.bind(None)) as db:
        db.run(layout.cache().apply([event("GUILD_CREATE", {"id": GUILD})]))
    assert invoke("check", model).exit_code == 0
    assert json.loads(invoke("get", model, name, "--url", redis_url).stdout) == printed


def test_tokens_are_not_printed(invoke: Invoke, redis_url: str) -> None:
    webhook = {"id": "400", "token": "in clear", "url": "https://discord/400/in clear", "user": user(ANN)}
    interaction = {"id": "600", "token": "in clear", "user": user(ANN)}
    with connect(redis_url, *bind()) as db:
        db.run(DrcCache().store(rest.store_webhook(webhook)))
        db.run(DrcCache().apply([event("INTERACTION_CREATE", interaction)]))
    for entity, identity in (("webhook", "400"), ("interaction", "600")):
        for more in ((), ("--hydrate",)):
            done = invoke("discord", "get", entity, identity, *more, "--url", redis_url)
            assert json.loads(done.stdout)["token"] == "(secret)"
            assert "in clear" not in done.output


@pytest.mark.parametrize("layout", ["drc", "spectacles"])
def test_a_purge_counts_first_and_acts_on_yes(
    invoke: Invoke, recording: Path, redis_url: str, raw: Raw, layout: str
) -> None:
    for prefix in ("bot", "bot:2"):
        invoke(
            "discord", "ingest", str(recording), "--layout", layout, "--prefix", prefix, "--url", redis_url
        )
    before = raw.names()
    others = {name for name in before if name.startswith(b"bot:2:")}
    own = len(before) - len(others)
    where = ("--layout", layout, "--prefix", "bot", "--url", redis_url)
    counted = invoke("discord", "purge", *where)
    assert (counted.exit_code, counted.stdout) == (
        0,
        f"{own} keys would be removed. Give --yes to remove them.\n",
    )
    assert raw.names() == before
    done = invoke("discord", "purge", *where, "--yes")
    assert (done.exit_code, done.stdout) == (0, f"{own} keys removed.\n")
    assert raw.names() == others


@pytest.mark.parametrize("layout", ["drc", "spectacles"])
def test_a_cluster_is_filled_read_and_purged(
    invoke: Invoke, recording: Path, cluster_url: str, raw_cluster: Raw, layout: str
) -> None:
    where = ("--layout", layout, "--prefix", "bot", "--url", cluster_url)
    assert invoke("discord", "ingest", str(recording), *where).exit_code == 0
    ids = [ANSWER] if layout == "drc" else [CHANNEL, ANSWER]
    shown = invoke("discord", "get", "message", *ids, "--hydrate", *where)
    assert json.loads(shown.stdout)["author"] == user(BEN)
    assert invoke("discord", "purge", *where, "--yes").exit_code == 0
    assert {name for name in raw_cluster.names() if name.startswith(b"bot:")} == set()


@pytest.mark.parametrize("command", ["ingest", "get", "purge"])
def test_every_command_explains_itself(invoke: Invoke, command: str) -> None:
    assert "  discord " in invoke("--help").stdout
    assert f"  {command} " in invoke("discord", "--help").stdout
    help_text = invoke("discord", command, "--help")
    assert help_text.exit_code == 0
    assert f"Usage: keywright discord {command}" in help_text.stdout
    assert "Exits with" in help_text.stdout


def test_the_installed_program_ingests_a_pipe_and_draws_no_bar_into_it(
    tmp_path: Path, redis_url: str
) -> None:
    done = subprocess.run(
        [PROGRAM, "discord", "ingest", "--url", redis_url],
        input=b"\n".join(PACKETS),
        cwd=tmp_path,
        capture_output=True,
        timeout=60,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, b"")
    assert done.stdout.endswith(b"4 applied, 0 ignored, 0 rejected.\n")
    assert list(tmp_path.iterdir()) == []
