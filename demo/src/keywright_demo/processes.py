"""Parts that belong together: started one after another, stopped the other way round."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from keywright.tools.http import LOOPBACK, listening
from keywright_demo.part import Part, PartProcess

__all__ = ["Crew", "Site", "free_port"]


@dataclass(frozen=True)
class Site:
    """Where everything runs: the folder for files and logs, Redis, the broker."""

    folder: Path
    logs: Path
    redis: str
    broker: str

    @property
    def environment(self) -> dict[str, str]:
        # Not as arguments, where any user of the machine could read a password.
        return {"REDIS_URL": self.redis, "BROKER_URL": self.broker}


class Crew:
    """The running parts of one model, in the order in which they were started."""

    def __init__(self, name: str, site: Site) -> None:
        self.name = name
        self.site = site
        self.parts: list[PartProcess] = []
        self.addresses: dict[str, str] = {}
        """Addresses that parts printed, by name."""

    async def start(
        self,
        name: str,
        module: str,
        *arguments: str,
        environment: Mapping[str, str] | None = None,
        ready: str = r"^ready$",
    ) -> re.Match[str]:
        """Start a part and wait until it is ready; PartFailedError when it is not."""
        variables = {**self.site.environment, **(environment or {})}
        process = PartProcess(
            Part(name, module, arguments, variables, ready), self.site.folder, self.site.logs
        )
        self.parts.append(process)
        return await process.start()

    async def stop(self) -> None:
        for part in reversed(self.parts):
            await part.stop()

    def kill(self) -> None:
        for part in self.parts:
            part.kill()


def free_port(wanted: int = 0) -> int:
    """A loopback port that can be listened on: the wanted one, or any; UsageError when it is taken."""
    with listening(LOOPBACK, wanted, remedy="Choose another --port.") as probe:
        return int(probe.getsockname()[1])
