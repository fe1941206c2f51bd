"""Simulated Meetup and Discord side by side, as the surroundings of one bot."""

from __future__ import annotations

from keywright_meetup.simulator import MeetupSimulator
from keywright_service.testing.discord_rest_simulator import DiscordRestSimulator

__all__ = ["bot_variables"]


def bot_variables(meetup: MeetupSimulator, discord: DiscordRestSimulator, group: str) -> dict[str, str]:
    """Return the variables that point a bot at both, with tokens of another organizer each time."""
    access, refresh = meetup.oauth.grant(meetup.world.join("Organizer"))
    return {
        "DISCORD_TOKEN": discord.token,
        "DISCORD_GUILD": str(discord.guild.id),
        "DISCORD_API_URL": discord.api_url,
        "MEETUP_CLIENT_ID": meetup.client_id,
        "MEETUP_CLIENT_SECRET": meetup.client_secret,
        "MEETUP_ACCESS_TOKEN": access,
        "MEETUP_REFRESH_TOKEN": refresh,
        "MEETUP_GROUPS": group,
        "MEETUP_API_URL": meetup.api_url,
        "MEETUP_AUTHORIZE_URL": meetup.authorize_url,
        "MEETUP_TOKEN_URL": meetup.token_url,
    }
