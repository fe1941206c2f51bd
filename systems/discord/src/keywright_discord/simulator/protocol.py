"""The life of a connection, from its address to its close."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from typing import Any
from urllib.parse import parse_qs, urlsplit

from websockets.asyncio.server import ServerConnection
from websockets.exceptions import ConnectionClosed

from keywright_discord.gateway.close_codes import CloseCode
from keywright_discord.gateway.opcodes import Op
from keywright_discord.simulator.connection import SimulatedConnection
from keywright_discord.simulator.gateway import Received, SimulatedGateway
from keywright_discord.simulator.hang_up import HangUp
from keywright_discord.simulator.identity import identify, resume
from keywright_discord.simulator.requests import (
    change_presence,
    change_voice,
    request_channels,
    request_members,
    request_sounds,
)
from keywright_discord.simulator.wire import PacketEncoding, packing

__all__ = ["LARGEST_PAYLOAD", "VERSIONS", "converse"]

VERSIONS = (9, 10)
LARGEST_PAYLOAD = 4096

_Command = Callable[[SimulatedGateway, SimulatedConnection, dict[str, Any]], None]

_COMMANDS: Mapping[int, _Command] = {
    Op.IDENTIFY: identify,
    Op.RESUME: resume,
    Op.PRESENCE_UPDATE: change_presence,
    Op.VOICE_STATE_UPDATE: change_voice,
    Op.REQUEST_GUILD_MEMBERS: request_members,
    Op.REQUEST_SOUNDBOARD_SOUNDS: request_sounds,
    Op.REQUEST_CHANNEL_INFO: request_channels,
}


async def converse(gateway: SimulatedGateway, socket: ServerConnection) -> None:
    """Send hello, then answer the client until one of the two closes."""
    try:
        connection = _connection(gateway, socket)
    except HangUp as refusal:
        await socket.close(refusal.code, refusal.code.reason)
        return
    gateway.connections[connection.number] = connection
    interval = gateway.settings.heartbeat_interval_ms
    connection.send(Op.HELLO, {"heartbeat_interval": interval, "_trace": ["keywright-simulator"]})
    writing = asyncio.create_task(connection.write())
    try:
        await _listen(gateway, connection, socket)
    finally:
        gateway.disconnected(connection, socket.close_code)
        if connection.announcing is not None:
            connection.announcing.cancel()
        writing.cancel()
        await asyncio.wait([writing])


def _connection(gateway: SimulatedGateway, socket: ServerConnection) -> SimulatedConnection:
    """Return the connection that `v`, `encoding` and `compress` of the URL ask for."""
    assert socket.request is not None
    address = urlsplit(socket.request.path)
    asked = {name: values[-1] for name, values in parse_qs(address.query).items()}
    version, compress = asked.get("v", ""), asked.get("compress")
    if version not in map(str, VERSIONS):
        raise HangUp(CloseCode.INVALID_VERSION)
    encoding = _encoding(asked.get("encoding", "json"), integer_ids=gateway.settings.integer_ids)
    packed = packing(compress, encoding)
    if packed is None:
        raise HangUp(CloseCode.DECODE_ERROR)
    return SimulatedConnection(
        socket,
        gateway.settings,
        encoding,
        packed,
        version=int(version),
        path=address.path,
        compress=compress,
    )


def _encoding(name: str, *, integer_ids: bool) -> PacketEncoding:
    if name == "json":
        return PacketEncoding.JSON
    if name == "etf":
        return PacketEncoding.ETF_INTEGER_IDS if integer_ids else PacketEncoding.ETF
    raise HangUp(CloseCode.DECODE_ERROR)


async def _listen(
    gateway: SimulatedGateway, connection: SimulatedConnection, socket: ServerConnection
) -> None:
    try:
        async for message in socket:
            if connection.hung_up_with is None:
                _hear(gateway, connection, message)
    except ConnectionClosed:
        return


def _hear(gateway: SimulatedGateway, connection: SimulatedConnection, message: str | bytes) -> None:
    try:
        if not connection.sends.admit():
            raise HangUp(CloseCode.RATE_LIMITED)
        _obey(gateway, connection, message)
    except HangUp as refusal:
        gateway.hang_up(connection, refusal.code)


def _obey(gateway: SimulatedGateway, connection: SimulatedConnection, message: str | bytes) -> None:
    size = len(message.encode() if isinstance(message, str) else message)
    if size > LARGEST_PAYLOAD:
        raise HangUp(CloseCode.DECODE_ERROR)
    packet = connection.encoding.decode(message)
    if not isinstance(packet, dict) or type(packet.get("op")) is not int:
        raise HangUp(CloseCode.DECODE_ERROR)
    op, data = packet["op"], packet.get("d")
    shard = connection.shard
    gateway.received.append(Received(op, data, shard.id if shard else None, connection.number))
    if op == Op.HEARTBEAT:
        _heartbeat(connection, data)
        return
    if op not in _COMMANDS:
        raise HangUp(CloseCode.UNKNOWN_OPCODE)
    if connection.session is None and op not in (Op.IDENTIFY, Op.RESUME):
        raise HangUp(CloseCode.NOT_AUTHENTICATED)
    if not isinstance(data, dict):
        raise HangUp(CloseCode.DECODE_ERROR)
    _COMMANDS[op](gateway, connection, data)


def _heartbeat(connection: SimulatedConnection, sequence: object) -> None:
    """Acknowledge op 1, which has the last sequence of the client; also before it has a session."""
    if sequence is not None and type(sequence) is not int:
        raise HangUp(CloseCode.DECODE_ERROR)
    connection.heartbeat()
    if connection.acks:
        connection.send(Op.HEARTBEAT_ACK, None)
