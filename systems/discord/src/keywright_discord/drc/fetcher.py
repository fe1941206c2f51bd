"""Fetches the resources that only Discord's REST API returns, and stores them in a DRC cache.

A resource of a guild that the bot may not read, for lack of a permission, is skipped; a widget that is
switched off is removed. What Discord does not answer for now is an error: the next run fetches it. The list
of a guild replaces the stored one. An event that arrives between the answer and the write, which are two
round trips, may be overwritten until the next run.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Mapping
from enum import StrEnum
from http import HTTPStatus
from typing import TypeAlias

import msgspec

from keywright import AsyncDatabase
from keywright_discord.changes import Change
from keywright_discord.drc import rest, schema
from keywright_discord.drc.store import DrcCache
from keywright_discord.raw_json import PayloadError
from keywright_service.discord_rest import DiscordRest
from keywright_service.errors import HttpRefusedError, PlatformTroubleError

__all__ = ["OF_THE_APPLICATION", "Fetched", "RestFetcher", "RestResource"]

log = logging.getLogger("keywright.gateway")


class RestResource(StrEnum):
    """The resources that can be fetched."""

    APPLICATION = "application"
    COMMANDS = "commands"
    WIDGETS = "widgets"
    TEMPLATES = "templates"
    WEBHOOKS = "webhooks"
    WELCOME_SCREENS = "welcome-screens"
    INVITES = "invites"
    AUTOMOD_RULES = "automod-rules"
    INTEGRATIONS = "integrations"


OF_THE_APPLICATION = frozenset({RestResource.APPLICATION, RestResource.COMMANDS})


class Fetched(msgspec.Struct):
    """What one run stored of a resource."""

    stored: int = 0
    skipped: int = 0
    """The guilds whose resources the bot may not read, or cannot store."""


_Changes: TypeAlias = Callable[[str, bytes], tuple[list[Change], int]]
"""Makes the changes, and the number of objects, of a guild and an answer."""


class RestFetcher:
    """Fetches for one bot into one cache."""

    def __init__(self, api: DiscordRest, db: AsyncDatabase, cache: DrcCache) -> None:
        self._api = api
        self._db = db
        self._cache = cache

    async def fetch(self, resource: RestResource, guilds: Iterable[str]) -> Fetched:
        """Fetch one resource, of these guilds, and store it. Raise PlatformError or EngineError."""
        match resource:
            case RestResource.APPLICATION:
                return await self._fetch_application()
            case RestResource.COMMANDS:
                return await self._fetch_commands(guilds)
            case _:
                found = Fetched()
                for guild in guilds:
                    await self._fetch_of_guild(resource, guild, found)
                return found

    async def guilds(self) -> list[str]:
        """Return the guilds that the cache knows the bot to be in."""
        return sorted(await self._db.run(schema.Guilds().members()))

    async def _fetch_application(self) -> Fetched:
        await self._store(rest.store_application(await self._application()))
        return Fetched(stored=1)

    async def _fetch_commands(self, guilds: Iterable[str]) -> Fetched:
        """Replace all commands of the application, global ones and those of the guilds."""
        application = msgspec.json.decode(await self._application(), type=_Identified).id
        whole = await self._api.resource("/applications/{}/commands", int(application)) or b"[]"
        commands, found = _elements(whole), Fetched()
        for guild in guilds:
            template = "/applications/{}/guilds/{}/commands"
            body = await self._allowed(template, found, int(application), int(guild))
            commands += _elements(body or b"[]")
        await self._store(rest.store_commands(application, commands))
        found.stored = len(commands)
        return found

    async def _fetch_of_guild(self, resource: RestResource, guild: str, found: Fetched) -> None:
        path, changes = _OF_A_GUILD[resource]
        body = await self._allowed("/guilds/{}/" + path, found, int(guild))
        if body is not None:
            try:
                made, number = changes(guild, body)
            except (PayloadError, msgspec.MsgspecError) as error:
                log.warning("%s of guild %s are not stored: %s", resource, guild, error)
                found.skipped += 1
                return
            await self._store(made)
            found.stored += number
        elif resource is RestResource.WIDGETS:
            await self._store(rest.drop_widget(guild))

    async def _application(self) -> bytes:
        found = await self._api.resource("/applications/@me")
        if found is None:
            raise PlatformTroubleError("Discord", "GET /applications/@me", "it does not know the application")
        return found

    async def _allowed(self, template: str, found: Fetched, *ids: int) -> bytes | None:
        """Return the answer; None, counted as skipped, if the bot may not read it or is not in the guild."""
        try:
            return await self._api.resource(template, *ids)
        except HttpRefusedError as error:
            if error.status not in (HTTPStatus.FORBIDDEN, HTTPStatus.NOT_FOUND):
                raise
            log.info("skipped: %s", error)
            found.skipped += 1
            return None

    async def _store(self, changes: list[Change]) -> None:
        await self._db.run(self._cache.store(changes))


class _Identified(msgspec.Struct):
    id: str


def _elements(body: bytes) -> list[bytes]:
    return [bytes(each) for each in msgspec.json.decode(body, type=list[msgspec.Raw])]


def _all_of(store: Callable[[str, list[bytes]], list[Change]]) -> _Changes:
    def made(guild: str, body: bytes) -> tuple[list[Change], int]:
        objects = _elements(body)
        return store(guild, objects), len(objects)

    return made


_OF_A_GUILD: Mapping[RestResource, tuple[str, _Changes]] = {
    RestResource.WIDGETS: ("widget.json", lambda guild, body: (rest.store_widget(guild, body), 1)),
    RestResource.TEMPLATES: ("templates", _all_of(rest.store_templates)),
    RestResource.WEBHOOKS: ("webhooks", _all_of(rest.store_webhooks)),
    RestResource.WELCOME_SCREENS: (
        "welcome-screen",
        lambda guild, body: (rest.store_welcome_screen(guild, body), 1),
    ),
    RestResource.INVITES: ("invites", _all_of(rest.store_invites)),
    RestResource.AUTOMOD_RULES: ("auto-moderation/rules", _all_of(rest.store_automod_rules)),
    RestResource.INTEGRATIONS: ("integrations", _all_of(rest.store_integrations)),
}
