"""`simulate` in a separate process, as a user runs it."""

from __future__ import annotations

import json
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from websockets.asyncio.client import connect

pytestmark = pytest.mark.anyio

_COMMAND = (sys.executable, "-m", "keywright", "gateway", "simulate")


@contextmanager
def _simulating(*options: str) -> Iterator[tuple[subprocess.Popen[str], dict[str, str]]]:
    """Run the command. Yield its process and the addresses that it printed."""
    arguments = [*_COMMAND, *options]
    with subprocess.Popen(arguments, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            lines = [process.stdout.readline().split(maxsplit=1) for _ in range(4)]
            yield process, {name: value.strip() for name, value in lines}
        finally:
            process.kill()


async def _events(address: str, token: str, count: int) -> list[str]:
    async with connect(f"{address}/?v=10&encoding=json", compression=None, max_size=None) as gateway:
        await gateway.recv()
        login = {"token": token, "intents": (1 << 26) - 1 & ~(0b111 << 17 | 0b11 << 22), "properties": {}}
        await gateway.send(json.dumps({"op": 2, "d": login}))
        return [json.loads(await gateway.recv())["t"] for _ in range(count)]


@pytest.mark.parametrize("ending", [signal.SIGINT, signal.SIGTERM])
async def test_it_prints_its_addresses_serves_and_stops(ending: signal.Signals) -> None:
    with _simulating("--guilds", "3", "--members", "4", "--rate", "200", "--token", "mine") as (
        process,
        printed,
    ):
        assert printed["token"] == "mine"
        assert printed["world"] == "3 guilds of 4 members, seed 0"
        assert printed["gateway"].startswith("ws://127.0.0.1:")
        seen = await _events(printed["gateway"], "mine", 20)
        assert seen[0] == "READY"
        assert seen.count("GUILD_CREATE") >= 3
        assert set(seen) - {"READY", "GUILD_CREATE"}, "traffic came too"
        process.send_signal(ending)
        assert process.wait(timeout=20) == 0


def test_a_port_that_is_taken_is_reported() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        arguments = [*_COMMAND, "--port", port, "--guilds", "0"]
        done = subprocess.run(arguments, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode != 0
    assert f"cannot listen on 127.0.0.1:{port}" in done.stderr
