"""The names that installed distributions publish, without importing any of them: nothing here is slow.

`keywright.tools.plugins` loads what stands behind a name.
"""

from __future__ import annotations

from functools import cache
from importlib.metadata import EntryPoint, entry_points

__all__ = [
    "CATALOGUE",
    "COMMANDS",
    "MODELS",
    "command_names",
    "entries",
    "install_hint",
    "model_names",
    "program_names",
]

CATALOGUE = "keywright.catalogue"
MODELS = "keywright.models"
COMMANDS = "keywright.commands"

# Distributions that are published with Keywright, so that an error can say what to install.
_PUBLISHED = {
    "arq": "keywright-catalogue",
    "broker": "keywright-messaging",
    "bullmq": "keywright-catalogue",
    "celery": "keywright-catalogue",
    "discord": "keywright-discord",
    "django": "keywright-catalogue",
    "dramatiq": "keywright-catalogue",
    "drc": "keywright-discord",
    "flask-session": "keywright-catalogue",
    "gateway": "keywright-discord",
    "huey": "keywright-catalogue",
    "huey-priority": "keywright-catalogue",
    "limits": "keywright-catalogue",
    "limits-moving": "keywright-catalogue",
    "meetup": "keywright-meetup",
    "openmod": "keywright-openmod",
    "redis-om": "keywright-catalogue",
    "registry": "keywright-registry",
    "rq": "keywright-catalogue",
    "saq": "keywright-catalogue",
    "spectacles": "keywright-discord",
    "spectacles-streams": "keywright-messaging",
    "taskiq": "keywright-catalogue",
    "taskiq-streams": "keywright-catalogue",
    "up": "keywright-demo",
}


@cache
def entries(group: str) -> dict[str, EntryPoint]:
    """Return the entry points of a group by name."""
    return {entry.name: entry for entry in entry_points(group=group)}


def model_names() -> list[str]:
    """Return the names of the installed models."""
    return sorted(entries(MODELS))


def program_names() -> list[str]:
    """Return the names of the programs of the catalogue."""
    return sorted(entries(CATALOGUE))


def command_names() -> list[str]:
    """Return the names of the commands that installed distributions add."""
    return sorted(entries(COMMANDS))


def install_hint(name: str) -> str | None:
    """Return the install command of a published model or command, or None."""
    return f"pip install {_PUBLISHED[name]}" if name in _PUBLISHED else None
