"""`simulate` in a separate process, as a user runs it."""

from __future__ import annotations

import asyncio
import json
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager

import httpx
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


async def test_it_uses_the_commands_of_the_bot_and_prints_the_answers() -> None:
    with _simulating("--rate", "0", "--token", "mine", "--use-commands") as (process, printed):
        async with (
            httpx.AsyncClient(base_url=printed["api"], headers={"Authorization": "Bot mine"}) as api,
            connect(f"{printed['gateway']}/?v=10&encoding=json", compression=None, max_size=None) as gateway,
        ):
            login = {"token": "mine", "intents": 0, "properties": {}}
            await gateway.send(json.dumps({"op": 2, "d": login}))
            me = (await api.get("/applications/@me")).json()["id"]
            await api.put(f"/applications/{me}/commands", json=[{"name": "ping"}])
            async with asyncio.timeout(30):
                while (packet := json.loads(await gateway.recv()))["t"] != "INTERACTION_CREATE":
                    pass
            used = packet["d"]
            await api.post(f"/interactions/{used['id']}/{used['token']}/callback", json={"type": 1})
        assert process.stdout is not None
        process.stdout.readline()  # how to stop it
        said = await asyncio.to_thread(process.stdout.readline)
        assert said == f'/ping in guild {used["guild_id"]}: {{"type":1}}\n'


def test_a_port_that_is_taken_is_reported() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        arguments = [*_COMMAND, "--port", port, "--guilds", "0"]
        done = subprocess.run(arguments, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode != 0
    assert f"cannot listen on 127.0.0.1:{port}" in done.stderr
