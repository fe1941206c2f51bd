"""Configuration of a service: flags, which win over environment variables, which win over a TOML file.

An unknown name or an invalid value is an error before anything is connected. A service removes its secrets
from the settings before it converts the rest, so that no error of the conversion can quote one.
"""

from __future__ import annotations

import os
import re
import tomllib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from datetime import timedelta
from difflib import get_close_matches
from enum import StrEnum
from pathlib import Path
from typing import Any, NamedTuple, TypeVar, get_type_hints

import msgspec

from keywright import Secret
from keywright.errors import UsageError
from keywright.tools.http import LOOPBACK

__all__ = [
    "LOG_VARIABLES",
    "ConfigurationError",
    "GivenSetting",
    "LogFormat",
    "LogLevel",
    "LogPart",
    "Part",
    "RedisPart",
    "ServerPart",
    "SettingsReader",
    "Variables",
    "duration",
    "host_and_port",
    "names",
    "take_secrets",
    "truth",
    "with_redis",
    "without_password",
]

T = TypeVar("T")

Variables = Mapping[str, tuple[str, Callable[[str], Any]]]
"""For each variable the setting it stands for, and a function that reads its text or raises ValueError."""

LARGEST_PORT = 65535
LONGEST_PORT = 5

_UNITS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0}
_PART = r"(\d+(?:\.\d+)?)(ms|s|m|h)"
_parts = re.compile(_PART).findall
_whole = re.compile(f"(?:{_PART})+").fullmatch
_PASSWORD = re.compile(r"://.*@", re.DOTALL)
# How alike a variable of the environment and one of the service must be for a misspelling.
_MISSPELT = 0.85
# Kubernetes sets these for every service of a namespace, of whatever name.
_is_service_link = re.compile(
    r"\w+_(SERVICE_HOST|SERVICE_PORT(_\w+)?|PORT(_\d+_(TCP|UDP)(_(PROTO|PORT|ADDR))?)?)"
).fullmatch


class ConfigurationError(UsageError):
    """An invalid configuration; nothing was connected."""

    def __init__(self, subject: str, reason: str, remedy: str) -> None:
        self.subject = subject
        self.reason = reason
        self.remedy = remedy
        super().__init__(f"{subject}: {reason}. {remedy}")


class Part(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Settings that belong together: a table of the file. `repr` hides passwords in URLs."""

    def __repr__(self) -> str:
        values = ((name, getattr(self, name)) for name in self.__struct_fields__)
        return f"{type(self).__name__}({', '.join(f'{name}={_shown(value)}' for name, value in values)})"


def _shown(value: object) -> str:
    # Text is cut before it is quoted: a quote in a password must not end the search for its end.
    return repr(without_password(value)) if isinstance(value, str) else repr(value)


def without_password(text: str) -> str:
    """Return a text with … in place of the user and the password of a URL."""
    return _PASSWORD.sub("://…@", text)


class ServerPart(Part, frozen=True, kw_only=True):
    """A server that the service connects to."""

    url: str | None = None


class RedisPart(ServerPart, frozen=True, kw_only=True):
    """The Redis server or cluster, and what its keys begin with. Commands need a `url`."""

    prefix: str | None = None


class LogLevel(StrEnum):
    SUPPRESS = "suppress"
    ERROR = "error"
    WARN = "warn"
    INFO = "info"
    DEBUG = "debug"


class LogFormat(StrEnum):
    TEXT = "text"
    JSON = "json"


class LogPart(Part, frozen=True, kw_only=True):
    """What is logged on standard error. Declare it as `log`, and add LOG_VARIABLES to the variables."""

    level: LogLevel = LogLevel.INFO
    format: LogFormat = LogFormat.TEXT


LOG_VARIABLES: Variables = {"LOG_LEVEL": ("log.level", str), "LOG_FORMAT": ("log.format", str)}


class GivenSetting(NamedTuple):
    """A setting that was given: its place in the shape, its value, and where it was given."""

    place: tuple[str, ...]
    value: Any
    source: str


@dataclass(frozen=True)
class SettingsReader:
    """Reads the settings of one service: `shape` names them, its structs are the tables of the file."""

    shape: type[msgspec.Struct]
    variables: Variables
    document: str
    """Where an operator reads about them; named in errors."""
    secrets: tuple[str, ...] = ()
    """The settings that no listing shows."""
    prefix: str | tuple[str, ...] = ()
    """Every variable of the environment that begins with it (with one of them) must be one of the service."""

    def given(
        self,
        path: Path | None,
        environment: Mapping[str, str] | None,
        flags: Mapping[str, str] | None = None,
    ) -> dict[str, Any]:
        """Return all that is set, by the names of the shape, not yet converted.

        Without an `environment` it is that of the process. Flags have the names of settings. Raise
        ConfigurationError for an unknown setting or a misspelt variable.
        """
        given: dict[str, Any] = {}
        for each in self.settings(path, environment, flags):
            *tables, name = each.place
            table = given
            for step in tables:
                table = table.setdefault(step, {})
            table[name] = each.value
        return given

    def settings(
        self,
        path: Path | None,
        environment: Mapping[str, str] | None,
        flags: Mapping[str, str] | None = None,
    ) -> Iterator[GivenSetting]:
        """Yield what each source gives; the last one for a place wins."""
        file = _from_file(path) if path is not None else {}
        self._refuse_unknown(file, self.shape, "")
        for place, value in _leaves(file):
            yield GivenSetting(place, value, str(path))
        set_here = os.environ if environment is None else environment
        self._refuse_misspelt(set_here)
        for name, (setting, read) in self.variables.items():
            if text := set_here.get(name, "").strip():
                yield GivenSetting(tuple(setting.split(".")), self._read(name, read, text), name)
        readers = dict(self.variables.values())
        for setting, text in (flags or {}).items():
            self._refuse_unknown_place(setting)
            value = self._read(setting, readers.get(setting, _toml_or_text), text)
            yield GivenSetting(tuple(setting.split(".")), value, "a flag")

    def _read(self, name: str, read: Callable[[str], Any], text: str) -> Any:
        try:
            return read(text)
        except ValueError as error:
            raise ConfigurationError(name, f"cannot be read ({error})", f"See {self.document}.") from error

    def _refuse_misspelt(self, environment: Mapping[str, str]) -> None:
        for name in environment:
            if name in self.variables or _is_service_link(name):
                continue
            own = name.startswith(self.prefix)
            head = name.partition("_")[0] if own else ""
            known = [each for each in self.variables if each.startswith(head)] or list(self.variables)
            near = get_close_matches(name, known, 1, cutoff=0.0 if own else _MISSPELT)
            if near and (own or not environment.get(near[0])):
                remedy = f"The nearest is {near[0]}; see {self.document}."
                raise ConfigurationError(name, "is not a variable of this service", remedy)

    def _refuse_unknown_place(self, setting: str) -> None:
        nested: Any = None
        for name in reversed(setting.split(".")):
            nested = {name: {} if nested is None else nested}
        self._refuse_unknown(nested, self.shape, "", leaves=True)

    def convert(self, value: Any, shape: type[T], subject: str, *, strict: bool = True) -> T:
        """Return the value as this type, converted by msgspec. Raise ConfigurationError if it is invalid."""
        try:
            return msgspec.convert(value, shape, strict=strict)
        except msgspec.ValidationError as error:
            raise ConfigurationError(subject, str(error), f"See {self.document}.") from error

    def _refuse_unknown(
        self, given: Mapping[str, Any], shape: type[msgspec.Struct], where: str, *, leaves: bool = False
    ) -> None:
        hints = get_type_hints(shape)
        for name, value in given.items():
            setting = f"{where}{name}"
            if name not in hints:
                near = get_close_matches(name, list(hints), 1, cutoff=0.0)[0]
                remedy = f"The nearest is {where}{near}; see {self.document}."
                raise ConfigurationError(setting, "is not a setting", remedy)
            inner = hints[name]
            if isinstance(inner, type) and issubclass(inner, msgspec.Struct):
                if not isinstance(value, Mapping) or (leaves and not value):
                    raise ConfigurationError(setting, "is a table", f"Write it as [{setting}].")
                self._refuse_unknown(value, inner, f"{setting}.", leaves=leaves)


def duration(text: str) -> timedelta:
    """Read `2m`, `90s`, `1h30m` or `500ms`. Raise UsageError unless it is a positive duration."""
    parts = _parts(text) if _whole(text) else []
    try:
        found = timedelta(seconds=sum(float(number) * _UNITS[unit] for number, unit in parts))
    except OverflowError:
        found = timedelta(0)
    if not found:
        raise UsageError(f"{text!r} is not a duration. Write it as in 2m, 90s, 1h30m or 500ms.")
    return found


def names(text: str) -> list[str]:
    """Read a list that is separated by commas."""
    return [each.strip() for each in text.split(",") if each.strip()]


def truth(text: str) -> bool:
    """Read true or false. Raise ValueError for anything else."""
    if text.lower() not in ("true", "false"):
        raise ValueError("it must be true or false")
    return text.lower() == "true"


def host_and_port(setting: str, text: str) -> tuple[str, int]:
    """Read `host:port`; without a host it is loopback. Raise ConfigurationError, which names the setting."""
    host, _, port = text.rpartition(":")
    if not port.isdecimal() or len(port) > LONGEST_PORT or int(port) > LARGEST_PORT:
        raise ConfigurationError(setting, f"cannot be {text!r}", "Write host:port, as in 127.0.0.1:8080.")
    return host.strip("[]") or LOOPBACK, int(port)


def take_secrets(given: dict[str, Any], *settings: str) -> dict[str, Secret[str]]:
    """Remove these settings from what was given, and return those that are not empty.

    Raise ConfigurationError if one is not text: the digits of a number may not be what was written.
    """
    found = {}
    for setting in settings:
        *tables, name = setting.split(".")
        table = given
        for each in tables:
            table = table.get(each, {})
        value = table.pop(name, None) or ""
        if not isinstance(value, str):
            raise ConfigurationError(setting, "is not text", "Write it in quotes.")
        if value.strip():
            found[setting] = Secret(value)
    return found


def with_redis(configuration: T, url: str) -> T:
    """Return a configuration, which has a part `redis`, with this URL."""
    given: Any = configuration
    changed: T = msgspec.structs.replace(given, redis=msgspec.structs.replace(given.redis, url=url))
    return changed


def _from_file(path: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(path.read_text())
    except OSError as error:
        raise ConfigurationError(str(path), f"cannot be read: {error.strerror}", "Give a file.") from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ConfigurationError(str(path), f"is not TOML: {error}", "Correct it there.") from error


def _leaves(table: Mapping[str, Any]) -> Iterator[tuple[tuple[str, ...], Any]]:
    for name, value in table.items():
        if isinstance(value, Mapping) and value:
            yield from (((name, *place), leaf) for place, leaf in _leaves(value))
        else:
            yield (name,), value


def _toml_or_text(text: str) -> Any:
    """Read a number, a list or a truth value as in the file; anything else is text."""
    try:
        return tomllib.loads(f"value = {text}")["value"]
    except tomllib.TOMLDecodeError:
        return text
