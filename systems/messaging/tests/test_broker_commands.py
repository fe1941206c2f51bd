"""`keywright broker`: JSON lines to and from real brokers, dead letters, exit codes."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import msgspec
import pytest
from typer.testing import CliRunner

from invoking import invoke_keywright
from keywright.cli import app
from keywright.testing import Raw

from .broker_bench import EVENT, Bench, dead_letters_of, has_nothing, next_one, receive

pytestmark = pytest.mark.anyio


PROGRAM = str(Path(sys.executable).parent / "keywright")
SECONDS = 60


@pytest.fixture(params=["redis", "rabbitmq"])
def bench(request: pytest.FixtureRequest) -> Bench:
    fixture = {"redis": "redis_url", "rabbitmq": "amqp_url"}[request.param]
    return Bench(request.param, request.getfixturevalue(fixture))


class Shell:
    """Runs the installed program with the broker and the group of a bench in its environment."""

    def __init__(self, bench: Bench) -> None:
        self._variables = {**os.environ, "BROKER_URL": bench.url, "BROKER_GROUP": bench.group}

    def run(self, *arguments: str, stdin: bytes = b"") -> subprocess.CompletedProcess[bytes]:
        return subprocess.run(
            [PROGRAM, "broker", *arguments],
            input=stdin,
            env=self._variables,
            capture_output=True,
            timeout=SECONDS,
            check=False,
        )

    def start(self, *arguments: str) -> subprocess.Popen[bytes]:
        return subprocess.Popen(
            [PROGRAM, "broker", *arguments],
            env=self._variables,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )


@pytest.fixture
def shell(bench: Bench) -> Shell:
    return Shell(bench)


async def received(bench: Bench, count: int) -> list[Any]:
    """Consume and return the data of this number of messages."""
    async with bench.declared() as broker, broker.consume(EVENT, prefetch=count) as consumer:
        return await receive(consumer, count)


async def publish(bench: Bench, *items: object) -> None:
    async with bench.declared() as broker:
        await broker.publish_many(EVENT, items)


async def nothing_left(bench: Bench) -> bool:
    async with bench.declared() as broker:
        return await has_nothing(broker, EVENT)


def lines_of(output: bytes) -> list[Any]:
    assert output.endswith(b"\n") or not output
    return [json.loads(line) for line in output.splitlines()]


async def test_lines_are_published_in_order_and_blank_ones_skipped(bench: Bench, shell: Shell) -> None:
    done = shell.run("publish", EVENT, stdin=b'{"n": 1}\n\n  \n[2, "\xc5\xbc"]\r\n"three"\nnull')
    assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"4 messages were published.\n")
    assert await received(bench, 4) == [{"n": 1}, [2, "ż"], "three", None]


@pytest.mark.parametrize("encoding", ["json", "etf", "msgpack", "spectacles"])
def test_the_encoding_can_be_chosen(bench: Bench, shell: Shell, encoding: str) -> None:
    assert shell.run("publish", EVENT, "--encoding", encoding, stdin=b'{"a": [1]}').returncode == 0
    done = shell.run("consume", EVENT, "--count", "1")
    assert lines_of(done.stdout) == [{"event": EVENT, "data": {"a": [1]}}]


def test_empty_input_publishes_0_messages(shell: Shell) -> None:
    done = shell.run("publish", EVENT)
    assert (done.returncode, done.stderr) == (0, b"0 messages were published.\n")


async def test_a_malformed_line_is_named_and_those_before_it_are_published(
    bench: Bench, shell: Shell
) -> None:
    done = shell.run("publish", EVENT, stdin=b'1\n\n2\n{"a": \n4\n')
    assert (done.returncode, done.stdout) == (1, b"")
    reported = done.stderr.decode()
    assert reported.startswith("2 messages were published.\nerror: line 4 is not JSON (")
    assert reported.endswith('): {"a":. Correct it, then publish it and the lines after it.\n')
    assert await received(bench, 2) == [1, 2]
    assert await nothing_left(bench)


def test_a_line_that_is_not_utf8_is_malformed(shell: Shell) -> None:
    done = shell.run("publish", EVENT, stdin=b'1\n"\xff"\n')
    assert done.returncode == 1
    assert done.stderr.startswith(b"1 message was published.\nerror: line 2 is not JSON (")


async def test_a_line_is_published_while_the_input_stays_open(bench: Bench, shell: Shell) -> None:
    with shell.start("publish", EVENT) as program:
        assert program.stdin is not None
        program.stdin.write(b'"now"\n')
        program.stdin.flush()
        assert await received(bench, 1) == ["now"]
        program.stdin.close()
        assert program.wait(SECONDS) == 0


async def test_many_lines_are_published_and_consumed(bench: Bench, shell: Shell) -> None:
    lines = b"".join(b'{"number": %d, "text": "%s"}\n' % (number, b"x" * 200) for number in range(20_000))
    assert shell.run("publish", EVENT, stdin=lines).stderr == b"20,000 messages were published.\n"
    done = shell.run("consume", EVENT, "--count", "20000", "--prefetch", "1000")
    assert done.returncode == 0, done.stderr
    assert [line["data"]["number"] for line in lines_of(done.stdout)] == list(range(20_000))
    assert await nothing_left(bench)


async def test_only_so_many_as_asked_are_consumed(bench: Bench, shell: Shell) -> None:
    await publish(bench, *range(10))
    done = shell.run("consume", EVENT, "--count", "3")
    assert (done.returncode, done.stderr) == (0, b"")
    assert lines_of(done.stdout) == [{"event": EVENT, "data": number} for number in range(3)]
    assert sorted(await received(bench, 7)) == list(range(3, 10))


async def test_a_subgroup_and_several_events_are_consumed(bench: Bench, shell: Shell) -> None:
    async with bench.declared() as broker:
        await broker.declare(EVENT, "OTHER", subgroup="shell")
        await broker.publish(EVENT, 1)
        await broker.publish("OTHER", 2)
    done = shell.run("consume", EVENT, "OTHER", "--subgroup", "shell", "--count", "2")
    assert sorted((line["event"], line["data"]) for line in lines_of(done.stdout)) == [
        (EVENT, 1),
        ("OTHER", 2),
    ]


async def test_lines_are_flushed_as_they_come_and_an_interrupt_is_clean(bench: Bench, shell: Shell) -> None:
    with shell.start("consume", EVENT) as program:
        await publish(bench, "one")
        assert program.stdout is not None
        assert json.loads(program.stdout.readline()) == {"event": EVENT, "data": "one"}
        program.send_signal(signal.SIGINT)
        rest, reported = program.communicate(timeout=SECONDS)
        assert (program.returncode, rest, reported) == (0, b"", b"")
    assert await nothing_left(bench)


async def test_messages_that_a_closed_output_did_not_take_stay_in_the_queue(
    bench: Bench, shell: Shell
) -> None:
    await publish(bench, *("x" * 1_000 for _ in range(2_000)))
    with shell.start("consume", EVENT, "--prefetch", "10") as program:
        assert program.stdout is not None
        program.stdout.readline()
        program.stdout.close()
        assert program.wait(SECONDS) == 1
        assert program.stderr is not None
        assert b"Traceback" not in program.stderr.read()
    # A pipe holds 64 KiB: what was printed into it counts as printed.
    assert len(await received(bench, 1_800)) == 1_800


async def test_an_undecodable_message_is_reported_and_becomes_a_dead_letter(
    bench: Bench, shell: Shell
) -> None:
    await publish(bench, 1, msgspec.Raw(b"{nonsense"), 3)
    done = shell.run("consume", EVENT, "--count", "2")
    assert done.returncode == 0
    assert [line["data"] for line in lines_of(done.stdout)] == [1, 3]
    assert f"{EVENT} ".encode() in done.stderr
    assert b"becomes a dead letter: a message body must be" in done.stderr
    async with bench.declared() as broker:
        await dead_letters_of(broker, EVENT, 1)
    (letter,) = lines_of(shell.run("dead", "list", EVENT).stdout)
    assert (letter["event"], letter["attempts"], letter["body"]) == (EVENT, 1, "e25vbnNlbnNl")
    assert letter["reason"].startswith("a message body must be")


async def test_dead_letters_are_listed_and_stay(bench: Bench, shell: Shell) -> None:
    async with bench.declared() as broker:
        await broker.publish_many(EVENT, [{"n": number} for number in range(3)])
        async with broker.consume(EVENT) as consumer:
            for _ in range(3):
                await (await next_one(consumer)).reject("no channel")
        await dead_letters_of(broker, EVENT, 3)
    for _ in range(2):
        done = shell.run("dead", "list", EVENT, "--limit", "2")
        assert done.returncode == 0
        assert [(line["data"], line["reason"]) for line in lines_of(done.stdout)] == [
            ({"n": 0}, "no channel"),
            ({"n": 1}, "no channel"),
        ]
    assert shell.run("dead", "list", "NEVER").stdout == b""


async def buried(bench: Bench, *items: object) -> None:
    """Publish messages and reject them for good."""
    async with bench.declared() as broker:
        await broker.publish_many(EVENT, items)
        async with broker.consume(EVENT) as consumer:
            for _ in items:
                await (await next_one(consumer)).reject("no channel")
        await dead_letters_of(broker, EVENT, len(items))


async def test_dead_letters_are_replayed_by_a_command(bench: Bench, shell: Shell) -> None:
    await buried(bench, 1, 2, 3)
    done = shell.run("dead", "replay", EVENT, "--limit", "2")
    assert (done.returncode, done.stdout) == (0, b"")
    assert done.stderr == b"2 dead letters were returned to the queue.\n"
    assert await received(bench, 2) == [1, 2]
    assert shell.run("dead", "replay", EVENT).stderr == b"1 dead letter was returned to the queue.\n"
    assert await received(bench, 1) == [3]
    assert shell.run("dead", "list", EVENT).stdout == b""


async def test_dead_letters_are_dropped_after_a_yes(bench: Bench, shell: Shell) -> None:
    await buried(bench, 1, 2, 3)
    said = shell.run("dead", "drop", EVENT).stderr
    assert said == b"3 dead letters would be removed. Give --yes to remove them.\n"
    assert (
        shell.run("dead", "drop", EVENT, "--limit", "2", "--yes").stderr == b"2 dead letters were removed.\n"
    )
    assert [line["data"] for line in lines_of(shell.run("dead", "list", EVENT).stdout)] == [3]
    assert await nothing_left(bench)


async def test_a_call_prints_the_reply(bench: Bench, shell: Shell) -> None:
    async with bench.declared() as broker, broker.consume(EVENT) as consumer:
        running = asyncio.create_task(asyncio.to_thread(shell.run, "call", EVENT, stdin=b'{"guild": "1"}\n'))
        delivery = await next_one(consumer)
        await delivery.reply({"echo": delivery.data})
        await delivery.acknowledge()
        done = await running
    assert (done.returncode, done.stdout, done.stderr) == (0, b'{"echo":{"guild":"1"}}\n', b"")


async def test_a_call_without_a_reply_exits_with_3(bench: Bench, shell: Shell) -> None:
    await publish(bench)
    done = shell.run("call", EVENT, "--timeout", "0.2", stdin=b"1")
    assert (done.returncode, done.stdout) == (3, b"")
    assert b"no reply to 'MESSAGE_CREATE' within 0.2 s" in done.stderr


def test_a_call_with_something_else_than_json_exits_with_1(shell: Shell) -> None:
    done = shell.run("call", EVENT, stdin=b"{nonsense")
    assert (done.returncode, done.stdout) == (1, b"")
    assert done.stderr.startswith(b"error: the input is not JSON (")


COMMANDS = ["publish", "consume", "call", "dead list", "dead replay", "dead drop"]


@pytest.mark.parametrize("command", COMMANDS)
@pytest.mark.parametrize("url", ["redis://127.0.0.1:1", "amqp://127.0.0.1:1"])
def test_a_broker_that_is_away_exits_with_3(command: str, url: str) -> None:
    done = subprocess.run(
        [PROGRAM, "broker", *command.split(), EVENT, "--broker", url, "--connect-timeout", "0.5"],
        input=b"1\n",
        capture_output=True,
        timeout=SECONDS,
        check=False,
    )
    assert (done.returncode, done.stdout) == (3, b"")
    assert b"127.0.0.1:1 cannot be reached" in done.stderr


@pytest.mark.parametrize("command", COMMANDS)
@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((EVENT,), "--broker is missing."),
        (("--broker", "memory://"), "EVENT is missing."),
        ((EVENT, "--broker", "kafka://x"), "'kafka' is not the scheme of a broker"),
        (("a:b", "--broker", "memory://"), "'a:b' cannot name"),
        ((EVENT, "--broker", "memory://", "--group", ""), "'' cannot name"),
        ((EVENT, "--broker", "memory://", "--nonsense"), "--nonsense is not an option of keywright broker"),
    ],
)
def test_a_wrong_invocation_exits_with_2(
    monkeypatch: pytest.MonkeyPatch,
    command: str,
    arguments: tuple[str, ...],
    message: str,
) -> None:
    for name in ("BROKER_URL", "AMQP_URL", "REDIS_URL", "BROKER_GROUP"):
        monkeypatch.delenv(name, raising=False)
    done = CliRunner().invoke(
        app, ["broker", *command.split(), *arguments], input=b"1", prog_name="keywright"
    )
    assert done.exit_code == 2, done.output
    assert message in " ".join(done.stderr.split())


def test_the_broker_prefix_and_group_of_a_gateway_are_those_of_its_variables(
    redis_url: str, raw: Raw, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("BROKER_URL", "AMQP_URL"):
        monkeypatch.delenv(name, raising=False)
    for name, value in {"REDIS_URL": redis_url, "BROKER_PREFIX": "bot", "BROKER_GROUP": "own"}.items():
        monkeypatch.setenv(name, value)
    arguments = ["broker", "publish", EVENT]
    done = CliRunner().invoke(app, arguments, input=b"{}", prog_name="keywright")
    assert done.exit_code == 0, done.output
    assert raw("KEYS", "*") == [f"bot:{EVENT}".encode()]


def test_the_queue_of_an_amqp_gateway_is_preferred_to_its_redis(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("BROKER_URL", raising=False)
    monkeypatch.setenv("AMQP_URL", "kafka://x")
    monkeypatch.setenv("REDIS_URL", "redis://localhost")
    done = CliRunner().invoke(app, ["broker", "dead", "list", EVENT], prog_name="keywright")
    assert "'kafka' is not the scheme of a broker" in done.stderr


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_explains_itself(command: str) -> None:
    assert "  broker " in invoke_keywright("--help").stdout
    *above, name = command.split()
    assert f"  {name} " in invoke_keywright("broker", *above, "--help").stdout
    help_text = invoke_keywright("broker", *command.split(), "--help")
    assert help_text.exit_code == 0
    assert f"Usage: keywright broker {command}" in help_text.stdout
    assert "Exits with" in help_text.stdout
