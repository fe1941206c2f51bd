"""`keywright openmod`: record moderation events, show public extracts, enforce the deletion policy."""

from __future__ import annotations

import asyncio
from collections import Counter
from contextlib import ExitStack
from typing import TYPE_CHECKING, Annotated, BinaryIO

import msgspec
import typer

from keywright import aconnect
from keywright.cli import (
    EmbeddedOption,
    NamesPrefix,
    UrlOption,
    as_json,
    echo,
    echo_error,
    echo_json,
    open_source,
    server_url,
)
from keywright.errors import EngineError, KeywrightError, UsageError
from keywright_openmod.commands.simulate import simulate_reddit
from keywright_openmod.events import decode_event
from keywright_openmod.recorder import EventOutcome, Recorder
from keywright_openmod.service.configuration import READER, configured_redis, installation, load
from keywright_openmod.service.local_platform import LocalPlatform
from keywright_openmod.service.queries import extracts_about, show_extract
from keywright_openmod.service.schema import bind
from keywright_openmod.settings import OpenModSettings
from keywright_service.commands import (
    ConfigOption,
    LogFormatOption,
    LogLevelOption,
    ServiceOptions,
    SetOption,
    ShowConfigOption,
    configured,
    run_service,
)

if TYPE_CHECKING:
    from keywright_openmod.service.configuration import OpenModConfiguration

__all__ = ["openmod"]

DEFAULT_TARGET = "openmod"

openmod = typer.Typer(
    help="Open Mod: a public log of a subreddit's moderation.",
    no_args_is_help=True,
    rich_markup_mode=None,
)


@openmod.command()
def ingest(
    source: Annotated[
        str,
        typer.Argument(
            metavar="FILE", help="The events; - (the default) reads standard input.", show_default=False
        ),
    ] = "-",
    config: ConfigOption = None,
    url: UrlOption = None,
    embedded: EmbeddedOption = None,
    prefix: NamesPrefix = None,
) -> None:
    """Record events from JSON lines, without Reddit.

    The events are the platform's triggers with their "type": ModAction, PostSubmit, PostUpdate, PostDelete,
    CommentSubmit, CommentUpdate, CommentDelete. Names and content come from the events alone; public posts
    are stored in Redis, under ids such as t3_local1. [settings] of the file select the recorded actions.
    Prints the result of each event as a JSON line.

    A line that cannot be recorded is reported with its number, and the others are recorded. Exits with 1 if
    there was one, 2 if the events cannot be read, 3 if the server cannot be reached.

    Examples:
        keywright openmod ingest events.jsonl --url redis://localhost:6379/0
    """
    chosen = installation(config) or OpenModSettings(target_subreddit=DEFAULT_TARGET)
    redis = configured_redis(config)
    server = server_url(url, embedded, configured=redis.url)
    with ExitStack() as opened:
        stream = open_source(source, opened, "a file of events")
        counts = asyncio.run(_ingest(stream, chosen, server, prefix or redis.prefix))
    results = ", ".join(f"{number:,} {outcome}" for outcome, number in sorted(counts.items()))
    echo(f"{counts.total():,} events{': ' if results else ''}{results}.", err=True)
    if counts["refused"]:
        raise typer.Exit(1)


@openmod.command()
def extracts(
    thing: Annotated[
        str,
        typer.Argument(metavar="THING", help="A post, comment or user: t3_…, t1_… or t2_…."),
    ],
    url: UrlOption = None,
    embedded: EmbeddedOption = None,
    prefix: NamesPrefix = None,
) -> None:
    """Print the extracts about a thing as JSON lines; for a user also those about their submissions.

    Exits with 0 even if there are none, 2 if the id is invalid, 3 if the server cannot be reached.

    Examples:
        keywright openmod extracts t3_1abcde
    """
    server = server_url(url, embedded)

    async def listed() -> None:
        async with aconnect(server, *bind(prefix)) as db:
            async for found in extracts_about(db, thing):
                echo_json(msgspec.json.encode(found))

    asyncio.run(listed())


@openmod.command()
def show(
    extract: Annotated[str, typer.Argument(metavar="EXTRACT", help="The public post, t3_….")],
    json: Annotated[bool, typer.Option("--json", help="Print JSON, with the record of the extract.")] = False,
    url: UrlOption = None,
    embedded: EmbeddedOption = None,
    prefix: NamesPrefix = None,
) -> None:
    """Print the title and body of an extract.

    A post that `ingest` stored is printed as published. Others are rendered from stored data, without a
    title, which only Reddit has.

    Exits with 1 if the extract does not exist, 2 if the id is invalid, 3 if the server cannot be reached.

    Examples:
        keywright openmod show t3_1abcde
        keywright openmod show t3_1abcde --json
    """
    server = server_url(url, embedded)

    async def shown() -> str | None:
        async with aconnect(server, *bind(prefix)) as db:
            found = await show_extract(db, extract)
        if found is None:
            return None
        if json:
            return as_json(msgspec.to_builtins(found))
        return "\n\n".join(part for part in (found.title, found.body) if part)

    text = asyncio.run(shown())
    if text is None:
        echo_error(f"the extract {extract} does not exist.")
        raise typer.Exit(1)
    if json:
        echo_json(text)
    else:
        echo(*text.split("\n"))


@openmod.command()
def enforce(
    once: Annotated[bool, typer.Option("--once", help="Check what is due now, and exit.")] = False,
    url: UrlOption = None,
    embedded: EmbeddedOption = None,
    config: ConfigOption = None,
    settings: SetOption = None,
    log_level: LogLevelOption = None,
    log_format: LogFormatOption = None,
    show_config: ShowConfigOption = False,
) -> None:
    """Erase deleted accounts and submissions from Redis and from the public extracts.

    Each is looked up on Reddit once a day, and erased only after a certain answer; after an outage or a rate
    limit it is retried. Without --once it runs until SIGTERM or SIGINT.

    Exits with 0, with 2 if the configuration is invalid, 3 if a server cannot be reached or Reddit gave no
    certain answer.

    Examples:
        keywright openmod enforce --once --config openmod.toml
    """
    options = ServiceOptions(config, settings, url, embedded, log_level, log_format, show_config)
    configuration = configured(READER, load, options)
    if not once:
        _serve(configuration, only_enforce=True)
        return
    from keywright_openmod.service.service import enforce_once

    done = asyncio.run(enforce_once(configuration))
    echo(f"{done.kept:,} kept, {done.erased:,} erased, {len(done.troubles):,} undecided.")
    for trouble in done.troubles:
        echo(str(trouble), err=True)
    if done.troubles:
        raise typer.Exit(3)


@openmod.command()
def serve(
    url: UrlOption = None,
    embedded: EmbeddedOption = None,
    config: ConfigOption = None,
    log_address: Annotated[
        str | None,
        typer.Option(
            metavar="HOST:PORT", help="Serve the public log there; :PORT is on loopback.", show_default=False
        ),
    ] = None,
    settings: SetOption = None,
    log_level: LogLevelOption = None,
    log_format: LogFormatOption = None,
    show_config: ShowConfigOption = False,
) -> None:
    """Watch a subreddit: publish extracts of its moderation, serve the public log, erase deleted data.

    Needs the subreddit, the subreddit for extracts, and a Reddit script app; systems/openmod/docs/guide.md
    lists all settings. SIGTERM and SIGINT stop it cleanly. After a stop or a crash the next process continues
    at the same position.

    Exits with 0 after a signal, 2 if the configuration is invalid, 3 if Redis cannot be reached or Reddit
    refuses the credentials.

    Examples:
        keywright openmod serve --config openmod.toml
        keywright openmod serve --config openmod.toml --log-address :8070
    """
    options = ServiceOptions(config, settings, url, embedded, log_level, log_format, show_config)
    flags = {"public_log.address": log_address}
    _serve(configured(READER, load, options, flags), only_enforce=False)


openmod.command("simulate")(simulate_reddit)


async def _ingest(stream: BinaryIO, chosen: OpenModSettings, url: str, prefix: str | None) -> Counter[str]:
    counts: Counter[str] = Counter()
    async with aconnect(url, *bind(prefix)) as db:
        platform = LocalPlatform(db)
        recorder = Recorder(db, platform, chosen)
        for number, line in enumerate(stream, 1):
            if not line.strip():
                continue
            try:
                outcome = await _recorded(line, number, platform, recorder)
            except EngineError:
                raise
            except KeywrightError as error:
                echo(f"line {number}: {error}", err=True)
                outcome = "refused"
            counts[outcome] += 1
    return counts


async def _recorded(line: bytes, number: int, platform: LocalPlatform, recorder: Recorder) -> str:
    event = decode_event(line)
    platform.learn(msgspec.json.decode(line))
    handled = await recorder.handle(event)
    if handled.outcome is EventOutcome.BUSY:
        raise UsageError("another process is handling this event. Ingest it again later.")
    result = {"line": number, "event": event.id, "outcome": handled.outcome.value}
    optional = {"reason": handled.reason, "extract": handled.post}
    result |= {name: value for name, value in optional.items() if value}
    echo_json(msgspec.json.encode(result))
    return handled.outcome.value


def _serve(configuration: OpenModConfiguration, *, only_enforce: bool) -> None:
    from keywright_openmod.service.service import OpenModService

    run_service(lambda: OpenModService(configuration, only_enforce=only_enforce))
