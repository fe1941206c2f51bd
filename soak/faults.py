"""Faults that several scenarios share: of servers, of programs and of connections to Redis."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from keywright.testing import PrivateServer, Proxy, RedisServer
from soak.clock import ClockedRedis
from soak.programs import Program
from soak.relay import Relay
from soak.scenario import Fault, Scenario

__all__ = ["clock_faults", "memory_fault", "program_faults", "proxy_faults", "relay_faults", "server_faults"]

HOUR = 3600


def server_faults(
    scenario: Scenario, name: str, server: PrivateServer[Any], *, frozen: float = 5.0
) -> list[Fault]:
    """Return a kill, a restart and a freeze of a server."""

    def kill() -> None:
        server.kill()
        scenario.hold(0.2, 2.0)
        server.start()

    def freeze() -> None:
        server.pause()
        scenario.hold(1.0, frozen)
        server.resume()

    return [
        Fault(f"{name} killed", kill),
        Fault(f"{name} frozen", freeze),
        Fault(f"{name} restarted", server.restart),
    ]


def program_faults(scenario: Scenario, program: Program, *, frozen: float = 6.0) -> list[Fault]:
    """Return a kill, a restart and a freeze of a program."""

    def kill() -> None:
        program.kill()
        scenario.hold(0.2, 2.0)
        program.start()

    def restart() -> None:
        if (code := program.stop()) != 0:
            raise RuntimeError(f"{program.name} ended with exit code {code} after SIGTERM:\n{program.tail()}")
        program.start()

    def freeze() -> None:
        program.pause()
        scenario.hold(1.0, frozen)
        program.resume()

    return [
        Fault(f"{program.name} killed", kill, ends_program=True),
        Fault(f"{program.name} frozen", freeze),
        Fault(f"{program.name} restarted", restart, ends_program=True),
    ]


def proxy_faults(scenario: Scenario, proxy: Proxy) -> list[Fault]:
    """Return cuts and delays of the connections through a proxy."""

    def healed(break_it: Callable[[], None], least: float, most: float) -> Callable[[], None]:
        def inject() -> None:
            break_it()
            scenario.hold(least, most)
            proxy.heal()

        return inject

    def refuse() -> None:
        proxy.refuse()
        proxy.cut()

    def delay() -> None:
        proxy.delay(scenario.chance.uniform(0.2, 1.5))

    return [
        Fault("connections cut", proxy.cut),
        Fault(
            "cut between commands",
            healed(lambda: proxy.cut_after_commands(scenario.chance.randint(0, 5)), 0.5, 1),
        ),
        Fault(
            "cut inside a command",
            healed(lambda: proxy.cut_after_bytes(scenario.chance.randint(1, 200)), 0.5, 1),
        ),
        Fault("reply lost", healed(proxy.cut_before_reply, 0.5, 1)),
        Fault("reply truncated", healed(proxy.truncate_reply, 0.5, 1)),
        Fault("replies delayed", healed(delay, 1.0, 4.0)),
        Fault("connections refused", healed(refuse, 0.5, 4.0)),
    ]


def relay_faults(scenario: Scenario, relay: Relay) -> list[Fault]:
    """Return cuts, delays and a slow line for the connections through a relay."""

    def refuse() -> None:
        relay.refuse()
        relay.cut()
        scenario.hold(0.5, 4.0)
        relay.accept()

    def delay() -> None:
        relay.delay_seconds = scenario.chance.uniform(0.1, 0.5)
        scenario.hold(2.0, 5.0)
        relay.delay_seconds = 0.0

    def slow() -> None:
        relay.bytes_a_second = 2_000
        scenario.hold(2.0, 5.0)
        relay.bytes_a_second = None

    return [
        Fault("connections cut", relay.cut),
        Fault("connections refused", refuse),
        Fault("connections delayed", delay),
        Fault("connections slow", slow),
    ]


def memory_fault(scenario: Scenario, server: RedisServer) -> Fault:
    """Return a fault that leaves a server without memory: with noeviction it refuses writes."""

    def fill() -> None:
        server.call("CONFIG", "SET", "maxmemory", 1)
        scenario.hold(1.0, 3.0)
        server.call("CONFIG", "SET", "maxmemory", 0)

    return Fault("memory full (noeviction)", fill)


def clock_faults(scenario: Scenario, server: ClockedRedis) -> list[Fault]:
    """Return jumps of a server's clock, forward and backward."""

    def jump(seconds: int) -> Callable[[], None]:
        def inject() -> None:
            server.move_clock(seconds)
            scenario.hold(1.0, 4.0)
            server.move_clock(0)

        return inject

    return [
        Fault("clock an hour ahead", jump(HOUR)),
        Fault("clock an hour back", jump(-HOUR)),
    ]
