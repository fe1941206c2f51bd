"""The configuration of the service. No message quotes a credential."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta
from difflib import get_close_matches
from pathlib import Path
from typing import Any

import msgspec

from keywright import Secret
from keywright.errors import UsageError
from keywright.tools.http import check_token, origin_of
from keywright_openmod.service.credentials import Credentials
from keywright_openmod.service.schema import FEEDS
from keywright_openmod.settings import OpenModSettings, subreddit_name
from keywright_service.configuration import (
    LOG_VARIABLES,
    ConfigurationError,
    LogPart,
    RedisPart,
    SettingsReader,
    Variables,
    duration,
    host_and_port,
    names,
    take_secrets,
    truth,
)

__all__ = ["READER", "ConfigurationError", "OpenModConfiguration", "installation", "load"]

GUIDE = "systems/openmod/docs/guide.md"
_SECRETS = ("reddit.client_secret", "reddit.password", "reddit.refresh_token")
_HEALTH_TOKEN = "health.token"


class RedditPart(msgspec.Struct, frozen=True, kw_only=True):
    """The app and its account. Secrets are declared here, but taken out before the conversion."""

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


class OpenModSchedulePart(msgspec.Struct, frozen=True, kw_only=True):
    """The intervals of the tasks."""

    poll: str = "10s"
    """Between two polls of a feed."""
    enforce: str = "1m"
    """Between two checks for due accounts and submissions."""
    retry: str = "1s"
    """The first back-off after an error; it doubles."""
    hold: str = "5m"
    """How long an event is claimed: after a crash it is handled again when the claim expires."""
    backfill: str | None = None
    """How far to read back at the first start."""


class HealthPart(msgspec.Struct, frozen=True, kw_only=True):
    """The health endpoint."""

    address: str | None = None
    """host:port of /health, or :port on loopback. None disables it."""
    token: str = ""
    """The bearer token for the reasons of failures. Taken out before the conversion, as all secrets."""


class PublicLogPart(msgspec.Struct, frozen=True, kw_only=True):
    """The public log over HTTP, with a listener of its own."""

    address: str | None = None
    """host:port of its pages, or :port on loopback. None disables them."""
    url: str | None = None
    """Its address as visitors see it, as in https://log.example.org; for links in the feed."""


class OpenModConfiguration(msgspec.Struct, frozen=True, kw_only=True):
    """All settings of the service. Credentials are Secret."""

    subreddit: str
    credentials: Credentials
    installation: OpenModSettings
    watch: tuple[str, ...] = FEEDS
    redis: RedisPart = RedisPart()
    schedule: OpenModSchedulePart = OpenModSchedulePart()
    public_log: PublicLogPart = PublicLogPart()
    health: HealthPart = HealthPart()
    health_token: Secret[str] | None = None
    log: LogPart = LogPart()

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
    schedule: OpenModSchedulePart = OpenModSchedulePart()
    public_log: PublicLogPart = PublicLogPart()
    health: HealthPart = HealthPart()
    settings: dict[str, Any] = {}
    log: LogPart = LogPart()


def load(
    path: Path | None = None,
    environment: Mapping[str, str] | None = None,
    flags: Mapping[str, str] | None = None,
) -> OpenModConfiguration:
    """Read the configuration from flags, the environment and a file. Raise ConfigurationError."""
    file, secrets = _read(path, environment, flags)
    if not file.subreddit.strip():
        raise ConfigurationError(
            "subreddit", "is missing", "Set OPENMOD_SUBREDDIT, or subreddit in the file."
        )
    if not (file.settings.get("targetSubredit") or file.settings.get("targetSubreddit")):
        raise ConfigurationError(
            "settings.targetSubredit",
            "is missing",
            "Set OPENMOD_TARGET_SUBREDDIT, or targetSubredit below [settings].",
        )
    unknown = [each for each in file.watch if each not in FEEDS]
    if unknown:
        raise ConfigurationError("watch", f"{unknown[0]!r} is not a feed", f"There are {', '.join(FEEDS)}.")
    configuration = OpenModConfiguration(
        subreddit=subreddit_name("subreddit", file.subreddit),
        credentials=_credentials(file.reddit, secrets),
        installation=OpenModSettings.read(file.settings),
        watch=file.watch,
        redis=file.redis,
        schedule=file.schedule,
        public_log=file.public_log,
        health=file.health,
        health_token=secrets.get(_HEALTH_TOKEN),
        log=file.log,
    )
    _check_addresses(configuration)
    if configuration.health_token is not None:
        check_token(configuration.health_token, _HEALTH_TOKEN)
    _ = (  # so that an invalid duration is an error here
        configuration.poll,
        configuration.enforce,
        configuration.retry,
        configuration.hold,
        configuration.backfill,
    )
    return configuration


def _check_addresses(configuration: OpenModConfiguration) -> None:
    pages, health = configuration.public_log, configuration.health
    if pages.url is not None:
        try:
            origin_of(pages.url)
        except UsageError as error:
            raise ConfigurationError("public_log.url", "is not an origin", str(error)) from error
    if pages.address is None:
        return
    _, port = host_and_port("public_log.address", pages.address)
    if port and health.address is not None and host_and_port("health.address", health.address)[1] == port:
        remedy = "Choose another port: anybody may see the log, but not health and metrics."
        raise ConfigurationError("public_log.address", "has the port of health.address", remedy)


def installation(path: Path | None, environment: Mapping[str, str] | None = None) -> OpenModSettings | None:
    """Return the settings of the installation, or None if none are given. Needs no credentials."""
    chosen = _read(path, environment)[0].settings
    return OpenModSettings.read(chosen) if chosen else None


def configured_redis(path: Path | None, environment: Mapping[str, str] | None = None) -> RedisPart:
    """Return the configured server and prefix. Needs no credentials."""
    return _read(path, environment)[0].redis


def _read(
    path: Path | None,
    environment: Mapping[str, str] | None,
    flags: Mapping[str, str] | None = None,
) -> tuple[_File, dict[str, Secret[str]]]:
    given = READER.given(path, environment, flags)
    secrets = take_secrets(given, *_SECRETS, _HEALTH_TOKEN)
    file = READER.convert(given, _File, "the configuration")
    # With a misspelt setting, people who should be excluded would be named in public.
    places = [place.removeprefix("settings.") for place, _ in VARIABLES.values() if "settings." in place]
    known = [*places, "targetSubreddit"]
    for name in file.settings:
        if name not in known:
            near = get_close_matches(name, known, 1, cutoff=0.0)[0]
            remedy = f"The nearest is settings.{near}; see {GUIDE}."
            raise ConfigurationError(f"settings.{name}", "is not a setting", remedy)
    return file, secrets


def _credentials(reddit: RedditPart, secrets: Mapping[str, Secret[str]]) -> Credentials:
    client_secret, password, refresh_token = (secrets.get(name) for name in _SECRETS)
    needed: dict[str, object] = {"client_id": reddit.client_id, "client_secret": client_secret}
    if refresh_token is None:
        needed |= {"username": reddit.username, "password": password}
    for name, value in needed.items():
        if not value:
            raise ConfigurationError(
                f"reddit.{name}", "is missing", f"Set REDDIT_{name.upper()}, or {name} below [reddit]."
            )
    assert client_secret is not None
    return Credentials(
        client_id=reddit.client_id,
        client_secret=client_secret,
        username=reddit.username,
        password=password,
        refresh_token=refresh_token,
        user_agent=reddit.user_agent,
        url=reddit.url,
        oauth_url=reddit.oauth_url,
        timeout_seconds=duration(reddit.timeout).total_seconds(),
    )


VARIABLES: Variables = {
    "OPENMOD_SUBREDDIT": ("subreddit", str),
    "OPENMOD_WATCH": ("watch", names),
    "OPENMOD_TARGET_SUBREDDIT": ("settings.targetSubredit", str),
    "OPENMOD_ACTIONS": ("settings.moderationActions", names),
    "OPENMOD_RECORD_ADMIN_ACTIONS": ("settings.recordAdminActions", truth),
    "OPENMOD_RECORD_AUTOMODERATOR_ACTIONS": ("settings.recordAutoModeratorActions", truth),
    "OPENMOD_EXCLUDED_MODERATORS": ("settings.excludedModerators", str),
    "OPENMOD_EXCLUDED_USERS": ("settings.excludedUsers", str),
    "OPENMOD_POLL": ("schedule.poll", str),
    "OPENMOD_ENFORCE": ("schedule.enforce", str),
    "OPENMOD_RETRY": ("schedule.retry", str),
    "OPENMOD_HOLD": ("schedule.hold", str),
    "OPENMOD_BACKFILL": ("schedule.backfill", str),
    "OPENMOD_PREFIX": ("redis.prefix", str),
    "OPENMOD_LOG_ADDRESS": ("public_log.address", str),
    "OPENMOD_LOG_URL": ("public_log.url", str),
    "OPENMOD_HEALTH_ADDRESS": ("health.address", str),
    "OPENMOD_HEALTH_TOKEN": ("health.token", str),
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
    **LOG_VARIABLES,
}
READER = SettingsReader(_File, VARIABLES, GUIDE, secrets=(*_SECRETS, _HEALTH_TOKEN), prefix="OPENMOD_")
