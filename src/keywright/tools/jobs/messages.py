"""Messages between a process and its workers: length, number and state, then bytes of the job."""

from __future__ import annotations

import struct
from enum import IntEnum
from typing import NamedTuple

import msgspec

__all__ = ["HEADER", "Message", "Start", "State", "packed"]

HEADER = struct.Struct(">IQB")


class State(IntEnum):
    """What a message is."""

    DONE = 0
    """A request, or the reply to it."""
    ERROR = 1
    """An error of Keywright that the request raised."""
    DEFECT = 2
    """Another error, as text: a defect of a program."""


class Message(NamedTuple):
    """One message; a reply has the number of its request."""

    number: int
    state: State
    content: bytes


def packed(message: Message) -> bytes:
    return HEADER.pack(len(message.content), message.number, message.state) + message.content


class Start(msgspec.Struct):
    """The first request to a worker: what to import, what to open, and the job with its options."""

    job: str
    path: list[str]
    """The folders that modules are imported from, as in the first process."""
    model: str
    places: list[int]
    """The places of the keyspaces in the model."""
    source: str
    prefix: str | None
    database: int | None
    options: bytes
