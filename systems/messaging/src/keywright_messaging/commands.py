"""`keywright broker`: publish, consume and call from a shell, and see what was given up.

Standard output is JSON lines and nothing else; all that is told to people goes to standard error.
"""

from __future__ import annotations

import asyncio
import signal
import sys
from collections.abc import Sequence
from datetime import timedelta
from typing import Annotated, Any, NoReturn

import msgspec
import typer

from keywright_messaging import (
    BrokerSettings,
    Consumer,
    DeadLetter,
    Delivery,
    Encoding,
    decode,
    open_broker,
)
from keywright_messaging.errors import UndecodableError
from keywright_messaging.json_lines import JsonLines, not_json

__all__ = ["broker"]

broker = typer.Typer(
    help="Messages over RabbitMQ or Redis: publish, consume, call.",
    no_args_is_help=True,
    rich_markup_mode=None,
)

EventArgument = Annotated[str, typer.Argument(metavar="EVENT", help="As in MESSAGE_CREATE or SEND.")]
UrlOption = Annotated[
    str,
    typer.Option(
        "--broker",
        metavar="URL",
        envvar="BROKER_URL",
        help="As in amqp://localhost or redis://localhost.",
        show_default=False,
    ),
]
GroupOption = Annotated[str, typer.Option(envvar="BROKER_GROUP", help="The service whose events these are.")]
SubgroupOption = Annotated[str | None, typer.Option(help="Whose own copy of every message to read.")]
EncodingOption = Annotated[Encoding, typer.Option(help="How the bodies are written.")]
PrefixOption = Annotated[str, typer.Option(help="Redis: what the streams' names begin with.")]
ConnectOption = Annotated[float, typer.Option(min=0.1, metavar="SECONDS", help="How long to try to connect.")]

CONNECT_SECONDS = 10.0
GROUP = "gateway"


@broker.command()
def publish(
    event: EventArgument,
    url: UrlOption,
    group: GroupOption = GROUP,
    encoding: EncodingOption = Encoding.JSON,
    prefix: PrefixOption = "",
    connect_timeout: ConnectOption = CONNECT_SECONDS,
) -> None:
    """Publish the lines of standard input, each a JSON message.

    Declares the event's queue first, so that messages wait for a consumer. Lines are published in order while
    more are read; blank ones are skipped. Says how many were published, when the broker has them all safe.

    Exits with 0, 1 at a line that is not JSON or too large (those before it are published), 2 when it is
    called wrongly, 3 when the broker cannot be reached.
    """
    settings = _settings(group, prefix, connect_timeout, encoding=encoding)
    lines = JsonLines(sys.stdin.buffer, settings.max_body_bytes)
    asyncio.run(_publish_lines(url, settings, event, lines))
    if lines.fault:
        _refuse(f"{lines.fault}. Correct it, and send it and what follows.")


@broker.command()
def consume(
    events: Annotated[list[str], typer.Argument(metavar="EVENT…", help="As in MESSAGE_CREATE.")],
    url: UrlOption,
    group: GroupOption = GROUP,
    subgroup: SubgroupOption = None,
    count: Annotated[
        int | None, typer.Option(min=1, help="End after so many messages.", show_default=False)
    ] = None,
    prefetch: Annotated[int, typer.Option(min=1, help="How many may be received ahead.")] = 100,
    prefix: PrefixOption = "",
    connect_timeout: ConnectOption = CONNECT_SECONDS,
) -> None:
    """Print messages as {"event": …, "data": …}, one a line, until interrupted.

    A message is acknowledged after it was printed. What was not, because standard output was closed or the
    command was interrupted, stays in the queue. A message that cannot be decoded is told and put to the dead
    letters.

    Exits with 0, 1 when standard output was closed, 2 when it is called wrongly, 3 when the broker cannot be
    reached.
    """
    settings = _settings(group, prefix, connect_timeout)
    asyncio.run(_consume(url, settings, events, subgroup, min(prefetch, count or prefetch), count))


@broker.command()
def call(
    event: EventArgument,
    url: UrlOption,
    group: GroupOption = GROUP,
    timeout: Annotated[float, typer.Option(min=0, metavar="SECONDS", help="How long to wait.")] = 5.0,
    encoding: EncodingOption = Encoding.JSON,
    prefix: PrefixOption = "",
    connect_timeout: ConnectOption = CONNECT_SECONDS,
) -> None:
    """Publish the JSON on standard input, and print the reply.

    Exits with 0, 1 when the input is not JSON or the reply cannot be decoded, 2 when it is called wrongly,
    3 when no reply came in time or the broker cannot be reached.
    """
    settings = _settings(group, prefix, connect_timeout, encoding=encoding)
    text = sys.stdin.buffer.read().strip()
    if fault := not_json(text):
        _refuse(f"the input {fault}. Give one JSON value.")
    _write(_json(asyncio.run(_call(url, settings, event, text, timedelta(seconds=timeout)))))


@broker.command()
def dead(
    event: EventArgument,
    url: UrlOption,
    group: GroupOption = GROUP,
    subgroup: SubgroupOption = None,
    limit: Annotated[int, typer.Option(min=1, help="The most to print.")] = 100,
    prefix: PrefixOption = "",
    connect_timeout: ConnectOption = CONNECT_SECONDS,
) -> None:
    """Print an event's dead letters, the oldest first, one a line. Only reads.

    Each has the event, the reason, the attempts, when it was given up, and its data; a body that cannot be
    decoded is printed as base64 under "body" instead.

    Exits with 0, 2 when it is called wrongly, 3 when the broker cannot be reached.
    """
    settings = _settings(group, prefix, connect_timeout)
    for letter in asyncio.run(_dead_letters(url, settings, event, subgroup, limit)):
        _write(_json(_shown(letter)))


def _settings(group: str, prefix: str, connect_timeout: float, **more: Any) -> BrokerSettings:
    return BrokerSettings(
        group=group, prefix=prefix, connect_timeout=timedelta(seconds=connect_timeout), **more
    )


async def _publish_lines(url: str, settings: BrokerSettings, event: str, lines: JsonLines) -> None:
    published = 0
    async with await open_broker(url, settings) as opened:
        await opened.declare(event)
        try:
            async for messages in lines:
                published += len(await opened.publish_many(event, messages))
        finally:
            typer.echo(f"{_messages(published)} published.", err=True)


async def _consume(
    url: str,
    settings: BrokerSettings,
    events: Sequence[str],
    subgroup: str | None,
    prefetch: int,
    count: int | None,
) -> None:
    async with (
        await open_broker(url, settings) as opened,
        opened.consume(*events, subgroup=subgroup, prefetch=prefetch) as consumer,
    ):
        await _print_deliveries(consumer, prefetch, count)


async def _print_deliveries(consumer: Consumer, prefetch: int, count: int | None) -> None:
    interrupted = asyncio.create_task(_interruption())
    printed = 0
    while not interrupted.done() and (count is None or printed < count):
        wanted = prefetch if count is None else min(prefetch, count - printed)
        receiving = asyncio.ensure_future(consumer.batch(wanted))
        await asyncio.wait({receiving, interrupted}, return_when=asyncio.FIRST_COMPLETED)
        if not receiving.done():
            receiving.cancel()
            return
        # What was received is dealt with even after an interrupt: printed means acknowledged.
        printed += await _deal_with(consumer, receiving.result())
    interrupted.cancel()


async def _interruption() -> None:
    """Ends with the first SIGINT or SIGTERM; a second one acts as ever."""
    loop = asyncio.get_running_loop()
    signalled = asyncio.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, signalled.set)
    try:
        await signalled.wait()
    finally:
        for number in (signal.SIGINT, signal.SIGTERM):
            loop.remove_signal_handler(number)


async def _deal_with(consumer: Consumer, batch: Sequence[Delivery]) -> int:
    """Print and acknowledge; tell and reject what cannot be decoded. Returns how many were printed."""
    lines = [(delivery, _line(delivery)) for delivery in batch]
    shown = [delivery for delivery, line in lines if isinstance(line, bytes)]
    # In a thread: a reader that pauses must not stop the connection's heartbeat.
    await asyncio.to_thread(_write, b"".join(line for _, line in lines if isinstance(line, bytes)))
    await consumer.acknowledge_all(shown)
    for delivery, line in lines:
        if isinstance(line, UndecodableError):
            typer.echo(f"{delivery.event} {delivery.id} goes to the dead letters: {line}", err=True)
            await delivery.reject(str(line))
    return len(shown)


async def _call(url: str, settings: BrokerSettings, event: str, text: bytes, within: timedelta) -> Any:
    async with await open_broker(url, settings) as opened:
        return await opened.call(event, msgspec.Raw(text), within=within)


async def _dead_letters(
    url: str, settings: BrokerSettings, event: str, subgroup: str | None, limit: int
) -> list[DeadLetter]:
    async with await open_broker(url, settings) as opened:
        return await opened.dead_letters(event, subgroup=subgroup, limit=limit)


def _line(delivery: Delivery) -> bytes | UndecodableError:
    try:
        return _json({"event": delivery.event, "data": delivery.data})
    except UndecodableError as error:
        return error


def _shown(letter: DeadLetter) -> dict[str, Any]:
    shown: dict[str, Any] = {
        "event": letter.event,
        "reason": letter.reason,
        "attempts": letter.attempts,
        "at": letter.at,
    }
    try:
        return {**shown, "data": decode(letter.body)}
    except UndecodableError:
        return {**shown, "body": letter.body}


def _write(lines: bytes) -> None:
    sys.stdout.buffer.write(lines)
    sys.stdout.buffer.flush()


def _json(data: Any) -> bytes:
    """One line."""
    return msgspec.json.encode(data) + b"\n"


def _refuse(reason: str) -> NoReturn:
    typer.echo(f"error: {reason}", err=True)
    raise typer.Exit(1)


def _messages(number: int) -> str:
    return "1 message was" if number == 1 else f"{number:,} messages were"
