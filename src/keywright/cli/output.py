"""JSON output of commands."""

from __future__ import annotations

import json
import sys
from typing import Any

__all__ = ["as_json"]


def as_json(data: Any) -> str:
    return json.dumps(data, indent=2, ensure_ascii=not _prints_unicode(), allow_nan=False)


def _prints_unicode() -> bool:
    return (sys.stdout.encoding or "").lower().replace("-", "") == "utf8"
