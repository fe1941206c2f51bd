"""The worker in TypeScript, behind the gateway and the simulator."""

from __future__ import annotations

import os
import signal
import sys
from contextlib import ExitStack
from pathlib import Path

import pytest

from keywright.testing import Raw, RedisServer
from keywright.tools.generators import Generation, load_generator
from keywright.tools.plugins import load_model
from keywright_discord.simulator import DiscordSimulator, SimulatorSettings
from typescript_project import NodeProject

from .gateways import environment, eventually
from .test_example_bot import EXAMPLES, OF_THE_FILE, process

WORKER = EXAMPLES / "typescript" / "src"
QUICK = SimulatorSettings(identify_window_seconds=0.01, guilds=2, members=8)
MODULES = {"drc.ts": "drc", "streams.ts": "spectacles-streams"}


@pytest.mark.parametrize("file", MODULES)
def test_the_modules_of_the_worker_are_up_to_date(file: str) -> None:
    written = load_generator("typescript").run(Generation(load_model(MODULES[file])))

    assert (WORKER / file).read_text() == written


@pytest.mark.anyio
async def test_the_worker_reads_the_cache_and_consumes_events(
    keywright_server: RedisServer, redis_url: str, raw: Raw, tmp_path: Path
) -> None:
    project = NodeProject(tmp_path / "worker")
    project.add_runtime()
    project.add(*WORKER.glob("*.ts"))
    project.compile()
    async with DiscordSimulator(QUICK) as discord:
        inherited = {name: value for name, value in os.environ.items() if not name.startswith("DISCORD_")}
        given = environment(discord, redis_url, BROKER_URL=redis_url, PROMETHEUS_ADDRESS="127.0.0.1:0")
        variables = inherited | {name: value for name, value in given.items() if name not in OF_THE_FILE}
        log = tmp_path / "gateway.log"
        gateway = (
            sys.executable,
            "-m",
            "keywright",
            "gateway",
            "run",
            "--config",
            str(EXAMPLES / "gateway.toml"),
        )
        with ExitStack() as running:
            running.enter_context(process(*gateway[1:], variables=variables, log=log))
            guild = discord.world.guilds[0]
            await eventually(lambda: "shard 0: ready" in log.read_text(), "the gateway is ready")
            await eventually(lambda: raw("EXISTS", f"example:v1json:guilds:{guild}") == 1, "it is cached")
            lines = tmp_path / "worker.log"
            child = running.enter_context(
                project.running("worker", lines, REDIS_URL=keywright_server.tcp_url, CACHE_PREFIX="example")
            )
            await eventually(lambda: "log: ready" in lines.read_text(), "the worker is ready")

            said = await discord.say("hello from the test 👍", guild=guild)

            name = discord.world.guild_create(guild)["name"]  # type: ignore[index]  # it is available
            author = said["author"]["username"]
            ending = f" {author}: hello from the test 👍\n"
            await eventually(lambda: ending in lines.read_text(), "it is logged")
            assert f"{name} #" in lines.read_text()
            raw("XADD", "MESSAGE_CREATE", "*", "data", "not JSON")
            dead = "{MESSAGE_CREATE}:gateway:log:dead"
            await eventually(lambda: raw("XLEN", dead) == 1, "what cannot be read is a dead letter")
            # It is acknowledged after that: a death in between repeats a dead letter, and loses none.
            await eventually(
                lambda: raw("XPENDING", "MESSAGE_CREATE", "gateway:log")["pending"] == 0, "it is acknowledged"
            )
            child.send_signal(signal.SIGTERM)
            assert child.wait(30) == 0, lines.read_text()
