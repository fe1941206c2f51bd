"""What runs for each model: its service, and something for the service to do."""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Sequence
from importlib.util import find_spec
from typing import NamedTuple

from keywright.tools.http import LOOPBACK
from keywright_demo import names
from keywright_demo.processes import Crew, free_port
from keywright_discord.gateway.intents import Intents

__all__ = ["SCENES", "Scene", "explorer"]

CLI = "keywright"
HERE = "keywright_demo"
GUILDS, MEMBERS, EVENTS_A_SECOND = "30", "50", "20"
_EXPORTED = re.compile(r"^export (\w+)=(.*)$", re.MULTILINE)
_LISTENING = r"listening on (http://\S+)"


class Scene(NamedTuple):
    """How to start the parts of a model, and what must be installed for it."""

    distribution: str
    modules: tuple[str, ...]
    start: Callable[[Crew], Awaitable[None]]

    @property
    def missing(self) -> list[str]:
        """The modules that are not installed."""
        return [module for module in self.modules if find_spec(module) is None]


async def _drc(crew: Crew) -> None:
    """Discord, the gateway, which fills the cache and the broker, and a worker behind it."""
    started = await crew.start(
        "discord simulator",
        CLI,
        *("gateway", "simulate", "--guilds", GUILDS, "--members", MEMBERS, "--rate", EVENTS_A_SECOND),
        ready=r"^api +http://([^/\s]+)(?:.|\n)*^token +(\S+)",
    )
    # Before the gateway, so that nothing it publishes waits.
    await crew.start("worker", f"{HERE}.worker")
    monitor = f"{LOOPBACK}:{free_port()}"
    await crew.start(
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
    crew.addresses["metrics"] = f"http://{monitor}/metrics"


async def _spectacles(crew: Crew) -> None:
    """The other layout of the cache, fed as a recording would be."""
    await crew.start("spectacles feeder", f"{HERE}.spectacles_feeder")


async def _registry(crew: Crew) -> None:
    """The registry's service with a database of its own, and clients that pull and push."""
    database = f"sqlite:///{crew.site.folder / 'registry.db'}"
    started = await crew.start(
        "registry",
        CLI,
        *("registry", "serve", "--port", "0", "--database", database, "--flush-every", "5"),
        ready=_LISTENING,
    )
    await crew.start("registry feeder", f"{HERE}.registry_feeder", started[1], database)


async def _openmod(crew: Crew) -> None:
    """A Reddit where people write and moderators act, and Open Mod watching them."""
    started = await crew.start(
        "reddit simulator",
        CLI,
        "openmod",
        "simulate",
        "--rate",
        "1",
        ready=r"(?:.|\n)*^export REDDIT_PASSWORD=.*$",
    )
    await crew.start(
        "open mod",
        CLI,
        *("openmod", "serve"),
        environment={
            **dict(_EXPORTED.findall(started[0])),
            "OPENMOD_PREFIX": names.OPENMOD,
            "OPENMOD_POLL": "2s",
            "OPENMOD_ENFORCE": "10s",
        },
        ready=r"watching r/",
    )


async def _meetup(crew: Crew) -> None:
    """Meetup and a guild, with people who announce, answer and link themselves, and the bot between them."""
    pages = f"{LOOPBACK}:{free_port()}"
    started = await crew.start(
        "meetup feeder", f"{HERE}.meetup_feeder", f"http://{pages}", ready=r"(?:.|\n)*^ready$"
    )
    schedule = crew.site.folder / "meetup.toml"
    schedule.write_text("[schedule]\nsync_minutes = 0.1\nclean_minutes = 1\n", "utf-8")
    await crew.start(
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


_WEB = ("starlette", "uvicorn")
SCENES = {
    "drc": Scene("keywright-discord", ("httpx", "prometheus_client", "websockets", "zstandard", *_WEB), _drc),
    "spectacles": Scene("keywright-discord", (), _spectacles),
    "registry": Scene("keywright-registry", ("prometheus_client", *_WEB), _registry),
    "openmod": Scene("keywright-openmod", ("asyncpraw", *_WEB), _openmod),
    "meetup": Scene("keywright-meetup", ("httpx", "jinja2", *_WEB), _meetup),
}


def explorer(port: int, models: Sequence[str]) -> Scene:
    """A browser's view of what these models store."""

    async def start(crew: Crew) -> None:
        started = await crew.start(
            "explorer", f"{HERE}.explorer", str(port), *models, ready=r"^exploring at (http://\S+)$"
        )
        crew.addresses["explorer"] = started[1]

    return Scene("keywright[explorer]", ("jinja2", *_WEB), start)
