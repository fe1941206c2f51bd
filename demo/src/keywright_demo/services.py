"""The services of each model, with the simulators and feeders that give them something to do."""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Sequence
from importlib.util import find_spec
from typing import NamedTuple
from urllib.parse import urlsplit

from keywright.tools.http import LOOPBACK
from keywright_demo import names
from keywright_demo.processes import ProcessGroup, free_port
from keywright_discord.gateway.intents import Intents

__all__ = ["SERVICES", "DemoService", "explorer_service"]

CLI = "keywright"
HERE = "keywright_demo"
GUILDS, MEMBERS, EVENTS_A_SECOND = "30", "50", "20"
_EXPORTED = re.compile(r"^export (\w+)=(.*)$", re.MULTILINE)
_LISTENING = r"listening on (http://\S+)"


class DemoService(NamedTuple):
    """How to start the processes of a model, and the modules that it needs."""

    distribution: str
    modules: tuple[str, ...]
    start: Callable[[ProcessGroup], Awaitable[None]]

    @property
    def missing(self) -> list[str]:
        """The needed modules that are not installed."""
        return [module for module in self.modules if find_spec(module) is None]


async def _drc(group: ProcessGroup) -> None:
    """Start the Discord simulator, a worker, and the gateway, which fills the cache and the broker."""
    started = await group.start(
        "discord simulator",
        CLI,
        *("gateway", "simulate", "--guilds", GUILDS, "--members", MEMBERS, "--rate", EVENTS_A_SECOND),
        ready=r"^api +http://([^/\s]+)(?:.|\n)*^token +(\S+)",
    )
    # Before the gateway, so that published events do not wait.
    await group.start("worker", f"{HERE}.worker")
    monitor = f"{LOOPBACK}:{free_port()}"
    await group.start(
        "gateway",
        CLI,
        *("gateway", "run"),
        environment={
            "DISCORD_TOKEN": started[2],
            "DISCORD_API_PROTOCOL": "http",
            "DISCORD_API_HOST": started[1],
            "DISCORD_INTENTS": ",".join(Intents.__members__),
            "DISCORD_EVENTS": ",".join(names.EVENTS),
            "BROKER_GROUP": names.GROUP,
            "BROKER_PREFIX": names.STREAMS,
            "CACHE_PREFIX": names.DISCORD,
            "SHARD_STORE_PREFIX": names.GATEWAY,
            "PROMETHEUS_ADDRESS": monitor,
        },
        ready=r"shard 0: ready",
    )
    group.addresses["metrics"] = f"http://{monitor}/metrics"
    group.served += [
        (f"http://{started[1]}", "the simulated Discord: its REST API, for programs"),
        (group.addresses["metrics"], "what the gateway receives and publishes, for Prometheus"),
    ]


async def _spectacles(group: ProcessGroup) -> None:
    """Start the feeder of the other cache layout."""
    await group.start("spectacles feeder", f"{HERE}.spectacles_feeder")


async def _registry(group: ProcessGroup) -> None:
    """Start the registry service with its own database, and clients that pull and push."""
    database = f"sqlite:///{group.workspace.folder / 'registry.db'}"
    started = await group.start(
        "registry",
        CLI,
        *("registry", "serve", "--port", "0", "--database", database, "--flush-every", "5"),
        ready=_LISTENING,
    )
    await group.start("registry feeder", f"{HERE}.registry_feeder", started[1], database)
    group.served.append((f"{started[1]}/repositories", "the repositories of the container registry, as JSON"))


async def _openmod(group: ProcessGroup) -> None:
    """Start the Reddit simulator, and Open Mod, which watches it and serves its log."""
    pages = f"{LOOPBACK}:{free_port()}"
    started = await group.start(
        "reddit simulator",
        CLI,
        "openmod",
        "simulate",
        "--rate",
        "1",
        ready=r"(?:.|\n)*^export REDDIT_PASSWORD=.*$",
    )
    await group.start(
        "open mod",
        CLI,
        *("openmod", "serve"),
        environment={
            **dict(_EXPORTED.findall(started[0])),
            "OPENMOD_PREFIX": names.OPENMOD,
            "OPENMOD_POLL": "2s",
            "OPENMOD_ENFORCE": "10s",
            "OPENMOD_LOG_ADDRESS": pages,
        },
        ready=r"watching r/",
    )
    group.served += [
        (f"http://{pages}", "the public moderation log of Open Mod"),
        (dict(_EXPORTED.findall(started[0]))["REDDIT_URL"], "the simulated Reddit: its API, for programs"),
    ]


async def _meetup(group: ProcessGroup) -> None:
    """Start simulated users of Meetup and a Discord guild, and the bot between them."""
    pages = f"{LOOPBACK}:{free_port()}"
    started = await group.start(
        "meetup feeder", f"{HERE}.meetup_feeder", f"http://{pages}", ready=r"(?:.|\n)*^ready$"
    )
    schedule = group.workspace.folder / "meetup.toml"
    schedule.write_text("[schedule]\nsync_minutes = 0.1\nclean_minutes = 1\n", "utf-8")
    await group.start(
        "meetup bot",
        CLI,
        *("meetup", "serve", "--config", str(schedule)),
        environment={
            **dict(_EXPORTED.findall(started[0])),
            "PAGES_URL": f"http://{pages}",
            "PAGES_ADDRESS": pages,
            "REDIS_PREFIX": names.MEETUP,
            "MEETUP_OFFER_RSVP": "true",
        },
        ready=_LISTENING,
    )
    simulated = urlsplit(dict(_EXPORTED.findall(started[0]))["MEETUP_API_URL"]).netloc
    group.served += [
        (f"http://{pages}/health", "the Meetup bot: its health; people link their accounts at /link/…"),
        (f"http://{simulated}", "the simulated Meetup: its API, for programs"),
    ]


_WEB = ("starlette", "uvicorn")
SERVICES = {
    "drc": DemoService(
        "keywright-discord", ("httpx", "prometheus_client", "websockets", "zstandard", *_WEB), _drc
    ),
    "spectacles": DemoService("keywright-discord", (), _spectacles),
    "registry": DemoService("keywright-registry", ("prometheus_client", *_WEB), _registry),
    "openmod": DemoService("keywright-openmod", ("asyncpraw", "jinja2", *_WEB), _openmod),
    "meetup": DemoService("keywright-meetup", ("httpx", "jinja2", *_WEB), _meetup),
}


def explorer_service(port: int, models: Sequence[str], *, tour: bool) -> DemoService:
    """Return the service of the explorer over these models. With a tour it may write."""
    mode = "with-tour" if tour else "read-only"

    async def start(group: ProcessGroup) -> None:
        started = await group.start(
            "explorer", f"{HERE}.explorer", str(port), mode, *models, ready=r"^exploring at (http://\S+)$"
        )
        group.addresses["explorer"] = started[1]

    return DemoService("keywright[explorer]", ("jinja2", *_WEB), start)
