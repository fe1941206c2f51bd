"""Logging of long-running commands."""

from __future__ import annotations

import logging
import sys
from datetime import UTC, datetime
from json import dumps
from typing import TYPE_CHECKING, Any, TextIO

from keywright.tools.terminal import printable

__all__ = ["StderrHandler", "log_to_stderr"]

if TYPE_CHECKING:
    _StreamHandler = logging.StreamHandler[TextIO]
else:
    _StreamHandler = logging.StreamHandler


class StderrHandler(_StreamHandler):
    """Writes to standard error as it is at the time of the message."""

    def format(self, record: logging.LogRecord) -> str:
        self.stream = sys.stderr
        return super().format(record)


class _Formatter(logging.Formatter):
    """One line for each message, and a traceback below it; nothing in them controls a terminal."""

    def formatMessage(self, record: logging.LogRecord) -> str:  # noqa: N802  # the name in logging
        return printable(super().formatMessage(record))

    def formatException(self, ei: Any) -> str:  # noqa: N802  # the name in logging
        return "\n".join(map(printable, super().formatException(ei).split("\n")))

    def format(self, record: logging.LogRecord) -> str:
        record.exc_text = None  # another handler's, which may have kept control characters
        return super().format(record)


class _JsonFormatter(logging.Formatter):
    """One JSON object on each line: time, level, logger, message, and a traceback as `exception`."""

    def format(self, record: logging.LogRecord) -> str:
        line = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage(),
        }
        if record.exc_info:
            line["exception"] = self.formatException(record.exc_info)
        return dumps(line)  # ASCII, so that nothing in it controls a terminal


def log_to_stderr(level: int = logging.INFO, *, json: bool = False) -> None:
    """Send the log of Keywright to standard error, and warnings of other packages, with the time."""
    handler = StderrHandler()
    handler.setFormatter(_JsonFormatter() if json else _Formatter("%(asctime)s %(levelname)s %(message)s"))
    root, ours = logging.getLogger(), logging.getLogger("keywright")
    root.handlers = [each for each in root.handlers if not isinstance(each, StderrHandler)] + [handler]
    root.setLevel(max(level, logging.WARNING))
    ours.setLevel(level)
