"""A worker for the test of Discord: notes what it receives, and requests the members of every guild.

Runs in the installation: `python discord_worker.py SUBGROUP BROKER FILE`.
"""

from __future__ import annotations

import sys
from pathlib import Path

import msgspec

from keywright_messaging import Broker, BrokerSettings, Worker

REQUEST_MEMBERS = 8
REQUESTING = "requests"


class Entity(msgspec.Struct):
    id: str


def main(subgroup: str, url: str, notes: Path) -> None:
    worker = Worker(group="gateway", subgroup=subgroup)

    def note(event: str, identity: str) -> None:
        with notes.open("a") as file:
            file.write(f"{event} {identity}\n")

    @worker.on("MESSAGE_CREATE")
    async def message(message: Entity) -> None:
        note("MESSAGE_CREATE", message.id)

    @worker.on("GUILD_CREATE")
    async def guild(guild: Entity, broker: Broker) -> None:
        if subgroup == REQUESTING:
            packet = {"op": REQUEST_MEMBERS, "d": {"guild_id": guild.id, "query": "", "limit": 0}}
            await broker.publish("SEND", {"guild_id": guild.id, "packet": packet})
        note("GUILD_CREATE", guild.id)

    worker.run(url, BrokerSettings(client=subgroup))


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], Path(sys.argv[3]))
