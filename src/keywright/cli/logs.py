"""Logging of long-running commands."""

from __future__ import annotations

import logging
import sys

__all__ = ["log_to_stderr"]


def log_to_stderr(level: int = logging.INFO) -> None:
    """Send the log of Keywright to standard error, with the time."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(logging.Formatter("%(asctime)s %(levelname)s %(message)s"))
    logger = logging.getLogger("keywright")
    logger.handlers = [handler]
    logger.setLevel(level)
