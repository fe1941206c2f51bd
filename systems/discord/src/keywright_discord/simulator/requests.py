"""The requests of a client with a session: presence, voice, members, sounds, channels."""

from __future__ import annotations

from typing import Any

from keywright_discord.gateway.close_codes import CloseCode
from keywright_discord.gateway.intents import Intents
from keywright_discord.simulator.connection import SimulatedConnection
from keywright_discord.simulator.gateway import SimulatedGateway
from keywright_discord.simulator.hang_up import HangUp
from keywright_discord.simulator.session import SimulatedSession

__all__ = ["change_presence", "change_voice", "request_channels", "request_members", "request_sounds"]

Json = dict[str, Any]

_STATUSES = ("online", "dnd", "idle", "invisible", "offline")
_CHUNK = 1000
_MOST_FOUND = 100
_LONGEST_NONCE = 32


def change_presence(gateway: SimulatedGateway, connection: SimulatedConnection, data: Json) -> None:
    """Accept op 3 if it is well-formed and within the rate limit."""
    if not connection.presences.admit():
        raise HangUp(CloseCode.RATE_LIMITED)
    if data.get("status") not in _STATUSES or not isinstance(data.get("activities", []), list | tuple):
        raise HangUp(CloseCode.DECODE_ERROR)


def change_voice(gateway: SimulatedGateway, connection: SimulatedConnection, data: Json) -> None:
    """Answer op 4 with the bot's new voice state and the voice server; an unknown channel is ignored."""
    session = _session(connection)
    guild, channel = _own_guild(gateway, session, data), data.get("channel_id")
    if guild is None:
        return
    if channel is not None and str(channel) not in gateway.world.voice_channels(guild):
        return
    state = gateway.world.move_bot(
        guild,
        None if channel is None else str(channel),
        muted=bool(data.get("self_mute")),
        deaf=bool(data.get("self_deaf")),
    )
    if state is None:
        return
    gateway.dispatch("VOICE_STATE_UPDATE", {**state, "session_id": session.id})
    if channel is not None:
        server = {"token": f"voice-{guild}", "guild_id": guild, "endpoint": "voice.simulator.invalid:443"}
        gateway.deliver(session, "VOICE_SERVER_UPDATE", server, guild=guild)


def request_members(gateway: SimulatedGateway, connection: SimulatedConnection, data: Json) -> None:
    """Answer op 8 with GUILD_MEMBERS_CHUNKs of up to 1,000 members.

    All members can be requested with GUILD_MEMBERS only, and once in half a minute (RATE_LIMITED).
    """
    session = _session(connection)
    people, query, limit = data.get("user_ids"), data.get("query"), data.get("limit") or 0
    if (people is None and not isinstance(query, str)) or type(limit) is not int or limit < 0:
        raise HangUp(CloseCode.DECODE_ERROR)
    guild = _own_guild(gateway, session, data)
    if guild is None or (data.get("presences") and Intents.GUILD_PRESENCES not in session.intents):
        return
    everybody = people is None and query == "" and not limit
    if everybody and Intents.GUILD_MEMBERS not in session.intents:
        return
    if everybody and (wait := gateway.may_request_all(guild)):
        meta = {"guild_id": guild} | _nonce(data)
        gateway.deliver(
            session, "RATE_LIMITED", {"opcode": 8, "retry_after": wait, "meta": meta}, guild=guild
        )
        return
    found, missing = _found_members(gateway, guild, data)
    _send_chunks(gateway, session, guild, data, found, missing)


def _found_members(gateway: SimulatedGateway, guild: str, data: Json) -> tuple[list[str], list[str]]:
    """Return the user ids that a request finds, and those that are not members."""
    members = gateway.world.members(guild)
    people = data.get("user_ids")
    if people is not None:
        wanted = [str(each) for each in (people if isinstance(people, list | tuple) else [people])][
            :_MOST_FOUND
        ]
        found = [each for each in wanted if each in members]
        return found, [each for each in wanted if each not in members]
    prefix, limit = data["query"].casefold(), data.get("limit") or 0
    if not prefix and not limit:
        return list(members), []
    named = [person for person, member in members.items() if _is_named(member, prefix)]
    return named[: min(limit or _MOST_FOUND, _MOST_FOUND)], []


def _is_named(member: Json, prefix: str) -> bool:
    user = member["user"]
    names = (member.get("nick"), user.get("global_name"), user["username"])
    return any(name is not None and name.casefold().startswith(prefix) for name in names)


def _send_chunks(
    gateway: SimulatedGateway,
    session: SimulatedSession,
    guild: str,
    data: Json,
    found: list[str],
    missing: list[str],
) -> None:
    members = gateway.world.members(guild)
    chunks = [found[start : start + _CHUNK] for start in range(0, len(found), _CHUNK)] or [[]]
    for index, people in enumerate(chunks):
        chunk: Json = {
            "guild_id": guild,
            "members": [members[person] for person in people],
            "chunk_index": index,
            "chunk_count": len(chunks),
        }
        chunk |= {"not_found": missing} if missing and index == 0 else {}
        chunk |= {"presences": gateway.world.presences(guild, people)} if data.get("presences") else {}
        gateway.deliver(session, "GUILD_MEMBERS_CHUNK", chunk | _nonce(data), guild=guild)


def _nonce(data: Json) -> Json:
    """Return the nonce to send back; one that is too long is ignored."""
    nonce = data.get("nonce")
    return {"nonce": nonce} if isinstance(nonce, str) and len(nonce.encode()) <= _LONGEST_NONCE else {}


def request_sounds(gateway: SimulatedGateway, connection: SimulatedConnection, data: Json) -> None:
    """Answer op 31 with a SOUNDBOARD_SOUNDS for each guild; simulated guilds have no sounds."""
    session = _session(connection)
    guilds = data.get("guild_ids")
    if not isinstance(guilds, list | tuple):
        raise HangUp(CloseCode.DECODE_ERROR)
    for each in guilds:
        guild = _own_guild(gateway, session, {"guild_id": each})
        if guild is not None:
            sounds = {"guild_id": guild, "soundboard_sounds": []}
            gateway.deliver(session, "SOUNDBOARD_SOUNDS", sounds, guild=guild)


def request_channels(gateway: SimulatedGateway, connection: SimulatedConnection, data: Json) -> None:
    """Answer op 43 with a CHANNEL_INFO: the requested fields of each voice channel."""
    session = _session(connection)
    fields = data.get("fields")
    if not isinstance(fields, list | tuple):
        raise HangUp(CloseCode.DECODE_ERROR)
    guild = _own_guild(gateway, session, data)
    if guild is not None:
        known = {name: None for name in ("status", "voice_start_time") if name in fields}
        channels = [{"id": channel, **known} for channel in gateway.world.voice_channels(guild)]
        gateway.deliver(session, "CHANNEL_INFO", {"guild_id": guild, "channels": channels}, guild=guild)


def _session(connection: SimulatedConnection) -> SimulatedSession:
    if connection.session is None:
        raise HangUp(CloseCode.NOT_AUTHENTICATED)
    return connection.session


def _own_guild(gateway: SimulatedGateway, session: SimulatedSession, data: Json) -> str | None:
    """Return the requested guild if the session's shard has it; JSON clients may write ids as numbers."""
    guild = str(data.get("guild_id"))
    return guild if guild in gateway.world.guilds_of(session.shard) else None
