"""What configuring a service means: a TOML file, and environment variables, which win.

What cannot be understood is an error before anything is connected: an unknown name or a wrong value is never
passed over. A service takes its secrets out of what was given before it converts the rest, so that no error
of conversion can quote one.
"""

from __future__ import annotations

import os
import re
import tomllib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import timedelta
from difflib import get_close_matches
from pathlib import Path
from typing import Any, TypeVar, get_type_hints

import msgspec

from keywright.errors import UsageError

__all__ = ["ConfigurationError", "Part", "SettingsReader", "Variables", "duration", "names"]

T = TypeVar("T")

Variables = Mapping[str, tuple[str, Callable[[str], Any]]]
"""A variable, the setting it stands for, and how its text is read; ValueError where it cannot be."""

_UNITS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0}
_PART = r"(\d+(?:\.\d+)?)(ms|s|m|h)"
_parts = re.compile(_PART).findall
_whole = re.compile(f"(?:{_PART})+").fullmatch
_PASSWORD = re.compile(r"://[^'\"]*@")


class ConfigurationError(UsageError):
    """A configuration that cannot be used; nothing was connected."""

    def __init__(self, subject: str, reason: str, remedy: str) -> None:
        self.subject = subject
        self.reason = reason
        self.remedy = remedy
        super().__init__(f"{subject}: {reason}. {remedy}")


class Part(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Settings that belong together, a table of the file. Passwords in addresses are not shown."""

    def __repr__(self) -> str:
        values = ((name, repr(getattr(self, name))) for name in self.__struct_fields__)
        shown = ", ".join(f"{name}={_PASSWORD.sub('://…@', value)}" for name, value in values)
        return f"{type(self).__name__}({shown})"


@dataclass(frozen=True)
class SettingsReader:
    """How the settings of one service are written: `shape` names them, its structs are the file's tables."""

    shape: type[msgspec.Struct]
    variables: Variables
    document: str
    """Where a person reads about them."""

    def given(self, path: Path | None, environment: Mapping[str, str] | None) -> dict[str, Any]:
        """All that is set, by the names of the shape, not yet converted. No environment is the process's."""
        given = _from_file(path) if path is not None else {}
        self._refuse_unknown(given, self.shape, "")
        for name, (place, read) in self.variables.items():
            text = (os.environ if environment is None else environment).get(name, "").strip()
            if text:
                _put(given, place, self._read(name, text, read))
        return given

    def convert(self, value: Any, shape: type[T], subject: str, *, strict: bool = True) -> T:
        """The value as a type, by msgspec's rules."""
        try:
            return msgspec.convert(value, shape, strict=strict)
        except msgspec.ValidationError as error:
            raise ConfigurationError(subject, str(error), f"See {self.document}.") from error

    def _refuse_unknown(self, given: Mapping[str, Any], shape: type[msgspec.Struct], where: str) -> None:
        hints = get_type_hints(shape)
        for name, value in given.items():
            setting = f"{where}{name}"
            if name not in hints:
                near = get_close_matches(name, list(hints), 1, cutoff=0.0)[0]
                remedy = f"The nearest is {where}{near}; see {self.document}."
                raise ConfigurationError(setting, "is not a setting", remedy)
            inner = hints[name]
            if isinstance(inner, type) and issubclass(inner, msgspec.Struct):
                if not isinstance(value, Mapping):
                    raise ConfigurationError(setting, "is a table", f"Write it as [{setting}].")
                self._refuse_unknown(value, inner, f"{setting}.")

    def _read(self, name: str, text: str, read: Callable[[str], Any]) -> Any:
        try:
            return read(text)
        except ValueError as error:
            raise ConfigurationError(name, f"cannot be read ({error})", f"See {self.document}.") from error


def duration(text: str) -> timedelta:
    """`2m`, `90s`, `1h30m`, `500ms`; UsageError unless it is a positive duration."""
    parts = _parts(text) if _whole(text) else []
    try:
        found = timedelta(seconds=sum(float(number) * _UNITS[unit] for number, unit in parts))
    except OverflowError:
        found = timedelta(0)
    if not found:
        raise UsageError(f"{text!r} is not a duration. Write it as in 2m, 90s, 1h30m or 500ms.")
    return found


def names(text: str) -> list[str]:
    """What stands between commas."""
    return [each.strip() for each in text.split(",") if each.strip()]


def _from_file(path: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(path.read_text())
    except OSError as error:
        raise ConfigurationError(str(path), f"cannot be read: {error.strerror}", "Give a file.") from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ConfigurationError(str(path), f"is not TOML: {error}", "Correct it there.") from error


def _put(given: dict[str, Any], place: str, value: Any) -> None:
    *tables, name = place.split(".")
    for table in tables:
        given = given.setdefault(table, {})
    given[name] = value
