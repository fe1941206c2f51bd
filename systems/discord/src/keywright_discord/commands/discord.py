"""`keywright discord`: feed a cache of Discord's state from recorded packets, look at it, remove it."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from contextlib import ExitStack
from enum import Enum
from pathlib import Path
from typing import IO, Annotated, Any, BinaryIO

import msgspec
import typer
from rich.console import Console
from rich.progress import BarColumn, DownloadColumn, TimeElapsedColumn
from rich.text import Text

from keywright import Database, connect
from keywright.cli.files import open_source
from keywright.cli.output import as_json
from keywright.cli.progress import bar
from keywright.cli.targets import ServerOption
from keywright.errors import UsageError
from keywright.tools.purger import count as count_keys
from keywright.tools.purger import purge as purge_keys
from keywright_discord.changes import Kind
from keywright_discord.event_cache import ALL_KINDS, EventCache
from keywright_discord.ingest import Ignored, Packet, Reject, apply_window, packets, windows
from keywright_discord.layouts import LAYOUTS, Layout

__all__ = ["discord"]

# What must not be printed: credentials, and the address that has one in it.
HIDDEN = {"interaction": ("token",), "webhook": ("token", "url")}
TOLD_REJECTS = 5

discord = typer.Typer(
    help="Discord's state in Redis, in the DRC or the Spectacles layout.",
    no_args_is_help=True,
    rich_markup_mode=None,
)


class LayoutName(Enum):
    DRC = "drc"
    SPECTACLES = "spectacles"


LayoutOption = Annotated[LayoutName, typer.Option("--layout", help="How the cache is laid out.")]
PrefixOption = Annotated[
    str | None,
    typer.Option(help="What the names begin with; else 'keywright' for drc and nothing for spectacles."),
]


@discord.command()
def ingest(
    source: Annotated[
        str,
        typer.Argument(metavar="FILE", help="The packets; - or none is standard input.", show_default=False),
    ] = "-",
    layout: LayoutOption = LayoutName.DRC,
    prefix: PrefixOption = None,
    url: ServerOption = None,
    without: Annotated[
        list[Kind] | None,
        typer.Option(help="Leave these out of the cache, as in --without presence.", show_default=False),
    ] = None,
    rejects: Annotated[
        Path | None,
        typer.Option(
            help="Where refused lines go; else FILE.rejects.jsonl, or discord.rejects.jsonl.",
            show_default=False,
        ),
    ] = None,
) -> None:
    """Apply gateway packets to a cache.

    They are {"op": 0, "t": …, "s": …, "d": …}, one a line, and applied in order. A line that cannot be
    applied does not stop the run: it is counted, kept with its number and the reason in the rejects
    file, which is made when there is one, and the first few are told. Packets that no cache keeps
    anything of are ignored.

    Exits with 0 when every line was applied or ignored, 1 when a line was refused, 2 when the packets cannot
    be read, 3 when the server cannot be reached.
    """
    kept = rejects or Path("discord.rejects.jsonl" if source == "-" else f"{source}.rejects.jsonl")
    if source != "-" and kept.exists() and Path(source).exists() and kept.samefile(source):
        raise UsageError("the rejects would overwrite the packets. Name another file with --rejects.")
    chosen = LAYOUTS[layout.value]
    console = Console(stderr=True, highlight=False)
    with ExitStack() as opened:
        stream = open_source(source, opened, "a file of packets")
        db = opened.enter_context(_connected(url, chosen, prefix))
        cache = chosen.cache(kinds=ALL_KINDS - set(without or ()))
        run = _Ingestion(cache, db, opened.enter_context(_Rejects(kept, console)))
        run.over(stream, console)
    run.print_summary()
    if run.rejects.count:
        raise typer.Exit(1)


@discord.command()
def get(
    entity: Annotated[str, typer.Argument(metavar="ENTITY", help="As in message, member, guild.")],
    ids: Annotated[list[str], typer.Argument(metavar="ID…", help="What identifies it.", show_default=False)],
    hydrate: Annotated[
        bool, typer.Option("--hydrate", help="Put users, members and messages in place of their ids.")
    ] = False,
    layout: LayoutOption = LayoutName.DRC,
    prefix: PrefixOption = None,
    url: ServerOption = None,
) -> None:
    """Print an entity as JSON.

    As in `get message 123`, `get member GUILD USER`, `get channel GUILD CHANNEL`. With --layout spectacles
    some take other ids: `get message CHANNEL MESSAGE`, `get channel CHANNEL`. Tokens are printed as
    "(secret)".

    Exits with 1 when there is no such entity, 2 when the layout has no entities of that name or they take
    other ids, 3 when the server cannot be reached.
    """
    chosen = LAYOUTS[layout.value]
    call = (chosen.hydrated if hydrate else chosen.reads)().get(entity, *ids)
    with _connected(url, chosen, prefix) as db:
        found = db.run(call)
    if found is None:
        typer.echo(f"there is no {entity} {' '.join(ids)}.", err=True)
        raise typer.Exit(1)
    hidden = {name: "(secret)" for name in HIDDEN.get(entity, ()) if name in found}
    typer.echo(as_json({**found, **hidden}))


@discord.command()
def purge(
    prefix: Annotated[
        str, typer.Option(help="What the names begin with. May be empty for spectacles.", show_default=False)
    ],
    layout: Annotated[
        LayoutName, typer.Option("--layout", help="How the cache is laid out.", show_default=False)
    ],
    url: ServerOption = None,
    yes: Annotated[bool, typer.Option("--yes", help="Remove them. Without it, only count.")] = False,
) -> None:
    """Remove every key of one cache.

    Its private indexes go too; other prefixes, layouts and versions stay. Without --yes it says how many
    keys there are and changes nothing. Finds keys with SCAN and unlinks them in small batches, so the
    server stays responsive. What is written meanwhile may stay.

    Exits with 0, or 3 when the server cannot be reached.
    """
    chosen = LAYOUTS[layout.value]
    with _connected(url, chosen, prefix) as db:
        if not yes:
            found = count_keys(db, *chosen.spaces)
            typer.echo(f"{_keys(found)} would be removed. Give --yes to remove them.")
            return
        typer.echo(f"{_keys(purge_keys(db, *chosen.spaces))} removed.")


class _Rejects:
    """The file of refused lines, made with the first of them, for its owner only: lines may hold tokens."""

    def __init__(self, path: Path, console: Console) -> None:
        self.path = path
        self.count = 0
        self._console = console
        self._file: IO[bytes] | None = None

    def add(self, reject: Reject) -> None:
        self.count += 1
        if self.count <= TOLD_REJECTS:
            # Through the console, which keeps it apart from a progress bar.
            self._console.print(Text(f"line {reject.line}: {reject.reason}"), soft_wrap=True)
        if self._file is None:
            self._file = self._made()
        self._file.write(msgspec.json.encode(reject) + b"\n")

    def _made(self) -> IO[bytes]:
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
    """One run: lines in, counts out."""

    def __init__(self, cache: EventCache[Any], db: Database, rejects: _Rejects) -> None:
        self.cache = cache
        self.db = db
        self.rejects = rejects
        self.lines = self.applied = self.ignored = 0
        self.seconds = 0.0

    def over(self, stream: BinaryIO, console: Console) -> None:
        start = time.perf_counter()
        columns = (BarColumn(), DownloadColumn(), TimeElapsedColumn())
        with bar(*columns, console=console) as progress:
            task = progress.add_task("packets", total=_size(stream))
            for window in windows(self._sorted_out(stream)):
                refused = self.db.run(apply_window(self.cache, window))
                self.applied += len(window) - len(refused)
                for reject in refused:
                    self.rejects.add(reject)
                progress.advance(task, sum(len(packet.text) + 1 for packet in window))
        self.seconds = time.perf_counter() - start

    def _sorted_out(self, stream: BinaryIO) -> Iterator[Packet]:
        """The packets; what is none of a cache's business is only counted."""
        for found in packets(stream):
            self.lines += 1
            if isinstance(found, Packet):
                yield found
            elif isinstance(found, Ignored):
                self.ignored += 1
            else:
                self.rejects.add(found)

    def print_summary(self) -> None:
        refused = self.rejects.count
        pace = round(self.lines / self.seconds) if self.seconds else 0
        typer.echo(
            f"{self.lines:,} events in {self.seconds:.2f} s ({pace:,} a second): "
            f"{self.applied:,} applied, {self.ignored:,} ignored, {refused:,} refused."
        )
        if refused:
            typer.echo(f"Refused lines are in {self.rejects.path}.", err=True)


def _connected(url: str | None, layout: Layout, prefix: str | None) -> Database:
    return connect(url, *layout.bind(prefix))


def _size(stream: BinaryIO) -> int | None:
    """Bytes to come, where that is known: not of a pipe."""
    try:
        return os.fstat(stream.fileno()).st_size or None
    except (OSError, ValueError):
        return None


def _keys(number: int) -> str:
    return f"{number:,} key" if number == 1 else f"{number:,} keys"
