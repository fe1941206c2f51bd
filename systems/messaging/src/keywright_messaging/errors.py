"""Errors of the brokers.

KeywrightError
├── UsageError
│   └── UnwritableError     a message that its encoding cannot write
└── BrokerError             a message broker refused, or could not be reached
    ├── BrokerUnreachableError  no connection, or it was lost and did not come back in time
    ├── QueueMismatchError  a queue or exchange exists already, declared differently
    ├── UnroutableError     nothing would have received the message
    ├── CallTimeoutError    no reply came in time
    └── UndecodableError    a body in none of the encodings, or not of the wanted type
"""

from __future__ import annotations

from keywright.errors import KeywrightError, UsageError

__all__ = [
    "BrokerError",
    "BrokerUnreachableError",
    "CallTimeoutError",
    "QueueMismatchError",
    "UndecodableError",
    "UnroutableError",
    "UnwritableError",
]


class UnwritableError(UsageError):
    """A message that its encoding cannot write, or that is too long; nothing was sent."""

    def __init__(self, encoding: str, reason: str) -> None:
        self.encoding = encoding
        self.reason = reason
        super().__init__(
            f"a message cannot be written as {encoding}: {reason}. Convert it, or choose another encoding."
        )


class BrokerError(KeywrightError):
    """A message broker refused, or could not be reached."""

    exit_code = 3


class BrokerUnreachableError(BrokerError):
    """No connection to the broker, or it was lost and did not come back in time."""

    def __init__(self, address: str, reason: str) -> None:
        self.address = address
        self.reason = reason
        super().__init__(
            f"the broker at {address} cannot be reached: {reason}. Check that it runs, and the URL."
        )


class QueueMismatchError(BrokerError):
    """A queue or exchange that is there already, declared with other arguments; nothing was changed."""

    def __init__(self, kind: str, name: str, reason: str) -> None:
        self.kind = kind
        self.name = name
        self.reason = reason
        super().__init__(
            f"the {kind} {name!r} is there already, declared differently: {reason}. "
            f"Declare it as it is (quorum on or off), or delete it once it is empty."
        )


class UnroutableError(BrokerError):
    """No queue would have received the message, so the broker did not keep it."""

    def __init__(self, group: str, event: str) -> None:
        self.group = group
        self.event = event
        super().__init__(
            f"nothing receives {event!r} of the group {group!r}: the message was not kept. "
            f"Call declare({event!r}) first, or start a consumer."
        )


class CallTimeoutError(BrokerError):
    """No reply came in time; the message may still be handled."""

    def __init__(self, event: str, seconds: float) -> None:
        self.event = event
        self.seconds = seconds
        super().__init__(f"no reply to {event!r} within {seconds:g} s. See whether a consumer of it replies.")


class UndecodableError(BrokerError):
    """A body in none of the encodings, or one that is not of the wanted type."""

    exit_code = 1

    def __init__(self, expected: str, found: str) -> None:
        self.expected = expected
        self.found = found
        super().__init__(
            f"a message body should be {expected}: {found}. Fix the publisher, or consume it as plain data."
        )
