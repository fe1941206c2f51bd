"""The configuration of the bot. Secrets are taken out first, so that no error can quote one."""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import time, timedelta
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import msgspec

from keywright import Secret
from keywright.tools.http import check_token
from keywright_meetup.schema import SeriesType
from keywright_meetup.service import meetup_api
from keywright_meetup.service.discord_sync import GuildLayout
from keywright_meetup.service.oauth import Provider
from keywright_service import discord_rest
from keywright_service.configuration import (
    LOG_VARIABLES,
    ConfigurationError,
    LogPart,
    Part,
    RedisPart,
    SettingsReader,
    Variables,
    host_and_port,
    names,
    take_secrets,
)

__all__ = ["READER", "Configuration", "ConfigurationError", "load"]


class DiscordPart(Part, frozen=True, kw_only=True):
    guild: int
    api_url: str = discord_rest.API_URL
    adventure_category: int | None = None
    """Where the channels of adventures go. None: they stay where Discord puts them."""
    campaign_category: int | None = None
    publisher_role: int | None = None
    """A role that sees the channels of campaigns."""


class MeetupPart(Part, frozen=True, kw_only=True):
    groups: list[str]
    """The urlnames of the groups whose events are followed."""
    api_url: str = meetup_api.API_URL


class OAuthPart(Part, frozen=True, kw_only=True):
    client_id: str
    authorize_url: str = "https://secure.meetup.com/oauth2/authorize"
    token_url: str = "https://secure.meetup.com/oauth2/access"
    scopes: tuple[str, ...] = ("basic",)
    rsvp_scopes: tuple[str, ...] = ("basic", "rsvp")
    offer_rsvp: bool = False
    """Let people choose the second scopes. Their tokens are then kept, for programs that sign them up."""


class PagesPart(Part, frozen=True, kw_only=True):
    public_url: str
    """Where people reach the pages, as in https://bot.example.org; the redirect address follows from it."""
    address: str = "127.0.0.1:8090"
    """host:port to listen on; without a host it is loopback."""
    community: str = "our community"


class SchedulePart(Part, frozen=True, kw_only=True):
    sync_minutes: float = 15.0
    clean_minutes: float = 15.0
    expiry_at: str = "18:30"
    """When channels are looked through each day, in UTC."""


class Configuration(msgspec.Struct, frozen=True, kw_only=True):
    """All settings of the bot."""

    discord_token: Secret[str]
    client_secret: Secret[str]
    discord: DiscordPart
    meetup: MeetupPart
    oauth: OAuthPart
    pages: PagesPart
    access_token: Secret[str] | None = None
    """The organizer's tokens, for a database that has none yet."""
    refresh_token: Secret[str] | None = None
    health_token: Secret[str] | None = None
    """The bearer token with which /health gives the reasons of failures."""
    redis: RedisPart = RedisPart()
    schedule: SchedulePart = SchedulePart()
    log: LogPart = LogPart()

    @property
    def provider(self) -> Provider:
        return Provider(
            client_id=self.oauth.client_id,
            client_secret=self.client_secret,
            authorize_url=self.oauth.authorize_url,
            token_url=self.oauth.token_url,
            scopes=self.oauth.scopes,
            rsvp_scopes=self.oauth.rsvp_scopes,
            offer_rsvp=self.oauth.offer_rsvp,
        )

    @property
    def layout(self) -> GuildLayout:
        given: dict[SeriesType, int | None] = {
            "adventure": self.discord.adventure_category,
            "campaign": self.discord.campaign_category,
        }
        categories: dict[SeriesType, int] = {
            kind: category for kind, category in given.items() if category is not None
        }
        return GuildLayout(categories, self.discord.publisher_role)

    @property
    def listening(self) -> tuple[str, int]:
        return host_and_port("pages.address", self.pages.address)

    @property
    def sync_every(self) -> timedelta:
        return timedelta(minutes=self.schedule.sync_minutes)

    @property
    def clean_every(self) -> timedelta:
        return timedelta(minutes=self.schedule.clean_minutes)

    @property
    def expiry_at(self) -> time:
        return time.fromisoformat(self.schedule.expiry_at)


MINUTES_A_YEAR = 366 * 24 * 60
SECRETS = ("discord_token", "client_secret", "access_token", "refresh_token", "health_token")
PARTS: dict[str, type[msgspec.Struct]] = {
    "discord": DiscordPart,
    "meetup": MeetupPart,
    "oauth": OAuthPart,
    "pages": PagesPart,
    "redis": RedisPart,
    "schedule": SchedulePart,
    "log": LogPart,
}


def load(
    path: Path | None = None,
    environment: Mapping[str, str] | None = None,
    flags: Mapping[str, str] | None = None,
) -> Configuration:
    """Read the configuration from flags, the environment and a file. Raise ConfigurationError."""
    given = READER.given(path, environment, flags)
    secrets = take_secrets(given, *SECRETS)
    for name, variable in (("discord_token", "DISCORD_TOKEN"), ("client_secret", "MEETUP_CLIENT_SECRET")):
        if name not in secrets:
            raise ConfigurationError(name, "is missing", f"Set {variable}, or {name} in the file.")
    settings: dict[str, Any] = {name: Secret(each.reveal().strip()) for name, each in secrets.items()}
    settings["discord_token"] = discord_rest.bot_token("discord_token", secrets["discord_token"])
    settings |= {
        name: READER.convert(given.get(name, {}), shape, f"[{name}]", strict=False)
        for name, shape in PARTS.items()
    }
    configuration = Configuration(**settings)
    _check(configuration)
    return configuration


def _check(configuration: Configuration) -> None:
    urls = {
        "discord.api_url": configuration.discord.api_url,
        "meetup.api_url": configuration.meetup.api_url,
        "oauth.authorize_url": configuration.oauth.authorize_url,
        "oauth.token_url": configuration.oauth.token_url,
        "pages.public_url": configuration.pages.public_url,
    }
    for name, url in urls.items():
        if not _is_address(url):
            raise ConfigurationError(name, f"cannot be {url!r}", "Write it as https://host/path.")
    if urlsplit(configuration.pages.public_url).path not in ("", "/"):
        remedy = "Give the pages a host of their own, as in https://bot.example.org."
        raise ConfigurationError("pages.public_url", "has a path", remedy)
    if not configuration.meetup.groups:
        raise ConfigurationError("meetup.groups", "is empty", "Name the groups whose events to follow.")
    if configuration.health_token is not None:
        check_token(configuration.health_token, "health_token")
    _ = configuration.listening
    _check_schedule(configuration)


def _is_address(url: str) -> bool:
    try:
        parts = urlsplit(url)
        return parts.scheme in ("http", "https") and bool(parts.netloc) and parts.port != 0
    except ValueError:
        return False


def _check_schedule(configuration: Configuration) -> None:
    for name in ("sync_minutes", "clean_minutes"):
        if not 0 < getattr(configuration.schedule, name) <= MINUTES_A_YEAR:
            remedy = "Give a number of minutes, of a year at the most."
            raise ConfigurationError(f"schedule.{name}", "is out of bounds", remedy)
    if not re.fullmatch(r"([01]\d|2[0-3]):[0-5]\d", configuration.schedule.expiry_at):
        given = configuration.schedule.expiry_at
        raise ConfigurationError("schedule.expiry_at", f"cannot be {given!r}", "Write it as 18:30.")


VARIABLES: Variables = {
    "DISCORD_TOKEN": ("discord_token", str),
    "MEETUP_CLIENT_SECRET": ("client_secret", str),
    "MEETUP_ACCESS_TOKEN": ("access_token", str),
    "MEETUP_REFRESH_TOKEN": ("refresh_token", str),
    "MEETUP_HEALTH_TOKEN": ("health_token", str),
    "MEETUP_CLIENT_ID": ("oauth.client_id", str),
    "MEETUP_OFFER_RSVP": ("oauth.offer_rsvp", str),
    "MEETUP_GROUPS": ("meetup.groups", names),
    "MEETUP_API_URL": ("meetup.api_url", str),
    "MEETUP_AUTHORIZE_URL": ("oauth.authorize_url", str),
    "MEETUP_TOKEN_URL": ("oauth.token_url", str),
    "DISCORD_GUILD": ("discord.guild", int),
    "DISCORD_API_URL": ("discord.api_url", str),
    "PAGES_URL": ("pages.public_url", str),
    "PAGES_ADDRESS": ("pages.address", str),
    "REDIS_URL": ("redis.url", str),
    "REDIS_PREFIX": ("redis.prefix", str),
    **LOG_VARIABLES,
}
READER = SettingsReader(
    Configuration, VARIABLES, "systems/meetup/docs/guide.md", secrets=SECRETS, prefix="MEETUP_"
)
