"""Modules that inference writes hold no ids, names of people or values, unless they are asked for."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from inferred_modules import declared_space, inferred_names, inferred_server, unproved
from invoking import invoke_keywright
from keywright import aconnect, connect
from keywright.keyspace.call import Plain
from keywright.operations import Effect, Operation
from keywright.tools.infer import infer, survey

PEOPLE = ("alice", "bob", "margaret", "zoltan", "wei", "o'brien", "josé", "priya")
SECRETS = (
    "ann@example.org",
    "sk_live_4eC39HqLyjWDarjtT1zdp7dc",
    "eyJhbGciOiJIUzI1NiJ9",
    "hunter2",
    "correct horse",
    "4111111111111111",
    "+49-30-1234567",
    "f81d4fae-7dec-41d0-a765-00a0c91e6bf6",
    "kx7Qz",
    "wintermute",
)
ALL = (*PEOPLE, *SECRETS)


def commands() -> Iterator[tuple[bytes, ...]]:
    """Yield writes that put every secret in every place where a module could show it."""
    for number, secret in enumerate(ALL):
        text = secret.encode()
        yield from (
            (b"SET", b"user:" + text, text),
            (b"SET", text, b"1"),
            (b"HSET", b"settings:" + text, b"name", text, b"mail", text),
            (b"HSET", b"friends:%d" % number, text, b"1", ALL[number - 1].encode(), b"1"),
            (b"HSET", b"balance", text, b"%d" % number),
            (b"SADD", b"online", text),
            (
                b"SET",
                b"session:%d" % number,
                json.dumps({"user": secret, secret: secret, "by": {secret: 1}}).encode(),
            ),
            (b"SET", b"only:" + text + b":last", text),
            (b"XADD", b"events", b"*", text, text),
            (b"XGROUP", b"CREATE", b"events", text, b"0"),
            (b"LPUSH", b"inbox:" + text + b":new", text),
            (b"LPUSH", b"inbox:" + text + b":read", text),
            (b"ZADD", b"cart:{" + text + b"}:items", b"1", text),
            (b"SET", b"task-" + text, b"1"),
            (b"SET", text + b"/" + text, b"1"),
        )
        for end in (b"/5/hour", b"/7/day", b"/9/hour", b"/99/week"):
            yield b"RPUSH", b"quota:api/" + text + end, text
            yield b"RPUSH", b"quota:" + text + end, text
            yield b"RPUSH", b"quota:" + text + b"/user-7" + end, text
            yield b"RPUSH", b"quota:api" + end, text
        for end in (b"", b":log", b":" + text):
            yield b"SET", b"f81d4fae-0000-41d0-a765-00a0c91e6b%02x" % number + end, text
            yield b"SET", b"old:f81d4fae-0000-41d0-a765-00a0c91e6b%02x" % number + end, text
            yield b"SET", b"job:%s:%d" % (text, number) + end, text
            yield b"SET", b"job:%s:old:%d" % (text, number) + end, text
            yield b"SET", b"job:%s:new:%d" % (text, number) + end, text
    yield b"HSET", b"config", b"wintermute_url", b"hunter2"


@pytest.fixture
def secrets_url(redis_url: str) -> str:
    with connect(redis_url) as db:
        for words in commands():
            name = words[2] if words[0] == b"XGROUP" else words[1]
            db.run(Plain(Operation("plant", words[0], Effect.ONCE), words[1:], name).attempt())
    return redis_url


def leaks(text: str) -> list[str]:
    written = text.casefold()
    return [each for each in ALL if each.casefold() in written or ascii(each)[1:-1].casefold() in written]


def test_no_secret_is_in_the_module(secrets_url: str) -> None:
    found = inferred_server(secrets_url)
    assert leaks(found.text) == []
    assert leaks("\n".join(found.coverage)) == []
    assert unproved(declared_space(found)) == []


def test_no_secret_is_printed(secrets_url: str) -> None:
    result = invoke_keywright("infer", "--url", secrets_url, "--no-catalogue")
    assert result.exit_code == 0, result.output
    assert "class " in result.stdout
    assert leaks(result.stdout + result.stderr) == []


def test_no_secret_is_added_to_a_module(secrets_url: str, tmp_path: Path) -> None:
    schema = tmp_path / "schema_of_secrets.py"
    schema.write_text('from keywright import Keyspace\n\nshop = Keyspace("shop", "A shop.")\n')
    result = invoke_keywright("infer", "--url", secrets_url, "--no-catalogue", "--update", str(schema))
    assert result.exit_code == 0, result.output
    assert leaks(schema.read_text() + result.stdout + result.stderr) == []
    assert "class User" in schema.read_text()


def test_show_ids_shows_them(secrets_url: str) -> None:
    async def run() -> str:
        async with aconnect(secrets_url) as db:
            found = await survey(db)
            return infer(found.sample, found.facts, show_ids=True).text

    assert "wintermute" in asyncio.run(run())


def templates(*names: str) -> set[str]:
    space = declared_space(inferred_names(name.encode() for name in names))
    assert unproved(space) == []
    return {kind.declaration.template.source for kind in space}


def test_words_of_programs_that_occur_once_are_shown() -> None:
    jobs = [f"rq:job:{n}" for n in range(3)]
    assert templates(*jobs, "rq:workers", "rq:clean_registries") == {
        "rq:job:<job>",
        "rq:workers",
        "rq:clean_registries",
    }


def test_a_part_of_a_word_that_many_names_begin_with_is_shown_elsewhere() -> None:
    links = [f"meetup_link:{n}" for n in range(3)]
    assert templates(*links, "meetup_access_token") == {"meetup_link:<meetup_link>", "meetup_access_token"}


def test_a_name_in_the_place_of_an_id_is_an_id() -> None:
    assert templates("user:alice") == {"user:<user>"}
    assert templates("user:alice:posts", "user:alice:inbox") == {"user:<user>:posts", "user:<user>:inbox"}
    assert templates("alice:posts", "alice:inbox", "bob:posts", "bob:inbox") == {"<id>:posts", "<id>:inbox"}


def test_a_single_name_without_structure_is_counted_only() -> None:
    found = inferred_names([b"alice", *(b"user:%d" % n for n in range(3))])
    assert "alice" not in found.text
    assert (found.names, found.matched) == (4, 3)
    assert "1 key, 25.0% of all" in found.text


def test_a_number_of_an_id_is_not_part_of_a_template() -> None:
    assert templates(*(f"user:4711:{word}" for word in ("posts", "inbox", "likes"))) == {
        "user:<user>:posts",
        "user:<user>:inbox",
        "user:<user>:likes",
    }
