"""The generators by name: those of the library, and those of installed distributions."""

from __future__ import annotations

from importlib import import_module
from importlib.metadata import entry_points

from keywright.errors import KeywrightError, UsageError
from keywright.tools.generators.generator import Generator

__all__ = ["GROUP", "generator_summaries", "load_generator"]

GROUP = "keywright.generators"
_OWN = {
    "acl": "acl",
    "asyncapi": "asyncapi",
    "dbml": "dbml",
    "grafana": "grafana",
    "json-schema": "json_schema",
    "mermaid": "mermaid",
    "prometheus": "prometheus",
    "redis-exporter": "redis_exporter",
    "schema": "schema",
    "typescript": "typescript",
}


def generator_summaries() -> dict[str, str]:
    """Return all generators with their summaries. One that cannot be loaded has its error for a summary."""
    found = {}
    for name in sorted({*_OWN, *entry_points(group=GROUP).names}):
        try:
            found[name] = load_generator(name).summary
        except UsageError as error:
            found[name] = str(error)
    return found


def load_generator(name: str) -> Generator:
    """Return the generator of that name. Raise UsageError if there is none, or if it cannot be loaded."""
    if name in _OWN:
        own: Generator = import_module(f"keywright.tools.generators.{_OWN[name]}").GENERATOR
        return own
    entries = entry_points(group=GROUP)
    if name not in entries.names:
        known = ", ".join(sorted({*_OWN, *entries.names}))
        raise UsageError(f"there is no generator {name!r}. Use one of {known}.")
    entry = entries[name]
    try:
        found = entry.load()
    except KeywrightError:
        raise
    except Exception as error:
        raise UsageError(
            f"the generator {name!r} cannot be loaded: {type(error).__name__}: {error}. "
            "Upgrade or uninstall its distribution."
        ) from error
    if not isinstance(found, Generator):
        what = f"a {type(found).__name__}, not a Generator"
        raise UsageError(f"the entry point {name!r} of {GROUP} is {what}.")
    return found
