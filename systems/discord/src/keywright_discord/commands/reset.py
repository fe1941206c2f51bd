"""`keywright gateway reset`: new sessions for a bot's shards, so that its cache is filled again."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated

import typer

from keywright import Database, connect
from keywright.cli import EmbeddedOption, UrlOption, echo, server_url

__all__ = ["reset"]


def reset(
    config: Annotated[
        Path | None,
        typer.Option(help="The gateway's TOML file. Environment variables win over it.", show_default=False),
    ] = None,
    url: UrlOption = None,
    embedded: EmbeddedOption = None,
) -> None:
    """Drop the stored sessions of a bot: its shards identify again, and Discord sends every guild.

    The bot is that of DISCORD_TOKEN; Redis and the prefix of its keys are those of the gateway's
    configuration. A gateway that runs begins its new sessions within seconds, one that does not at its next
    start. Each new session counts among the bot's session starts of the day. The cache is not removed:
    `keywright discord purge` does that, after which no reset is necessary.

    Exits with 0, 2 when the configuration is wrong, 3 when Redis cannot be reached.

    Examples:
        keywright gateway reset --config gateway.toml
    """
    from keywright_discord.gateway.configuration import load
    from keywright_discord.gateway.gateway import bot_of
    from keywright_discord.gateway.schema import gateway

    configuration = load(config)
    server = server_url(url, embedded, configured=configuration.redis.url)
    bot = bot_of(configuration.token.reveal())
    with connect(server, gateway.bind(prefix=configuration.shard_store.prefix)) as db:
        lines = list(_reset(db, bot))
    for line in lines or [f"Bot {bot} has no stored session: its next start identifies in any case."]:
        echo(line)


def _reset(db: Database, bot: str) -> Iterator[str]:
    """Request a new session for every shard that has one or is run. Yield what was done for each."""
    from keywright_discord.gateway.schema import ResetRequest, ShardOwner, ShardReset, ShardSession

    stored = {(each.shards, each.shard) for each in db.scan(ShardSession, bot=bot)}
    run = {(each.shards, each.shard) for each in db.scan(ShardOwner, bot=bot)}
    for shards, shard in sorted(stored | run):
        # The request first: a process that runs the shard may store its session again until it reads it.
        db.run(ShardReset(bot, shards, shard).set(ResetRequest(datetime.now(UTC))))
        db.run(ShardSession(bot, shards, shard).delete())
        then = (
            "the process that runs it identifies again within seconds"
            if (shards, shard) in run
            else "its next start identifies"
        )
        yield f"Shard {shard} of {shards}: its session was dropped; {then}."
