"""`keywright discord fetch`: the resources that only Discord's REST API returns, into a DRC cache."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Annotated

import typer

from keywright.cli import EmbeddedOption, UrlOption, echo, server_url
from keywright.errors import UsageError
from keywright_discord.drc.fetcher import Fetched, RestResource

__all__ = ["fetch"]


def fetch(
    resources: Annotated[list[RestResource], typer.Argument(metavar="RESOURCE", help="What to fetch.")],
    guilds: Annotated[
        list[str] | None,
        typer.Option(
            "--guild",
            metavar="ID",
            help="Only of this guild; default: all that the cache has.",
            show_default=False,
        ),
    ] = None,
    config: Annotated[
        Path | None,
        typer.Option(help="The gateway's TOML file. Environment variables win over it.", show_default=False),
    ] = None,
    url: UrlOption = None,
    embedded: EmbeddedOption = None,
) -> None:
    """Fetch what no gateway event carries from Discord, and store it in the cache.

    The bot is that of DISCORD_TOKEN; the cache, its prefix and its expiries are those of the gateway's
    configuration, which can also fetch at intervals (rest.fetch). Only the layout drc has these resources.
    Resources of a guild that the bot may not read are skipped and counted.

    Exits with 0, 2 when the configuration is wrong, 3 when Redis or Discord cannot be reached.

    Examples:
        keywright discord fetch widgets invites --config gateway.toml
        keywright discord fetch webhooks --guild 613425648685547541
    """
    from keywright_discord.gateway.configuration import load

    configuration = load(config)
    if configuration.cache.layout != "drc":
        raise UsageError(
            f"the layout {configuration.cache.layout!r} has no REST resources. Use CACHE_LAYOUT=drc."
        )
    for guild in guilds or ():
        if not guild.isascii() or not guild.isdigit():
            raise UsageError(f"--guild must be the id of a guild, got {guild!r}.")
    server = server_url(url, embedded, configured=configuration.redis.url)

    async def fetched() -> dict[RestResource, Fetched]:
        from keywright import aconnect
        from keywright_discord.drc.fetcher import RestFetcher
        from keywright_discord.drc.store import DrcCache
        from keywright_discord.event_cache import ALL_KINDS
        from keywright_discord.gateway.configuration import cache_bindings
        from keywright_service.discord_rest import DiscordRest

        async with (
            aconnect(server, *cache_bindings(configuration)) as db,
            DiscordRest(configuration.token, url=configuration.api.url) as api,
        ):
            kinds = ALL_KINDS - set(configuration.cache.without)
            fetcher = RestFetcher(api, db, DrcCache(kinds=kinds))
            of = guilds or await fetcher.guilds()
            return {resource: await fetcher.fetch(resource, of) for resource in resources}

    for resource, found in asyncio.run(fetched()).items():
        skipped = f"; {found.skipped:,} guilds skipped" if found.skipped else ""
        echo(f"{resource}: {found.stored:,} stored{skipped}.")
