"""The course that a real client runs on the simulator, with any library."""

from __future__ import annotations

from typing import Any

from keywright_discord.simulator import DiscordSimulator, Op, SimulatorSettings

Report = dict[str, Any]

EXPECTED = ["before", "missed 0", "missed 1", "missed 2", "after"]


def settings(shards: int, guilds: int) -> SimulatorSettings:
    return SimulatorSettings(guilds=guilds, members=8, shards=shards, max_concurrency=shards)


async def run_course(
    simulator: DiscordSimulator, seen: list[str | None], resumed: list[int], events: int
) -> Report:
    """Run messages, a cut, requests to reconnect, traffic; the client fills `seen` and `resumed`."""
    where = simulator.world.guilds[0]
    await simulator.say("before", guild=where)
    await simulator.until(lambda: "before" in seen, "the first message")
    async with simulator.outage():
        for number in range(3):
            await simulator.say(f"missed {number}", guild=where)
    await simulator.until(lambda: len(resumed) == len(simulator.sessions), "all shards resumed")
    await simulator.say("after", guild=where)
    await simulator.until(lambda: "after" in seen, "the last message")
    report = _report(simulator) | {"seen": list(seen)}
    await _obey(simulator, resumed)
    await simulator.play(simulator.world.events(events, mix={"GUILD_DELETE": 5.0}))
    await _caught_up(simulator)
    return report


def _report(simulator: DiscordSimulator) -> Report:
    return {
        "bot": simulator.world.bot["id"],
        "expected_guilds": sorted(simulator.world.guilds),
        "identifies": len(simulator.received(Op.IDENTIFY)),
        "resumes": len(simulator.received(Op.RESUME)),
        "replayed": sum(session.replayed for session in simulator.sessions),
        "paths": [connection.path for connection in simulator.connections],
        "compression": sorted({str(connection.compress) for connection in simulator.connections}),
    }


async def _obey(simulator: DiscordSimulator, resumed: list[int]) -> None:
    """Make the client resume with op 7 and identify again with op 9, and wait until it has."""
    resumes = len(resumed)
    await simulator.reconnect(0)
    await simulator.until(lambda: len(resumed) > resumes, "the client resumed after op 7")
    former = simulator.connection(0).session
    await simulator.invalidate(0, resumable=False)
    await simulator.until(
        lambda: any(each.shard.id == 0 and each is not former for each in simulator.sessions),
        "the client identified when its session was invalid",
    )
    await simulator.until(
        lambda: not any(session.unannounced for session in simulator.sessions), "every guild was sent again"
    )
    await _caught_up(simulator)


async def _caught_up(simulator: DiscordSimulator) -> None:
    """Wait until each client answers a heartbeat request with the sequence of its session's last event."""
    for session in simulator.sessions:
        beat = await _beat(simulator, session.shard.id)
        assert beat == session.sequence, f"{session.shard} is at {beat}, not at {session.sequence}"


async def _beat(simulator: DiscordSimulator, shard: int) -> Any:
    before = len(simulator.received(Op.HEARTBEAT, shard=shard))
    await simulator.request_heartbeat(shard)
    beats = await simulator.until(
        lambda: simulator.received(Op.HEARTBEAT, shard=shard)[before:], f"a heartbeat of shard {shard}"
    )
    return beats[0].data
