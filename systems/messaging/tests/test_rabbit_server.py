"""The private RabbitMQ server: real, isolated, without leftovers."""

from __future__ import annotations

import asyncio
import os
import subprocess
from pathlib import Path

import aio_pika
import pytest

from keywright.errors import UsageError
from keywright.testing import started_pids, wait_until
from keywright_messaging.testing.rabbitmq import RabbitServer

pytestmark = pytest.mark.anyio


def processes_naming(text: str) -> list[int]:
    """Return the processes with a text, such as a run folder, in their command line or environment."""
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit() and int(entry.name) != os.getpid():
            try:
                described = (entry / "cmdline").read_bytes() + (entry / "environ").read_bytes()
            except OSError:
                continue
            if text.encode() in described:
                found.append(int(entry.name))
    return found


async def fill(url: str) -> None:
    async with await aio_pika.connect(url) as connection:
        channel = await connection.channel()
        await channel.declare_queue("kept", durable=True)
        message = aio_pika.Message(b"safe", delivery_mode=aio_pika.DeliveryMode.PERSISTENT)
        await channel.default_exchange.publish(message, "kept")


async def first_body(url: str) -> bytes:
    async with await aio_pika.connect(url) as connection:
        channel = await connection.channel()
        queue = await channel.declare_queue("kept", durable=True)
        message = await queue.get(no_ack=True)
        return message.body


def test_a_server_that_was_not_started_says_so() -> None:
    with pytest.raises(UsageError, match="was not started"):
        _ = RabbitServer().url


async def test_no_process_and_no_file_is_left_after_close(keywright_rabbitmq: RabbitServer) -> None:
    with RabbitServer() as server:
        folder = server.evaluate('os:getenv("HOME")').strip('"')
        first = server.pid
        assert first in started_pids()
        assert {first} < set(processes_naming(folder)), (
            "Erlang's own child carries the folder in its environment"
        )
        await fill(server.url)
        server.kill()
        assert processes_naming(folder) == []
        server.start()
        assert await first_body(server.url) == b"safe"
    assert processes_naming(folder) == []
    assert not await asyncio.to_thread(Path(folder).exists)
    assert server.pid is None


def test_no_epmd_is_started_and_every_port_is_on_loopback(keywright_rabbitmq: RabbitServer) -> None:
    keywright_rabbitmq.start()
    listening = subprocess.run(["ss", "-ltnpH"], capture_output=True, text=True, check=False)
    if listening.returncode:
        pytest.skip("ss, which lists listening sockets, is not here")
    own = [
        line.split()[3] for line in listening.stdout.splitlines() if f"pid={keywright_rabbitmq.pid}," in line
    ]
    assert f"127.0.0.1:{keywright_rabbitmq.port}" in own
    assert all(address.startswith("127.0.0.1:") for address in own)
    children = (
        Path(f"/proc/{keywright_rabbitmq.pid}/task/{keywright_rabbitmq.pid}/children").read_text().split()
    )
    names = {(Path("/proc") / child / "comm").read_text().strip() for child in children}
    assert names <= {"erl_child_setup"}


async def test_each_url_of_the_fixture_is_an_empty_virtual_host(
    keywright_rabbitmq: RabbitServer, amqp_url: str
) -> None:
    await fill(amqp_url)
    other = keywright_rabbitmq.make_vhost()
    try:
        with pytest.raises(aio_pika.exceptions.QueueEmpty):
            await first_body(keywright_rabbitmq.url_of(other))
    finally:
        keywright_rabbitmq.remove_vhost(other)
    assert await first_body(amqp_url) == b"safe"


async def test_a_frozen_server_goes_on_where_it_stopped(
    keywright_rabbitmq: RabbitServer, amqp_url: str
) -> None:
    await fill(amqp_url)
    keywright_rabbitmq.pause()
    state = Path(f"/proc/{keywright_rabbitmq.pid}/stat")
    wait_until(lambda: state.read_text().rpartition(")")[2].split()[0] == "T", "the process stands still")
    keywright_rabbitmq.resume()
    assert await first_body(amqp_url) == b"safe"
