"""Discord's REST API with its rate limits: where to connect a gateway, and what a bot does in a guild."""

from keywright_service.discord_rest.client import API_URL, DiscordRest, bot_token
from keywright_service.discord_rest.guild import DiscordGuild
from keywright_service.discord_rest.objects import (
    Application,
    Channel,
    GatewayInfo,
    Member,
    Overwrite,
    Role,
    SessionStartLimit,
    User,
)
from keywright_service.discord_rest.rate_limits import RateLimits, Route

__all__ = [
    "API_URL",
    "Application",
    "Channel",
    "DiscordGuild",
    "DiscordRest",
    "GatewayInfo",
    "Member",
    "Overwrite",
    "RateLimits",
    "Role",
    "Route",
    "SessionStartLimit",
    "User",
    "bot_token",
]
