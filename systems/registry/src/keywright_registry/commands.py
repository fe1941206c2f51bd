"""`keywright registry`: cached repositories, pull and push counts, and the service that counts them."""

from __future__ import annotations

import asyncio
import os
import sys
from typing import Annotated

import msgspec
import typer

from keywright import Database, aconnect, connect, gather_list
from keywright.cli import EmbeddedOption, UrlOption, as_json, echo, echo_error, echo_json, server_url
from keywright.errors import UsageError
from keywright_registry.batches import batched
from keywright_registry.cache import RepositoryCache, read_all
from keywright_registry.paths import is_storable, name_of
from keywright_registry.repository import Counts, Repository
from keywright_registry.schema import CachedRepository
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

__all__ = ["registry"]

DATABASE = "KEYWRIGHT_REGISTRY_DATABASE"

registry = typer.Typer(
    help="The container registry: cached repositories, pull and push counts.",
    no_args_is_help=True,
    rich_markup_mode=None,
)

DatabaseOption = Annotated[
    str | None,
    typer.Option(
        metavar="URL",
        help=f"The metadata database, as in postgresql://user:password@host/name or sqlite:///file.db. "
        f"Else {DATABASE}, else none.",
        show_default=False,
    ),
]


def _text(path: str) -> str:
    if not is_storable(path):
        raise typer.BadParameter("a path must be UTF-8 text")
    return path


PathArgument = Annotated[
    str,
    typer.Argument(
        metavar="PATH", help="The repository, as in acme/web.", show_default=False, callback=_text
    ),
]


@registry.command()
def put(url: UrlOption = None, embedded: EmbeddedOption = None) -> None:
    """Cache repositories, read as JSON from standard input.

    Write one object, or one on each line, with id, namespace_id, name, path and created_at, and optionally
    parent_id, updated_at, deleted_at, size and last_published_at; times are RFC 3339. Other fields are
    ignored. They are stored in the format of the registry, for six hours.

    Exits with 2, without caching anything, if the input is malformed; with 3 if the server is unreachable.

    Examples:
        keywright registry put < repository.json
    """
    repositories = _read(sys.stdin.buffer.read())
    cached = gather_list([RepositoryCache().set(repository) for repository in repositories])
    with connect(server_url(url, embedded)) as db:
        db.run(cached)
        for repository in repositories:
            name = db.context.name(CachedRepository.of(repository.path)).decode()
            echo(f"cached {repository.path} (id {repository.id}) as {name}")


@registry.command()
def get(path: PathArgument, url: UrlOption = None, embedded: EmbeddedOption = None) -> None:
    """Print a cached repository as JSON.

    Exits with 1 if it is not cached or cannot be decoded, 3 if the server is unreachable.

    Examples:
        keywright registry get acme/web --url redis://localhost:6379/0
    """
    with connect(server_url(url, embedded)) as db:
        found = db.run(RepositoryCache().get(path))
    if found is None:
        echo_error(f"{path} is not cached.")
        raise typer.Exit(1)
    echo_json(as_json(msgspec.to_builtins(found)))


@registry.command()
def drop(
    path: PathArgument,
    recursive: Annotated[
        bool, typer.Option("--recursive", help="Also every cached repository below it.")
    ] = False,
    url: UrlOption = None,
    embedded: EmbeddedOption = None,
) -> None:
    """Delete a repository from the cache, with its cached size. Counts stay.

    Exits with 0 whether it was cached or not, 3 if the server is unreachable.

    Examples:
        keywright registry drop acme/web --recursive
    """
    with connect(server_url(url, embedded)) as db:
        paths = [path, *(_below(db, path) if recursive else ())]
        cached = db.run(RepositoryCache().get_many(paths))
        db.run(RepositoryCache().delete(*paths))
    for each in sorted(cached):
        echo(f"dropped {each}")
    if not cached:
        echo(f"{path} was not cached.")


@registry.command()
def counts(
    path: PathArgument,
    url: UrlOption = None,
    embedded: EmbeddedOption = None,
    database: DatabaseOption = None,
) -> None:
    """Print the number of pulls from and pushes to a repository, as JSON.

    The sum of the counts in Redis and, with --database, of those that were moved to the database.

    Exits with 2 if the URL of the database is malformed, 3 if a server is unreachable.

    Examples:
        keywright registry counts acme/web --database sqlite:///registry.db
    """
    found = asyncio.run(_counts(path, server_url(url, embedded), database))
    echo_json(as_json(msgspec.to_builtins(found)))


@registry.command()
def migrate(database: DatabaseOption = None) -> None:
    """Create the tables of the database, or upgrade them; `serve` does so itself.

    Exits with 2 if no database is given, or it has tables of another program; 3 if it is unreachable.

    Examples:
        keywright registry migrate --database sqlite:///registry.db
    """
    location = _database(database)
    if location is None:
        raise UsageError(f"no database is given. Add --database, or set {DATABASE}.")
    taken = asyncio.run(_migrate(location))
    echo(f"Applied {', '.join(taken)}." if taken else "Nothing to do: the tables are up to date.")


@registry.command()
def serve(
    host: Annotated[
        str | None, typer.Option(help="Where to listen; else 127.0.0.1.", show_default=False)
    ] = None,
    port: Annotated[
        int | None,
        typer.Option(
            min=0,
            max=65535,
            metavar="PORT",
            help="The port; else 8088. 0 is any free one.",
            show_default=False,
        ),
    ] = None,
    database: DatabaseOption = None,
    flush_every: Annotated[
        float | None,
        typer.Option(
            min=0.01,
            metavar="SECONDS",
            help="The time between two flushes of counts to the database; else 10.",
            show_default=False,
        ),
    ] = None,
    url: UrlOption = None,
    embedded: EmbeddedOption = None,
    config: ConfigOption = None,
    settings: SetOption = None,
    log_level: LogLevelOption = None,
    log_format: LogFormatOption = None,
    show_config: ShowConfigOption = False,
) -> None:
    """Receive the registry's notifications at /notifications, and count pulls and pushes.

    Counts are moved to the database, whose tables are created or upgraded first; a repository that was pushed
    to is created there. KEYWRIGHT_REGISTRY_TOKEN is the token that the registry must send, as bearer token or
    as basic password; without it only loopback addresses are allowed. The guide lists all settings
    (systems/registry/docs/guide.md). SIGTERM and SIGINT stop it cleanly: acknowledged events are counted and
    moved.

    Exits with 0 after a signal, 2 if the configuration is wrong or it cannot listen, 3 if Redis or the
    database is unreachable at first.

    Examples:
        keywright registry serve --port 8088 --database sqlite:///registry.db
        keywright registry serve --config registry.toml --show-config
    """
    from keywright_registry.service.configuration import READER, load

    options = ServiceOptions(config, settings, url, embedded, log_level, log_format, show_config)
    flags = {
        "http.address": _address(host, port),
        "database.url": database,
        "flush.every": None if flush_every is None else f"{flush_every:f}s",
    }
    configuration = configured(READER, load, options, flags)
    from keywright_registry.service.process import RegistryService

    run_service(lambda: RegistryService(configuration))


def _address(host: str | None, port: int | None) -> str | None:
    """Return the address of the flags; of one flag, with the default of the other."""
    return (
        None if host is None and port is None else f"{host or '127.0.0.1'}:{8088 if port is None else port}"
    )


async def _migrate(location: str) -> list[str]:
    from keywright_registry.metadata import open_metadata

    metadata = await open_metadata(location)
    try:
        return await metadata.migrate()
    finally:
        await metadata.close()


async def _counts(path: str, url: str, database: str | None) -> Counts:
    from keywright_registry.metadata import open_metadata
    from keywright_registry.service.totals import total

    location = _database(database)
    async with aconnect(url) as redis:
        if location is None:
            return await total(redis, None, path)
        metadata = await open_metadata(location)
        try:
            return await total(redis, metadata, path)
        finally:
            await metadata.close()


def _read(data: bytes) -> list[Repository]:
    lines = [line for line in data.splitlines() if line.strip()]
    if not lines:
        raise UsageError("standard input is empty. Write a repository as JSON to it.")
    try:
        found = _decoded(lines)
    except msgspec.DecodeError as error:
        raise UsageError(
            f"the input is not a repository: {error}. See `keywright registry put --help`."
        ) from error
    for repository in found:
        if repository.name != name_of(repository.path):
            raise UsageError(
                f"the name of {repository.path!r} is {name_of(repository.path)!r}, not {repository.name!r}. "
                "Write the last part of the path."
            )
        for name in ("created_at", "updated_at", "deleted_at", "last_published_at"):
            time = getattr(repository, name)
            if time is not None and time.tzinfo is None:
                raise UsageError(
                    f"{name} of {repository.path!r} has no time zone. Write it as in 2026-01-02T03:04:05Z."
                )
    return found


def _decoded(lines: list[bytes]) -> list[Repository]:
    """Decode one object over all lines, or one on each line."""
    decode = msgspec.json.Decoder(Repository).decode
    try:
        return [decode(b"\n".join(lines))]
    except msgspec.DecodeError:
        if len(lines) == 1 or lines[0].strip() == b"{":
            raise
    return [decode(line) for line in lines]


def _below(db: Database, path: str) -> list[str]:
    """Return the cached paths below a path. Paths are hashed, so every key of the namespace is read."""
    keys = list(db.scan(CachedRepository, namespace=path.partition("/")[0]))
    cached = [each for some in batched(keys) for each in db.run(read_all(some))]
    return [each.path for each in cached if each is not None and each.path.startswith(f"{path}/")]


def _database(given: str | None) -> str | None:
    return given or os.environ.get(DATABASE) or None
