"""Identify and resume: how a connection gets a session."""

from __future__ import annotations

import asyncio
from typing import Any

from keywright_discord.gateway.close_codes import CloseCode
from keywright_discord.gateway.intents import ALL, PRIVILEGED, Intents
from keywright_discord.gateway.opcodes import Op
from keywright_discord.simulator.connection import SimulatedConnection
from keywright_discord.simulator.gateway import SimulatedGateway
from keywright_discord.simulator.hang_up import HangUp
from keywright_discord.simulator.limits import Verdict
from keywright_discord.simulator.session import SimulatedSession, SimulatedShard

__all__ = ["identify", "resume"]

Json = dict[str, Any]

_TRACE = ["keywright-simulator"]


def identify(gateway: SimulatedGateway, connection: SimulatedConnection, data: Json) -> None:
    """Answer op 2 with READY and the guilds of the shard, or close with the code of what is wrong."""
    _refuse_second(connection)
    if not gateway.knows(data.get("token")):
        raise HangUp(CloseCode.AUTHENTICATION_FAILED)
    if not isinstance(data.get("properties"), dict):
        raise HangUp(CloseCode.DECODE_ERROR)
    shard = _shard(data)
    intents = _intents(data, gateway.settings.privileged)
    if len(gateway.world.guilds_of(shard)) > gateway.settings.guilds_per_shard:
        raise HangUp(CloseCode.SHARDING_REQUIRED)
    verdict = gateway.identifies.admit(shard.id)
    if verdict is Verdict.EXHAUSTED:
        gateway.reset_token()
    elif verdict is Verdict.TOO_FAST:
        connection.send(Op.INVALID_SESSION, False)
    else:
        _begin(gateway, connection, data, shard, intents)


def _refuse_second(connection: SimulatedConnection) -> None:
    if connection.session is not None:
        raise HangUp(CloseCode.ALREADY_AUTHENTICATED)


def _shard(data: Json) -> SimulatedShard:
    given = data.get("shard", [0, 1])
    if not isinstance(given, list | tuple) or len(given) != 2 or not all(type(each) is int for each in given):
        raise HangUp(CloseCode.INVALID_SHARD)
    shard = SimulatedShard(*given)
    if not 0 <= shard.id < shard.count:
        raise HangUp(CloseCode.INVALID_SHARD)
    return shard


def _intents(data: Json, granted: Intents) -> Intents:
    given = data.get("intents")
    if type(given) is not int or given & ~int(ALL) or given < 0:
        raise HangUp(CloseCode.INVALID_INTENTS)
    intents = Intents(given)
    if intents & PRIVILEGED & ~granted:
        raise HangUp(CloseCode.DISALLOWED_INTENTS)
    return intents


def _begin(
    gateway: SimulatedGateway,
    connection: SimulatedConnection,
    data: Json,
    shard: SimulatedShard,
    intents: Intents,
) -> None:
    # Payload compression exists for JSON only, and only without transport compression.
    if data.get("compress") is True and connection.compress is None and connection.encoding.is_text:
        connection.compress_payloads()
    threshold = data.get("large_threshold")
    threshold = min(250, max(50, threshold)) if isinstance(threshold, int) else 50
    session = gateway.open_session(connection, shard, intents, threshold)
    ready: Json = {
        "v": connection.version,
        "user": gateway.world.bot,
        "guilds": [{"id": guild, "unavailable": True} for guild in gateway.world.guilds_of(shard)],
        "session_id": session.id,
        "resume_gateway_url": gateway.resume_url,
        "application": gateway.world.application,
        "session_type": "normal",
        "private_channels": [],
        "_trace": _TRACE,
    }
    session.dispatch("READY", ready | ({"shard": [shard.id, shard.count]} if "shard" in data else {}))
    _announce(gateway, connection, session)


def resume(gateway: SimulatedGateway, connection: SimulatedConnection, data: Json) -> None:
    """Answer op 6 with the missed events, in order and once, then RESUMED.

    A session that is unknown, or no longer has the events that the client needs, is invalid (op 9).
    """
    _refuse_second(connection)
    if not gateway.knows(data.get("token")):
        raise HangUp(CloseCode.AUTHENTICATION_FAILED)
    identity, sequence = data.get("session_id"), data.get("seq")
    if not isinstance(identity, str) or type(sequence) is not int:
        raise HangUp(CloseCode.DECODE_ERROR)
    gateway.expire()
    session = gateway.sessions.get(identity)
    if session is None or session.encoding is not connection.encoding:
        connection.send(Op.INVALID_SESSION, False)
        return
    if not 0 <= sequence <= session.sequence:
        gateway.take_over(session)
        gateway.end_session(session)
        raise HangUp(CloseCode.INVALID_SEQUENCE)
    missed = session.buffer.after(sequence)
    if missed is None:
        gateway.take_over(session)
        gateway.end_session(session)
        connection.send(Op.INVALID_SESSION, False)
        return
    gateway.take_over(session)
    connection.session = session
    session.replay(missed, connection)
    session.dispatch("RESUMED", {"_trace": _TRACE})
    _announce(gateway, connection, session)


def _announce(gateway: SimulatedGateway, connection: SimulatedConnection, session: SimulatedSession) -> None:
    connection.announcing = asyncio.create_task(gateway.announce(session, connection))
