"""Traffic of one gateway session."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import accumulate
from typing import Any

import msgspec

from keywright_discord.traffic import guild_events, people_events
from keywright_discord.traffic.mixes import EVERYDAY
from keywright_discord.traffic.source import Json, Source
from keywright_discord.traffic.world import Home, World

__all__ = ["Traffic"]

_MAKERS = {**guild_events.MAKERS, **people_events.MAKERS}
_ATTEMPTS = 100


class Traffic:
    """Traffic of a simulated world: the same seed and calls give the same bytes.

    The returned objects belong to the world: encode or copy them, but do not change them.
    """

    def __init__(self, seed: int = 0) -> None:
        self._source = Source(seed)
        self._world = World(self._source)

    @property
    def bot(self) -> str:
        """The bot's user id."""
        return str(self._world.bot["id"])

    @property
    def world(self) -> World:
        """The simulated world; a caller may change it between events."""
        return self._world

    @property
    def guilds(self) -> list[str]:
        """The ids of the guilds that the bot is in."""
        return list(self._world.homes.ids)

    def guild(self, members: int = 1000) -> Json:
        """Return the `d` of a GUILD_CREATE for a new guild; 1,000 members are about 620 KB of JSON."""
        home = Home(self._world, members)
        return self._world.homes.put(home.id, home).created()

    def ready(self, shard: tuple[int, int] = (0, 1)) -> Json:
        """Return the `d` of a READY that lists the guilds the bot is in."""
        return {
            "v": 10,
            "user": {**self._world.bot, "email": None, "verified": True, "mfa_enabled": False, "flags": 0},
            "guilds": [{"id": guild, "unavailable": True} for guild in self._world.homes.ids],
            "session_id": self._source.hexadecimal(),
            "resume_gateway_url": "wss://gateway-us-east1-b.discord.gg",
            "shard": list(shard),
            "application": {"id": self._world.application, "flags": 565248},
            "session_type": "normal",
            "private_channels": [],
            "_trace": ["keywright"],
        }

    def events(
        self, count: int, *, guilds: int = 2, members: int = 50, mix: Mapping[str, float] | None = None
    ) -> Iterator[tuple[str, Any]]:
        """Yield `count` dispatches (`t`, `d`); the first call begins the session with READY and its guilds.

        `mix` overrides weights of EVERYDAY by name. A guild that was left is replaced by a new one.
        """
        opening = self._opening(guilds, members)
        for _, event in zip(range(count), opening, strict=False):
            count -= 1
            yield event
        yield from self._everyday(count, max(1, guilds), members, {**EVERYDAY, **(mix or {})})

    def packets(
        self, count: int, *, guilds: int = 2, members: int = 50, mix: Mapping[str, float] | None = None
    ) -> Iterator[bytes]:
        """Yield the same events as gateway packets, each the JSON of `{"op": 0, "t": …, "s": …, "d": …}`."""
        encode = msgspec.json.Encoder().encode
        events = self.events(count, guilds=guilds, members=members, mix=mix)
        for sequence, (event, data) in enumerate(events, 1):
            yield encode({"op": 0, "t": event, "s": sequence, "d": data})

    def _opening(self, guilds: int, members: int) -> Iterator[tuple[str, Any]]:
        if len(self._world.homes):
            return
        created = [self.guild(members) for _ in range(guilds)]
        yield "READY", self.ready()
        for each in created:
            yield "GUILD_CREATE", each

    def _everyday(
        self, count: int, guilds: int, members: int, mix: Mapping[str, float]
    ) -> Iterator[tuple[str, Any]]:
        unknown = mix.keys() - _MAKERS.keys() - {"RESUMED"}
        assert not unknown, f"no event of this traffic: {sorted(unknown)}"
        names, weights = list(mix), list(accumulate(mix.values()))
        for _ in range(count):
            if len(self._world.homes) < guilds:
                yield "GUILD_CREATE", self.guild(members)
            else:
                yield self._one(names, weights)

    def _one(self, names: list[str], weights: list[float]) -> tuple[str, Any]:
        """Return an event that is possible now; an unavailable guild only comes back or is removed."""
        for _ in range(_ATTEMPTS):
            home = self._world.homes.any(self._source)
            assert home is not None
            (name,) = self._source.random.choices(names, cum_weights=weights)
            if name == "RESUMED":
                return name, {"_trace": ["keywright"]}
            if not home.available:
                name = "GUILD_CREATE"
            data = _MAKERS[name](home)
            if data is not None:
                return name, data
        return "RESUMED", {"_trace": ["keywright"]}
