"""Errors of the brokers.

KeywrightError
├── UsageError
│   └── UnwritableError     a message that cannot be encoded
└── BrokerError             the broker refused an operation, or is unreachable
    ├── BrokerUnreachableError  no connection, or a lost one was not restored in time
    ├── QueueMismatchError  a queue or exchange exists with other arguments
    ├── UnroutableError     no queue receives the message
    ├── CallTimeoutError    no reply in time
    └── UndecodableError    a malformed body, or one of another type
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
    """A message that cannot be encoded; it was not sent."""

    def __init__(self, encoding: str, reason: str) -> None:
        self.encoding = encoding
        self.reason = reason
        super().__init__(
            f"a message cannot be encoded as {encoding}: {reason}. Convert it, or choose another encoding."
        )


class BrokerError(KeywrightError):
    """The broker refused an operation, or is unreachable."""

    exit_code = 3


class BrokerUnreachableError(BrokerError):
    """No connection to the broker, or a lost one was not restored in time."""

    def __init__(self, address: str, reason: str) -> None:
        self.address = address
        self.reason = reason
        super().__init__(
            f"the broker at {address} cannot be reached: {reason}. Check that it runs, and the URL."
        )


class QueueMismatchError(BrokerError):
    """A queue or exchange that exists with other arguments; it was not changed."""

    def __init__(self, kind: str, name: str, reason: str) -> None:
        self.kind = kind
        self.name = name
        self.reason = reason
        super().__init__(
            f"the {kind} {name!r} exists with other arguments: {reason}. "
            f"Declare it with the same arguments (quorum on or off), or delete it when it is empty."
        )


class UnroutableError(BrokerError):
    """No queue receives the message, so the broker did not keep it."""

    def __init__(self, group: str, event: str) -> None:
        self.group = group
        self.event = event
        super().__init__(
            f"no queue receives {event!r} of the group {group!r}: the message was not kept. "
            f"Call declare({event!r}) first, or start a consumer."
        )


class CallTimeoutError(BrokerError):
    """No reply in time; the message may still be handled."""

    def __init__(self, event: str, seconds: float) -> None:
        self.event = event
        self.seconds = seconds
        super().__init__(f"no reply to {event!r} within {seconds:g} s. Check that a consumer of it replies.")


class UndecodableError(BrokerError):
    """A malformed body, or one that is not of the expected type."""

    exit_code = 1

    def __init__(self, expected: str, found: str) -> None:
        self.expected = expected
        self.found = found
        super().__init__(
            f"a message body must be {expected}, got {found}. Fix the publisher, or consume it as plain data."
        )
