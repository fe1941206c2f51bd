"""`keywright openmod`: record moderation, look at public extracts, enforce the content deletion policy."""

from __future__ import annotations

import asyncio
import os
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import ExitStack, asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, BinaryIO

import msgspec
import typer

from keywright import AsyncDatabase, aconnect
from keywright.cli import NamesPrefix, ServerOption, as_json, log_to_stderr, open_source
from keywright.errors import EngineError, KeywrightError, UsageError
from keywright_openmod.commands.simulate import simulate_reddit
from keywright_openmod.events import decode_event
from keywright_openmod.recorder import EventOutcome, HandledEvent, Recorder
from keywright_openmod.service.configuration import installation, load
from keywright_openmod.service.local_platform import LocalPlatform
from keywright_openmod.service.queries import extracts_about, show_extract
from keywright_openmod.service.schema import bind
from keywright_openmod.settings import Settings

if TYPE_CHECKING:
    from keywright_openmod.service.configuration import Configuration
    from keywright_openmod.service.service import Enforced

__all__ = ["openmod"]

DEFAULT_TARGET = "openmod"

openmod = typer.Typer(
    help="Open Mod: a subreddit's moderation, disclosed in public extracts.",
    no_args_is_help=True,
    rich_markup_mode=None,
)

ConfigOption = Annotated[
    Path | None,
    typer.Option(help="A TOML file. Environment variables win over it.", show_default=False),
]


@openmod.command()
def ingest(
    source: Annotated[
        str,
        typer.Argument(metavar="FILE", help="The events; - or none is standard input.", show_default=False),
    ] = "-",
    config: ConfigOption = None,
    url: ServerOption = None,
    prefix: NamesPrefix = None,
) -> None:
    """Record events, read as JSON lines. Needs no Reddit.

    They are the platform's triggers, with their "type": ModAction, PostSubmit, PostUpdate, PostDelete,
    CommentSubmit, CommentUpdate, CommentDelete. What a trigger tells is all that is known; public posts are
    kept here, under ids such as t3_local1, for `show`. Which actions are recorded is the [settings] of the
    file, else Open Mod's defaults. Prints what became of each event as a JSON line.

    A line that cannot be recorded is told with its number, and the others go on. Exits with 1 when there was
    one, 2 when the events cannot be read, 3 when the server cannot be reached.
    """
    chosen = installation(config) or Settings(target_subreddit=DEFAULT_TARGET)
    with ExitStack() as opened:
        stream = open_source(source, opened, "a file of events")
        counts = asyncio.run(_ingest(stream, chosen, url, prefix))
    told = ", ".join(f"{number:,} {outcome}" for outcome, number in sorted(counts.items()))
    typer.echo(f"{counts.total():,} events{': ' if told else ''}{told}.", err=True)
    if counts["refused"]:
        raise typer.Exit(1)


@openmod.command()
def extracts(
    thing: Annotated[
        str,
        typer.Argument(metavar="THING", help="A post, comment or person: t3_…, t1_… or t2_…."),
    ],
    url: ServerOption = None,
    prefix: NamesPrefix = None,
) -> None:
    """Print the extracts about a thing, as JSON lines; of a person also those about what they submitted.

    Exits with 0 whether there are any or not, 2 when that is no id, 3 when the server cannot be reached.
    """

    async def listed() -> None:
        async with _connected(url, prefix) as db:
            async for found in extracts_about(db, thing):
                typer.echo(msgspec.json.encode(found))

    asyncio.run(listed())


@openmod.command()
def show(
    extract: Annotated[str, typer.Argument(metavar="EXTRACT", help="The public post, t3_….")],
    json: Annotated[bool, typer.Option("--json", help="Also what it was made of, as JSON.")] = False,
    url: ServerOption = None,
    prefix: NamesPrefix = None,
) -> None:
    """Print how an extract reads: title and body.

    As it was published where the post is kept here, else rendered from what is stored; the title of a post
    on Reddit is only there.

    Exits with 1 when there is no such extract, 2 when that is no id, 3 when the server cannot be reached.
    """

    async def shown() -> str | None:
        async with _connected(url, prefix) as db:
            found = await show_extract(db, extract)
        if found is None:
            return None
        if json:
            return as_json(msgspec.to_builtins(found))
        return "\n\n".join(part for part in (found.title, found.body) if part)

    text = asyncio.run(shown())
    if text is None:
        typer.echo(f"there is no extract {extract}.", err=True)
        raise typer.Exit(1)
    typer.echo(text)


@openmod.command()
def enforce(
    once: Annotated[bool, typer.Option("--once", help="Check what is due now, and end.")] = False,
    config: ConfigOption = None,
    url: ServerOption = None,
) -> None:
    """Forget what was deleted: accounts and submissions that are gone, and what extracts tell of them.

    Each is looked up on Reddit once a day. Only what Reddit is certain about is forgotten; after an outage
    or a rate limit it is asked again. Without --once it goes on until SIGTERM or SIGINT.

    Exits with 0, with 2 when the configuration is wrong, 3 when a server cannot be reached or Reddit left
    something undecided.
    """
    configuration = _configured(config, url)
    log_to_stderr()
    if not once:
        _serve(configuration, only_enforce=True)
        return
    done = asyncio.run(_enforce_once(configuration))
    typer.echo(f"{done.kept:,} are there, {done.forgotten:,} forgotten, {len(done.troubles):,} undecided.")
    for trouble in done.troubles:
        typer.echo(str(trouble), err=True)
    if done.troubles:
        raise typer.Exit(3)


@openmod.command()
def serve(config: ConfigOption = None, url: ServerOption = None) -> None:
    """Watch a subreddit: publish extracts of its moderation, and forget what was deleted.

    Needs the subreddit, where extracts go, and a Reddit script app; docs/openmod.md lists all settings.
    SIGTERM and SIGINT end it cleanly. A process that is started afterwards goes on where it was; so does one
    after a crash.

    Exits with 0 when it was told to stop, 2 when the configuration is wrong, 3 when Redis cannot be reached
    or Reddit refuses the credentials.
    """
    configuration = _configured(config, url)
    log_to_stderr()
    if configuration.redis.url is None:
        typer.echo("there is no --url and no REDIS_URL: an embedded server, which keeps nothing.", err=True)
    _serve(configuration, only_enforce=False)


openmod.command("simulate")(simulate_reddit)


async def _ingest(stream: BinaryIO, chosen: Settings, url: str | None, prefix: str | None) -> Counter[str]:
    counts: Counter[str] = Counter()
    async with _connected(url, prefix) as db:
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
                typer.echo(f"line {number}: {error}", err=True)
                outcome = "refused"
            counts[outcome] += 1
    return counts


async def _recorded(line: bytes, number: int, platform: LocalPlatform, recorder: Recorder) -> str:
    event = decode_event(line)
    platform.learn(msgspec.json.decode(line))
    handled = await recorder.handle(event)
    if handled.outcome is EventOutcome.BUSY:
        raise UsageError("another process is at this event. Ingest it again when that is done.")
    typer.echo(msgspec.json.encode(_told(number, event.id, handled)))
    return handled.outcome.value


def _told(number: int, event: str, handled: HandledEvent) -> dict[str, object]:
    told = {"line": number, "event": event, "outcome": handled.outcome.value}
    optional = {"reason": handled.reason, "extract": handled.post}
    return told | {name: value for name, value in optional.items() if value}


def _configured(config: Path | None, url: str | None) -> Configuration:
    environment = dict(os.environ)
    if url:
        environment["REDIS_URL"] = url
    return load(config, environment)


def _serve(configuration: Configuration, *, only_enforce: bool) -> None:
    try:
        from keywright_openmod.service.service import OpenModService
    except ModuleNotFoundError as error:
        raise _not_installed(error) from error

    async def served() -> None:
        await OpenModService(configuration, only_enforce=only_enforce).run(handle_signals=True)

    asyncio.run(served())


async def _enforce_once(configuration: Configuration) -> Enforced:
    try:
        from keywright_openmod.service.service import enforce_once
    except ModuleNotFoundError as error:
        raise _not_installed(error) from error
    return await enforce_once(configuration)


def _not_installed(error: ModuleNotFoundError) -> UsageError:
    return UsageError(f"{error.name} is not installed. Install keywright[openmod].")


@asynccontextmanager
async def _connected(url: str | None, prefix: str | None) -> AsyncIterator[AsyncDatabase]:
    if not (url or os.environ.get("REDIS_URL")):
        typer.echo("there is no --url and no REDIS_URL: an embedded server, which keeps nothing.", err=True)
    async with aconnect(url, *bind(prefix)) as db:
        yield db
