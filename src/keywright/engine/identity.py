"""The library as CLIENT LIST shows it: CLIENT SETINFO, which servers have since Redis 7.2."""

from __future__ import annotations

from importlib.metadata import PackageNotFoundError, version
from typing import Any

__all__ = ["IDENTITY"]

NAME = "keywright"


def _version() -> str:
    try:
        return version(NAME)
    except PackageNotFoundError:  # run from a folder that is not installed
        return "0"


def _identity() -> dict[str, Any]:
    """Return the options of redis-py that name the library; a server that refuses them is tolerated."""
    try:
        from redis.driver_info import DriverInfo
    except ImportError:  # redis-py before 7.2
        return {"lib_name": NAME, "lib_version": _version()}
    return {"driver_info": DriverInfo(name=NAME, lib_version=_version())}


IDENTITY = _identity()
