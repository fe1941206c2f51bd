"""`keywright tour`: the sample of the design, declared, proved and run on a server of its own."""

from __future__ import annotations

import inspect
import textwrap
from datetime import UTC, datetime
from typing import Any

import msgspec
from rich.console import Console
from rich.syntax import Syntax
from rich.text import Text

from keywright.engine import Database, EmbeddedServer, connect
from keywright.errors import KeywrightError
from keywright.keyspace import Call, Id, Keyspace, Record, Set, Value, gather, many_to_one, preview
from keywright.keyspace.call import inside
from keywright.tools.check import prove

__all__ = ["take_tour", "tour"]

meetup = Keyspace("meetup", "State of a bot that ties Meetup events to Discord channels.")


class EventDetails(msgspec.Struct):
    name: str
    time: datetime
    link: str


class MeetupEvent(Record[EventDetails], key="meetup_event:<event>", space=meetup):
    """A tracked Meetup event."""

    event: Id


class EventSeriesOf(Value[Id], key="meetup_event:<event>:event_series", space=meetup, part_of=MeetupEvent):
    """The series an event belongs to."""

    event: Id


class SeriesEvents(Set[Id], key="event_series:<series>:meetup_events", space=meetup):
    """The tracked events of a series."""

    series: Id


event_series = many_to_one(EventSeriesOf, inverse=SeriesEvents)

DOCUMENTATION = "docs/ in the repository, and the docstrings of keywright"


def tour() -> None:
    """Walk through Keywright on a small sample, on a private server that is removed afterwards.

    Examples:
        keywright tour
    """
    take_tour()


def take_tour(console: Console | None = None) -> None:
    """Print the tour; its server and data are removed at the end."""
    out = console or Console(highlight=False)
    _line(out, ("Keywright", "bold"), ": the Redis data model as code.")
    out.print()
    _declare(out)
    _prove(out)
    # A server of its own even where REDIS_URL is set: a tour must not write to anyone's data.
    with EmbeddedServer() as server, connect(server.url) as db:
        _line(out, (f"{db.server().product} {db.server().version}, started for this tour", "dim"))
        out.print()
        _write_and_read(out, db)
        _relate(out, db)
        _err(out, db)
        _scan(out, db)
    out.print("The server is stopped, and nothing is left of it.\n")
    out.print("Next:  keywright check MODULE:ATTRIBUTE   proves your own keyspace")
    out.print("       keywright get MODULE:ATTRIBUTE KEY shows what a key stores")
    out.print(f"Read:  {DOCUMENTATION}")


def _declare(out: Console) -> None:
    _title(out, 1, "Declare: a key is a type")
    for kind in meetup:
        _code(out, inspect.getsource(kind))
        out.print()
    _code(out, "event_series = many_to_one(EventSeriesOf, inverse=SeriesEvents)")
    out.print()


def _prove(out: Console) -> None:
    _title(out, 2, "Check: proved before any server is reached")
    report = prove(meetup)
    for proof in report.proofs:
        _line(out, ("  proved  ", "green"), proof.statement)
    for finding in report.findings:
        _line(out, ("  note    ", "yellow"), finding.reason)
    out.print()


def _write_and_read(out: Console, db: Database) -> None:
    _title(out, 3, "Run: an operation is a value, a batch is one round trip")
    details = EventDetails("Redis night", datetime(2019, 8, 8, 17, 30, tzinfo=UTC), "https://meetu.ps/e/abc")
    write = MeetupEvent("abc").put(details)
    _code(out, 'write = MeetupEvent("abc").put(details)')
    _commands(out, write)
    db.run(write)
    read = gather(MeetupEvent("abc").get(), MeetupEvent("abc").ttl(), SeriesEvents("s1").members())
    _code(
        out,
        'db.run(gather(MeetupEvent("abc").get(), MeetupEvent("abc").ttl(), SeriesEvents("s1").members()))',
    )
    _commands(out, read)
    for value in db.run(read):
        _result(out, value)
    out.print()


def _relate(out: Console, db: Database) -> None:
    _title(out, 4, "Relate: both directions, all or nothing")
    _code(out, 'db.run(event_series.assign("abc", "s1"))')
    _result(out, db.run(event_series.assign("abc", "s1")))
    _code(out, 'db.run(gather(event_series.of("abc"), event_series.inverse_of("s1")))')
    _result(out, db.run(gather(event_series.of("abc"), event_series.inverse_of("s1"))))
    out.print()


def _err(out: Console, db: Database) -> None:
    _title(out, 5, "Err: a mistake says what to do")
    _code(out, 'MeetupEvent("abc:event_series")')
    try:
        MeetupEvent("abc:event_series")
    except KeywrightError as error:
        _mistake(out, error)
    _code(out, 'db.run(event_series.assign("abc", "s2"))')
    try:
        db.run(event_series.assign("abc", "s2"))
    except KeywrightError as error:
        _mistake(out, error)
    out.print()


def _scan(out: Console, db: Database) -> None:
    _title(out, 6, "Scan: names parse back to keys")
    for kind in meetup:
        for key in db.scan(kind):
            _line(out, "  ", f"{db.context.name(key).decode():36}", (repr(key), "dim"))
    out.print()


def _title(out: Console, number: int, text: str) -> None:
    _line(out, (f"{number}. {text}", "bold cyan"))
    out.print()


def _code(out: Console, source: str) -> None:
    syntax = Syntax("", "python", theme="ansi_dark", background_color="default")
    _line(out, syntax.highlight(textwrap.indent(source.strip(), "  ")))


def _commands(out: Console, call: Call[Any]) -> None:
    for wire in preview(call):
        for command in inside(wire):
            _line(out, ("    sends  ", "dim"), " ".join(map(_word, command)))


def _word(argument: object) -> str:
    text = argument.decode() if isinstance(argument, bytes) else str(argument)
    return f'"{text}"' if " " in text else text


def _result(out: Console, value: object) -> None:
    _line(out, ("    gives  ", "dim"), (repr(value), "green"))


def _mistake(out: Console, error: KeywrightError) -> None:
    _line(out, "    ", (type(error).__name__, "red"), f": {error}")


def _line(out: Console, *parts: str | Text | tuple[str, str]) -> None:
    # As Text, so that rich takes no ":abc:" in a key name for an emoji and no "[x]" for a style.
    line = Text.assemble(*parts)
    line.rstrip()
    out.print(line, soft_wrap=True)
