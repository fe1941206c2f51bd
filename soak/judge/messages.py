"""Judges messages: each acknowledged one was handled, or is still in its queue or the dead letters."""

from __future__ import annotations

import asyncio
import json
from collections import Counter
from collections.abc import Iterable
from pathlib import Path

import aio_pika

from soak.judge.findings import Findings
from soak.judge.logs import OK, attempts
from soak.judge.raw import client

__all__ = ["handled", "judge_messages", "queued_in_rabbitmq", "queued_in_streams"]

_MOST_PENDING = 100_000


def judge_messages(published: Path, worked: Path, queued: Iterable[str]) -> Findings:
    """Judge by the logs of the publisher and the workers, and the messages that were left."""
    findings = Findings()
    received, left = handled(worked), set(queued)
    sent = set()
    for attempt in attempts([published]):
        sent.add(attempt.item)
        if attempt.outcome != OK:
            findings.error(attempt.error)
            continue
        findings.acknowledged += 1
        if attempt.item not in received and attempt.item not in left:
            findings.lose(f"message {attempt.item}")
    for item in received.keys() - sent:
        findings.violate(f"message {item} was received, but never published")
    for attempt in attempts([worked]):
        if attempt.error:
            findings.error(f"{attempt.error} (worker)")
    findings.repeated = sum(times - 1 for times in received.values())
    if left:
        findings.notes.append(f"{len(left)} messages still queued or in the dead letters")
    return findings


def handled(worked: Path) -> Counter[str]:
    """Return how often each message was handled."""
    return Counter(each.item for each in attempts([worked]) if each.outcome == OK)


def queued_in_rabbitmq(url: str, *queues: str, field: str = "number") -> set[str]:
    """Take every message out of these queues, and return the numbers."""

    async def drain() -> set[str]:
        found = set()
        async with await aio_pika.connect(url) as connection:
            channel = await connection.channel()
            for name in queues:
                queue = await channel.get_queue(name, ensure=False)
                while (message := await queue.get(no_ack=True, fail=False)) is not None:
                    found.add(str(json.loads(message.body)[field]))
        return found

    return asyncio.run(drain())


def queued_in_streams(port: int, stream: str, group: str, *, field: str = "number") -> set[str]:
    """Return the numbers of the entries that a group has not settled, and of its dead letters."""
    with client(port) as server:
        groups = {each["name"]: each for each in server.xinfo_groups(stream)}
        delivered = groups[group.encode()]["last-delivered-id"].decode()
        entries = [*server.xrange(stream, min=f"({delivered}"), *server.xrange(f"{{{stream}}}:{group}:dead")]
        for pending in server.xpending_range(stream, group, "-", "+", _MOST_PENDING):
            entries += server.xrange(stream, pending["message_id"], pending["message_id"])
    return {str(json.loads(fields[b"data"])[field]) for _, fields in entries}
