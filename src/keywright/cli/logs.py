"""Logging of long-running commands."""

from __future__ import annotations

import logging
import sys
from typing import Any

from keywright.tools.terminal import printable

__all__ = ["log_to_stderr"]


class _Formatter(logging.Formatter):
    """One line for each message, and a traceback below it; nothing in them controls a terminal."""

    def formatMessage(self, record: logging.LogRecord) -> str:  # noqa: N802  # the name in logging
        return printable(super().formatMessage(record))

    def formatException(self, ei: Any) -> str:  # noqa: N802  # the name in logging
        return "\n".join(map(printable, super().formatException(ei).split("\n")))


def log_to_stderr(level: int = logging.INFO) -> None:
    """Send the log of Keywright to standard error, with the time."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(_Formatter("%(asctime)s %(levelname)s %(message)s"))
    logger = logging.getLogger("keywright")
    logger.handlers = [handler]
    logger.setLevel(level)
