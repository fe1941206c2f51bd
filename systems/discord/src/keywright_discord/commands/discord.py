"""`keywright discord`: feed a cache of Discord's state from recorded packets, read it, remove it."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Iterable
from contextlib import ExitStack
from enum import Enum
from pathlib import Path
from typing import IO, Annotated, Any, BinaryIO

import msgspec
import typer
from rich.console import Console
from rich.progress import BarColumn, DownloadColumn, TimeRemainingColumn, TransferSpeedColumn
from rich.text import Text

from keywright import Database, connect
from keywright.cli import (
    EmbeddedOption,
    Meter,
    UrlOption,
    as_json,
    bar,
    echo,
    echo_error,
    echo_json,
    note,
    open_source,
    printable,
    rich_console,
    server_url,
)
from keywright.errors import UsageError
from keywright.tools import count as count_keys
from keywright.tools import purge as purge_keys
from keywright_discord.changes import Kind
from keywright_discord.commands.fetch import fetch
from keywright_discord.event_cache import ALL_KINDS, EventCache
from keywright_discord.expiries import NO_EXPIRY, Expiries, cache_bindings
from keywright_discord.ingest import Line
from keywright_discord.ingest import ingest as ingest_recording
from keywright_discord.layouts import LAYOUTS
from keywright_service.configuration import duration

__all__ = ["discord"]

# Fields that must not be printed: credentials, and the URL that contains one.
HIDDEN = {"interaction": ("token",), "webhook": ("token", "url")}
REPORTED_REJECTS = 5

discord = typer.Typer(
    help="Caches of Discord's state, in the DRC or the Spectacles layout.",
    no_args_is_help=True,
    rich_markup_mode=None,
)


class LayoutName(Enum):
    DRC = "drc"
    SPECTACLES = "spectacles"


LayoutOption = Annotated[LayoutName, typer.Option("--layout", help="The layout of the cache.")]
PrefixOption = Annotated[
    str | None,
    typer.Option(
        rich_help_panel="Server",
        help="The prefix of the key names; default: 'keywright' for drc, none for spectacles.",
    ),
]


@discord.command()
def ingest(
    source: Annotated[
        str,
        typer.Argument(metavar="FILE", help="The packets; - or none is standard input.", show_default=False),
    ] = "-",
    layout: LayoutOption = LayoutName.DRC,
    prefix: PrefixOption = None,
    url: UrlOption = None,
    embedded: EmbeddedOption = None,
    without: Annotated[
        list[Kind] | None,
        typer.Option(
            metavar="KIND", help="Leave these out of the cache, as in --without presence.", show_default=False
        ),
    ] = None,
    expiry: Annotated[
        list[str] | None,
        typer.Option(
            metavar="KIND=DURATION",
            help="How long entities of a kind are kept, as in --expiry message=1h or presence=none.",
            show_default=False,
        ),
    ] = None,
    rejects: Annotated[
        Path | None,
        typer.Option(
            help="The file for rejected lines; default: FILE.rejects.jsonl, or discord.rejects.jsonl.",
            show_default=False,
        ),
    ] = None,
) -> None:
    """Apply gateway packets to a cache.

    They are {"op": 0, "t": …, "s": …, "d": …}, one per line, and applied in order. A line that cannot be
    applied does not stop the run: it is counted and written, with its number and the reason, to the rejects
    file, which is created on the first one; the first few are printed. Packets that change no cache are
    ignored. A server that is away is waited for, a minute at most, as during a failover.

    Exits with 0 when every line was applied or ignored, 1 when a line was rejected, 2 when the packets cannot
    be read, 3 when the server cannot be reached: the message names the line from which to ingest again.

    Examples:
        keywright discord ingest packets.jsonl --url redis://localhost:6379/0
        keywright discord ingest packets.jsonl --without presence --expiry message=1h
    """
    kept = rejects or Path("discord.rejects.jsonl" if source == "-" else f"{source}.rejects.jsonl")
    if source != "-" and kept.exists() and Path(source).exists() and kept.samefile(source):
        raise UsageError("the rejects would overwrite the packets. Name another file with --rejects.")
    chosen, server = LAYOUTS[layout.value], server_url(url, embedded)
    bindings = cache_bindings(layout.value, prefix, _expiries(expiry or ()))
    console = rich_console(sys.stderr)
    with ExitStack() as opened:
        stream = open_source(source, opened, "a file of packets")
        db = opened.enter_context(connect(server, *bindings))
        cache = chosen.cache(kinds=ALL_KINDS - set(without or ()))
        run = _Ingestion(opened.enter_context(_Rejects(kept, console)))
        run.apply(stream, cache, db, console)
    run.print_summary()
    if run.rejects.count:
        raise typer.Exit(1)


discord.command()(fetch)


@discord.command()
def get(
    entity: Annotated[str, typer.Argument(metavar="ENTITY", help="As in message, member, guild.")],
    ids: Annotated[list[str], typer.Argument(metavar="ID", help="What identifies it.", show_default=False)],
    hydrate: Annotated[
        bool, typer.Option("--hydrate", help="Put users, members and messages in place of their ids.")
    ] = False,
    layout: LayoutOption = LayoutName.DRC,
    prefix: PrefixOption = None,
    url: UrlOption = None,
    embedded: EmbeddedOption = None,
) -> None:
    """Print an entity as JSON.

    As in `get message 123`, `get member GUILD USER`, `get channel GUILD CHANNEL`. With --layout spectacles
    some take other ids: `get message CHANNEL MESSAGE`, `get channel CHANNEL`. Tokens are printed as
    "(secret)".

    Exits with 1 when the entity is not stored, 2 when the layout has no entities of that name or they take
    other ids, 3 when the server cannot be reached.

    Examples:
        keywright discord get guild 613425648685547541
        keywright discord get member 613425648685547541 53908232506183680 --hydrate
        keywright discord get message 1234 5678 --layout spectacles
    """
    chosen = LAYOUTS[layout.value]
    reader = chosen.reader(hydrate=hydrate)
    call = reader.get(entity, *ids)
    with connect(server_url(url, embedded), *chosen.bind(prefix)) as db:
        found = db.run(call)
        is_empty = found is None and not db.run(reader.guild_ids())
    if found is None:
        echo_error(f"{entity} {' '.join(ids)} is not in the cache.")
        if is_empty:
            note("The cache has no guild at all. Is --prefix that of its gateway, and --layout?")
        raise typer.Exit(1)
    hidden = {name: "(secret)" for name in HIDDEN.get(entity, ()) if name in found}
    echo_json(as_json({**found, **hidden}))


@discord.command()
def purge(
    prefix: Annotated[
        str, typer.Option(help="The prefix of the names. May be empty for spectacles.", show_default=False)
    ],
    layout: Annotated[
        LayoutName, typer.Option("--layout", help="The layout of the cache.", show_default=False)
    ],
    url: UrlOption = None,
    embedded: EmbeddedOption = None,
    yes: Annotated[bool, typer.Option("--yes", help="Remove them. Without it, only count.")] = False,
) -> None:
    """Remove every key of one cache.

    Its private indexes are removed too; other prefixes, layouts and versions stay. Without --yes it counts
    the keys and changes nothing. Finds keys with SCAN and unlinks them in small batches, so the server stays
    responsive. Keys that are written meanwhile may stay. A gateway that fills this cache notices it within
    seconds, or at its next start, and fills it again.

    Exits with 0, or 3 when the server cannot be reached.

    Examples:
        keywright discord purge --prefix bot --layout drc
        keywright discord purge --prefix bot --layout drc --yes
    """
    chosen = LAYOUTS[layout.value]
    with connect(server_url(url, embedded), *chosen.bind(prefix)) as db:
        if not yes:
            with Meter() as meter:
                found = count_keys(db, *chosen.spaces, on_progress=meter.show)
            echo(f"{_keys(found)} would be removed. Give --yes to remove them.")
            return
        with Meter() as meter:
            removed = purge_keys(db, *chosen.spaces, on_progress=meter.show)
        for mark in db.scan(chosen.mark):  # of a gateway that began to fill it again before the end
            db.run(mark.delete())
        echo(f"{_keys(removed)} removed.")


class _Rejects:
    """The file of rejected lines, created on the first one and readable by its owner only: lines may hold
    tokens."""

    def __init__(self, path: Path, console: Console) -> None:
        self.path = path
        self.count = 0
        self._console = console
        self._file: IO[bytes] | None = None

    def add(self, line: Line) -> None:
        self.count += 1
        if self.count <= REPORTED_REJECTS:
            # Through the console, which keeps it apart from a progress bar.
            self._console.print(Text(printable(f"line {line.number}: {line.problem}")), soft_wrap=True)
        if self._file is None:
            self._file = self._create()
        text = line.text.decode("utf-8", "backslashreplace")
        record = {"line": line.number, "reason": line.problem, "text": text}
        self._file.write(msgspec.json.encode(record) + b"\n")

    def _create(self) -> IO[bytes]:
        try:
            return os.fdopen(os.open(self.path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "wb")
        except OSError as error:
            raise UsageError(
                f"{self.path} cannot be written: {error.strerror}. Name another file with --rejects."
            ) from error

    def __enter__(self) -> _Rejects:
        return self

    def __exit__(self, *exc: object) -> None:
        if self._file is not None:
            self._file.close()


class _Ingestion:
    """One run of `ingest`: lines in, counts out."""

    def __init__(self, rejects: _Rejects) -> None:
        self.rejects = rejects
        self.applied = self.ignored = 0
        self.seconds = 0.0

    def apply(self, stream: BinaryIO, cache: EventCache[Any], db: Database, console: Console) -> None:
        start = time.perf_counter()
        columns = (BarColumn(), DownloadColumn(), TransferSpeedColumn(), TimeRemainingColumn())
        with bar(*columns, console=console) as progress:
            task = progress.add_task("packets", total=_size(stream))
            for window in ingest_recording(stream, cache, db):
                self._count(window)
                progress.advance(task, sum(line.size for line in window))
        self.seconds = time.perf_counter() - start

    def _count(self, window: list[Line]) -> None:
        for line in window:
            if line.problem is not None:
                self.rejects.add(line)
            elif line.event is not None:
                self.applied += 1
            else:
                self.ignored += 1

    def print_summary(self) -> None:
        rejected = self.rejects.count
        lines = self.applied + self.ignored + rejected
        rate = round(lines / self.seconds) if self.seconds else 0
        echo(
            f"{lines:,} events in {self.seconds:.2f} s ({rate:,} a second): "
            f"{self.applied:,} applied, {self.ignored:,} ignored, {rejected:,} rejected."
        )
        if rejected:
            echo(f"Rejected lines are in {self.rejects.path}.", err=True)


def _expiries(given: Iterable[str]) -> Expiries:
    """Read KIND=DURATION. Raise UsageError for a kind or a duration that does not exist."""
    found = {}
    for each in given:
        name, _, text = each.partition("=")
        if name not in {kind.value for kind in Kind}:
            raise UsageError(f"--expiry must be KIND=DURATION, as in message=1h, got {each!r}.")
        found[Kind(name)] = None if text == NO_EXPIRY else duration(text)
    return found


def _size(stream: BinaryIO) -> int | None:
    """Return the bytes to come; None where that is unknown, as of a pipe."""
    try:
        return os.fstat(stream.fileno()).st_size or None
    except (OSError, ValueError):
        return None


def _keys(number: int) -> str:
    return f"{number:,} key" if number == 1 else f"{number:,} keys"
