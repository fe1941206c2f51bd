"""How the service is configured: a TOML file, and environment variables, which win.

What cannot be understood is an error before anything is connected: an unknown name or a wrong value is
never passed over. No message quotes a credential.
"""

from __future__ import annotations

import os
import tomllib
from collections.abc import Callable, Mapping
from datetime import timedelta
from difflib import get_close_matches
from pathlib import Path
from typing import Any, get_type_hints

import msgspec

from keywright.errors import UsageError
from keywright.keyspace import Secret
from keywright.models.openmod.settings import Settings
from keywright.services.gateway.durations import duration
from keywright.services.openmod.credentials import Credentials
from keywright.services.openmod.schema import FEEDS

__all__ = ["Configuration", "ConfigurationError", "installation", "load"]

_DOCUMENT = "See docs/openmod.md."
_SECRETS = ("client_secret", "password", "refresh_token")


class ConfigurationError(UsageError):
    """A configuration that cannot be used; nothing was connected."""

    def __init__(self, subject: str, reason: str, remedy: str) -> None:
        self.subject = subject
        self.reason = reason
        self.remedy = remedy
        super().__init__(f"{subject}: {reason}. {remedy}")


class RedditPart(msgspec.Struct, frozen=True, kw_only=True):
    client_id: str = ""
    client_secret: str = ""
    username: str = ""
    password: str = ""
    refresh_token: str = ""
    """Instead of name and password."""
    user_agent: str = "keywright-openmod"
    url: str = "https://www.reddit.com"
    oauth_url: str = "https://oauth.reddit.com"
    timeout: str = "16s"


class RedisPart(msgspec.Struct, frozen=True, kw_only=True):
    url: str | None = None
    """None: REDIS_URL, else an embedded server that keeps nothing."""
    prefix: str | None = None
    """Put before every key. The document has none."""


class SchedulePart(msgspec.Struct, frozen=True, kw_only=True):
    poll: str = "10s"
    """Between two readings of a feed."""
    enforce: str = "1m"
    """Between two looks at what is due, when nothing is."""
    retry: str = "1s"
    """The first pause after trouble; it doubles."""
    hold: str = "5m"
    """For how long an event is claimed: after a crash it is handled again when that is over."""
    backfill: str | None = None
    """How far to read back at the first start."""


class HealthPart(msgspec.Struct, frozen=True, kw_only=True):
    address: str | None = None
    """host:port of /health; without a host it is loopback. None: nothing listens."""


class Configuration(msgspec.Struct, frozen=True, kw_only=True):
    """Everything the service is told. Credentials are Secret."""

    subreddit: str
    credentials: Credentials
    installation: Settings
    watch: tuple[str, ...] = FEEDS
    redis: RedisPart = RedisPart()
    schedule: SchedulePart = SchedulePart()
    health: HealthPart = HealthPart()

    @property
    def poll(self) -> timedelta:
        return duration(self.schedule.poll)

    @property
    def enforce(self) -> timedelta:
        return duration(self.schedule.enforce)

    @property
    def retry(self) -> timedelta:
        return duration(self.schedule.retry)

    @property
    def hold(self) -> timedelta:
        return duration(self.schedule.hold)

    @property
    def backfill(self) -> timedelta:
        return timedelta() if self.schedule.backfill is None else duration(self.schedule.backfill)


class _File(msgspec.Struct, kw_only=True):
    """The settings as a file spells them; `settings` has the names of an installation."""

    subreddit: str = ""
    watch: tuple[str, ...] = FEEDS
    reddit: RedditPart = RedditPart()
    redis: RedisPart = RedisPart()
    schedule: SchedulePart = SchedulePart()
    health: HealthPart = HealthPart()
    settings: dict[str, Any] = {}


def load(path: Path | None = None, environment: Mapping[str, str] | None = None) -> Configuration:
    """The configuration of a file and the environment; ConfigurationError says what is wrong with it."""
    file = _read_all(path, os.environ if environment is None else environment)
    subreddit = file.subreddit.strip().removeprefix("r/")
    if not subreddit:
        raise ConfigurationError(
            "subreddit", "is missing", "Set OPENMOD_SUBREDDIT, or subreddit in the file."
        )
    if not (file.settings.get("targetSubredit") or file.settings.get("targetSubreddit")):
        raise ConfigurationError(
            "settings.targetSubredit",
            "is missing: where extracts go",
            "Set OPENMOD_TARGET_SUBREDDIT, or targetSubredit below [settings].",
        )
    unknown = [each for each in file.watch if each not in FEEDS]
    if unknown:
        raise ConfigurationError("watch", f"{unknown[0]!r} is no feed", f"There are {', '.join(FEEDS)}.")
    configuration = Configuration(
        subreddit=subreddit,
        credentials=_credentials(file.reddit),
        installation=Settings.read(file.settings),
        watch=file.watch,
        redis=file.redis,
        schedule=file.schedule,
        health=file.health,
    )
    _ = (
        configuration.poll,
        configuration.enforce,
        configuration.retry,
        configuration.hold,
        configuration.backfill,
    )
    return configuration


def installation(path: Path | None, environment: Mapping[str, str] | None = None) -> Settings | None:
    """What the installation chose, where nothing is said of Reddit itself; None where nothing is chosen."""
    chosen = _read_all(path, os.environ if environment is None else environment).settings
    return Settings.read(chosen) if chosen else None


def _read_all(path: Path | None, environment: Mapping[str, str]) -> _File:
    given = _from_file(path) if path is not None else {}
    _refuse_unknown(given, _File, "")
    for name, (place, read) in VARIABLES.items():
        text = environment.get(name, "").strip()
        if text:
            _put(given, place, _read(name, text, read))
    return _converted(given)


def _from_file(path: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(path.read_text())
    except OSError as error:
        raise ConfigurationError(str(path), f"cannot be read: {error.strerror}", "Give a file.") from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ConfigurationError(str(path), f"is not TOML: {error}", "Correct it there.") from error


def _refuse_unknown(given: Mapping[str, Any], shape: type[msgspec.Struct], where: str) -> None:
    hints = get_type_hints(shape)
    for name, value in given.items():
        if name not in hints:
            near = get_close_matches(name, list(hints), 1, cutoff=0.0)[0]
            raise ConfigurationError(
                f"{where}{name}", "is not a setting", f"The nearest is {where}{near}. {_DOCUMENT}"
            )
        inner = hints[name]
        if isinstance(inner, type) and issubclass(inner, msgspec.Struct):
            if not isinstance(value, Mapping):
                raise ConfigurationError(f"{where}{name}", "is a table", f"Write it as [{where}{name}].")
            _refuse_unknown(value, inner, f"{where}{name}.")


def _put(given: dict[str, Any], place: str, value: Any) -> None:
    *tables, name = place.split(".")
    for table in tables:
        given = given.setdefault(table, {})
    given[name] = value


def _read(name: str, text: str, read: Callable[[str], Any]) -> Any:
    try:
        return read(text)
    except ValueError as error:
        raise ConfigurationError(name, f"cannot be read ({error})", _DOCUMENT) from error


def _converted(given: dict[str, Any]) -> _File:
    secrets = {name: str(given.get("reddit", {}).pop(name, "")) for name in _SECRETS}
    try:
        file = msgspec.convert(given, _File)
    except msgspec.ValidationError as error:
        raise ConfigurationError("the configuration", str(error), _DOCUMENT) from error
    # Apart from the rest, so that no error of conversion can quote them.
    file.reddit = msgspec.structs.replace(file.reddit, **secrets)
    return file


def _credentials(reddit: RedditPart) -> Credentials:
    needed = {"client_id": reddit.client_id, "client_secret": reddit.client_secret}
    if not reddit.refresh_token:
        needed |= {"username": reddit.username, "password": reddit.password}
    for name, value in needed.items():
        if not value:
            raise ConfigurationError(
                f"reddit.{name}", "is missing", f"Set REDDIT_{name.upper()}, or {name} below [reddit]."
            )
    return Credentials(
        client_id=reddit.client_id,
        client_secret=Secret(reddit.client_secret),
        username=reddit.username,
        password=Secret(reddit.password) if reddit.password else None,
        refresh_token=Secret(reddit.refresh_token) if reddit.refresh_token else None,
        user_agent=reddit.user_agent,
        url=reddit.url,
        oauth_url=reddit.oauth_url,
        timeout_seconds=duration(reddit.timeout).total_seconds(),
    )


def _names(text: str) -> list[str]:
    return [each.strip() for each in text.split(",") if each.strip()]


def _flag(text: str) -> bool:
    if text.lower() not in ("true", "false"):
        raise ValueError("it is neither true nor false")
    return text.lower() == "true"


# The variable, the setting it stands for, and how its text is read.
VARIABLES: dict[str, tuple[str, Callable[[str], Any]]] = {
    "OPENMOD_SUBREDDIT": ("subreddit", str),
    "OPENMOD_WATCH": ("watch", _names),
    "OPENMOD_TARGET_SUBREDDIT": ("settings.targetSubredit", str),
    "OPENMOD_ACTIONS": ("settings.moderationActions", _names),
    "OPENMOD_RECORD_ADMIN_ACTIONS": ("settings.recordAdminActions", _flag),
    "OPENMOD_RECORD_AUTOMODERATOR_ACTIONS": ("settings.recordAutoModeratorActions", _flag),
    "OPENMOD_EXCLUDED_MODERATORS": ("settings.excludedModerators", str),
    "OPENMOD_EXCLUDED_USERS": ("settings.excludedUsers", str),
    "OPENMOD_POLL": ("schedule.poll", str),
    "OPENMOD_ENFORCE": ("schedule.enforce", str),
    "OPENMOD_RETRY": ("schedule.retry", str),
    "OPENMOD_HOLD": ("schedule.hold", str),
    "OPENMOD_BACKFILL": ("schedule.backfill", str),
    "OPENMOD_PREFIX": ("redis.prefix", str),
    "OPENMOD_HEALTH_ADDRESS": ("health.address", str),
    "REDDIT_CLIENT_ID": ("reddit.client_id", str),
    "REDDIT_CLIENT_SECRET": ("reddit.client_secret", str),
    "REDDIT_USERNAME": ("reddit.username", str),
    "REDDIT_PASSWORD": ("reddit.password", str),
    "REDDIT_REFRESH_TOKEN": ("reddit.refresh_token", str),
    "REDDIT_USER_AGENT": ("reddit.user_agent", str),
    "REDDIT_URL": ("reddit.url", str),
    "REDDIT_OAUTH_URL": ("reddit.oauth_url", str),
    "REDDIT_TIMEOUT": ("reddit.timeout", str),
    "REDIS_URL": ("redis.url", str),
}
