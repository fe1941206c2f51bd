"""`keywright broker`: publish, consume and call from a shell; list, replay and drop dead letters.

Standard output has JSON lines only; messages for people go to standard error.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Sequence
from datetime import timedelta
from typing import Annotated, Any, NoReturn

import msgspec
import typer

from keywright.cli import echo, echo_error, echo_json
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
from keywright_service.signals import stop_on_signals
from keywright_service.waits import unless

__all__ = ["broker"]

broker = typer.Typer(
    help="Messages over RabbitMQ or Redis: publish, consume, call, replay dead letters.",
    no_args_is_help=True,
    rich_markup_mode=None,
)

dead = typer.Typer(
    help="Dead letters: list, replay or drop the messages that failed for the last time.",
    no_args_is_help=True,
    rich_markup_mode=None,
)
broker.add_typer(dead, name="dead")

EventArgument = Annotated[str, typer.Argument(metavar="EVENT", help="An event, as MESSAGE_CREATE or SEND.")]
UrlOption = Annotated[
    str,
    typer.Option(
        "--broker",
        metavar="URL",
        envvar=["BROKER_URL", "AMQP_URL", "REDIS_URL"],
        help="The broker, as amqp://localhost or redis://localhost.",
        show_default=False,
    ),
]
GroupOption = Annotated[
    str, typer.Option(envvar="BROKER_GROUP", help="The service that publishes the events.")
]
SubgroupOption = Annotated[str | None, typer.Option(help="The subgroup whose copy of the messages to read.")]
EncodingOption = Annotated[Encoding, typer.Option(help="The encoding of the bodies.")]
PrefixOption = Annotated[
    str, typer.Option(envvar="BROKER_PREFIX", help="Redis: the prefix of the stream names.")
]
ConnectOption = Annotated[
    float, typer.Option(min=0.1, metavar="SECONDS", help="The timeout of the connection.")
]

LettersOption = Annotated[
    int | None, typer.Option(min=1, help="The most to take; else all.", show_default=False)
]

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

    Declares the event's queue first, so that messages wait for a consumer. Publishes lines in order while it
    reads more; skips blank ones. Reports the number of published messages when the broker has confirmed all.

    Exits with 0, 1 at a line that is not JSON or too large (the lines before it are published), 2 for wrong
    arguments, 3 if the broker is unreachable.

    Examples:
        keywright broker publish SEND --broker redis://localhost < messages.jsonl
    """
    settings = _settings(group, prefix, connect_timeout, encoding=encoding)
    lines = JsonLines(sys.stdin.buffer, settings.max_body_bytes)
    asyncio.run(_publish_lines(url, settings, event, lines))
    if lines.fault:
        _refuse(f"{lines.fault}. Correct it, then publish it and the lines after it.")


@broker.command()
def consume(
    events: Annotated[list[str], typer.Argument(metavar="EVENT", help="Events, as MESSAGE_CREATE.")],
    url: UrlOption,
    group: GroupOption = GROUP,
    subgroup: SubgroupOption = None,
    count: Annotated[
        int | None, typer.Option(min=1, help="Stop after this number of messages.", show_default=False)
    ] = None,
    prefetch: Annotated[int, typer.Option(min=1, help="The number of messages to receive ahead.")] = 100,
    prefix: PrefixOption = "",
    connect_timeout: ConnectOption = CONNECT_SECONDS,
) -> None:
    """Print messages as {"event": …, "data": …}, one per line, until interrupted.

    Acknowledges a message after it was printed. A message that was not printed, because standard output was
    closed or the command was interrupted, stays in the queue. A message that cannot be decoded is reported
    and becomes a dead letter.

    Exits with 0, 1 if standard output was closed, 2 for wrong arguments, 3 if the broker is unreachable.

    Examples:
        keywright broker consume MESSAGE_CREATE --broker amqp://localhost --count 10
    """
    settings = _settings(group, prefix, connect_timeout)
    asyncio.run(_consume(url, settings, events, subgroup, min(prefetch, count or prefetch), count))


@broker.command()
def call(
    event: EventArgument,
    url: UrlOption,
    group: GroupOption = GROUP,
    timeout: Annotated[float, typer.Option(min=0, metavar="SECONDS", help="The timeout of the reply.")] = 5.0,
    encoding: EncodingOption = Encoding.JSON,
    prefix: PrefixOption = "",
    connect_timeout: ConnectOption = CONNECT_SECONDS,
) -> None:
    """Publish the JSON on standard input, and print the reply.

    Exits with 0, 1 if the input is not JSON or the reply cannot be decoded, 2 for wrong arguments, 3 if
    there was no reply in time or the broker is unreachable.

    Examples:
        echo '{"guild": 1}' | keywright broker call SEND --broker redis://localhost
    """
    settings = _settings(group, prefix, connect_timeout, encoding=encoding)
    text = sys.stdin.buffer.read().strip()
    if fault := not_json(text):
        _refuse(f"the input {fault}. Give one JSON value.")
    _write(_json(asyncio.run(_call(url, settings, event, text, timedelta(seconds=timeout)))))


@dead.command("list")
def list_letters(
    event: EventArgument,
    url: UrlOption,
    group: GroupOption = GROUP,
    subgroup: SubgroupOption = None,
    limit: Annotated[int, typer.Option(min=1, help="The largest number to print.")] = 100,
    prefix: PrefixOption = "",
    connect_timeout: ConnectOption = CONNECT_SECONDS,
) -> None:
    """Print the dead letters of an event, the oldest first, one per line. Only reads.

    Each has the event, the reason, the attempts, the time of its failure, and its data; a body that cannot be
    decoded is printed as base64 under "body" instead.

    Exits with 0, 2 for wrong arguments, 3 if the broker is unreachable.

    Examples:
        keywright broker dead list MESSAGE_CREATE --broker redis://localhost
    """
    settings = _settings(group, prefix, connect_timeout)
    for letter in asyncio.run(_dead_letters(url, settings, event, subgroup, limit)):
        _write(_json(_shown(letter)))


@dead.command()
def replay(
    event: EventArgument,
    url: UrlOption,
    group: GroupOption = GROUP,
    subgroup: SubgroupOption = None,
    limit: LettersOption = None,
    prefix: PrefixOption = "",
    connect_timeout: ConnectOption = CONNECT_SECONDS,
) -> None:
    """Return dead letters to the queue that they came from, the oldest first, as if published now.

    Only the group, or the subgroup, whose dead letters they are receives them. Takes those that there are at
    the start: one that fails again is not replayed again. A letter is removed when the broker has confirmed
    it in its queue, so an interruption may duplicate messages and loses none.

    Exits with 0, 2 for wrong arguments, 3 if the broker is unreachable.

    Examples:
        keywright broker dead replay MESSAGE_CREATE --broker redis://localhost
    """

    async def replayed() -> int:
        async with await open_broker(url, _settings(group, prefix, connect_timeout)) as opened:
            return await opened.replay_dead_letters(event, subgroup=subgroup, limit=limit)

    echo(f"{_letters(asyncio.run(replayed()))} returned to the queue.", err=True)


@dead.command()
def drop(
    event: EventArgument,
    url: UrlOption,
    group: GroupOption = GROUP,
    subgroup: SubgroupOption = None,
    limit: LettersOption = None,
    yes: Annotated[bool, typer.Option("--yes", help="Remove them. Without it, only count.")] = False,
    prefix: PrefixOption = "",
    connect_timeout: ConnectOption = CONNECT_SECONDS,
) -> None:
    """Remove dead letters, the oldest first. Without --yes it counts them and changes nothing.

    Exits with 0, 2 for wrong arguments, 3 if the broker is unreachable.

    Examples:
        keywright broker dead drop MESSAGE_CREATE --broker redis://localhost
        keywright broker dead drop MESSAGE_CREATE --broker redis://localhost --yes
    """

    async def counted() -> int:
        async with await open_broker(url, _settings(group, prefix, connect_timeout)) as opened:
            if yes:
                return await opened.drop_dead_letters(event, subgroup=subgroup, limit=limit)
            there = await opened.count_dead_letters(event, subgroup=subgroup)
            return there if limit is None else min(there, limit)

    number = asyncio.run(counted())
    if yes:
        echo(f"{_letters(number)} removed.", err=True)
    else:
        letters = "1 dead letter" if number == 1 else f"{number:,} dead letters"
        echo(f"{letters} would be removed. Give --yes to remove them.", err=True)


def _settings(group: str, prefix: str, connect_timeout: float, **more: Any) -> BrokerSettings:
    return BrokerSettings(
        group=group, prefix=prefix, connect_timeout=timedelta(seconds=connect_timeout), **more
    )


async def _publish_lines(url: str, settings: BrokerSettings, event: str, lines: JsonLines) -> None:
    published = 0
    async with await open_broker(url, settings) as opened:
        await opened.declare(event)
        try:
            async for batch in lines:
                published += len(await opened.publish_many(event, batch))
        finally:
            messages = "1 message was" if published == 1 else f"{published:,} messages were"
            echo(f"{messages} published.", err=True)


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
    interrupted, printed = asyncio.Event(), 0
    with stop_on_signals(interrupted.set):
        while not interrupted.is_set() and (count is None or printed < count):
            wanted = prefetch if count is None else min(prefetch, count - printed)
            # A received batch is printed and acknowledged even after an interrupt.
            if (batch := await unless(interrupted, consumer.batch(wanted))) is not None:
                printed += await _deal_with(consumer, batch)


async def _deal_with(consumer: Consumer, batch: Sequence[Delivery]) -> int:
    """Print and acknowledge a batch; report and reject what cannot be decoded. Return the number printed."""
    lines = [(delivery, _line(delivery)) for delivery in batch]
    shown = [delivery for delivery, line in lines if isinstance(line, bytes)]
    # In a thread: a slow reader of standard output must not stop the connection's heartbeat.
    await asyncio.to_thread(_write, b"".join(line for _, line in lines if isinstance(line, bytes)))
    await consumer.acknowledge_all(shown)
    for delivery, line in lines:
        if isinstance(line, UndecodableError):
            echo(f"{delivery.event} {delivery.id} becomes a dead letter: {line}", err=True)
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


def _letters(number: int) -> str:
    return "1 dead letter was" if number == 1 else f"{number:,} dead letters were"


def _write(lines: bytes) -> None:
    echo_json(lines, nl=False)


def _json(data: Any) -> bytes:
    """Return data as one line of JSON."""
    return msgspec.json.encode(data) + b"\n"


def _refuse(reason: str) -> NoReturn:
    echo_error(reason)
    raise typer.Exit(1)
