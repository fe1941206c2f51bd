"""Requests to Discord that it answers with an event, or refuses for now with RATE_LIMITED.

A refused request was not carried out. So a request is done when its answer comes; one that Discord ignores,
such as for a guild that the shard does not have, is done after a while.
"""

from __future__ import annotations

import asyncio
from typing import Any

import msgspec

from keywright_discord.gateway.actions import Dispatch
from keywright_discord.gateway.opcodes import Op

__all__ = ["ANSWERS", "PendingRequests"]

ANSWERS: dict[int, str] = {
    Op.REQUEST_GUILD_MEMBERS: "GUILD_MEMBERS_CHUNK",
    Op.REQUEST_SOUNDBOARD_SOUNDS: "SOUNDBOARD_SOUNDS",
    Op.REQUEST_CHANNEL_INFO: "CHANNEL_INFO",
}
RATE_LIMITED = "RATE_LIMITED"

_EVENTS = frozenset({RATE_LIMITED, *ANSWERS.values()})
_Id = str | int | None


class _About(msgspec.Struct):
    """What an answer repeats of its request. Ids may be integers."""

    guild_id: _Id = None
    nonce: str | None = None


class _Limit(msgspec.Struct):
    opcode: int
    retry_after: float
    meta: _About = msgspec.field(default_factory=_About)


class _Request(msgspec.Struct, eq=False):
    op: int
    guilds: frozenset[str]
    nonce: str | None
    outcome: asyncio.Future[float | None]

    def fits(self, about: _About) -> bool:
        same_guild = about.guild_id is None or str(about.guild_id) in self.guilds
        return same_guild and (about.nonce is None or about.nonce == self.nonce)


class PendingRequests:
    """The requests of one connection that wait for their outcome, oldest first."""

    def __init__(self) -> None:
        self._waiting: list[_Request] = []

    def expect(self, op: int, d: dict[str, Any]) -> asyncio.Future[float | None]:
        """Return the outcome of a request that is about to be sent.

        It is None when the request was answered, else the seconds after which it may be sent again.
        """
        outcome: asyncio.Future[float | None] = asyncio.get_running_loop().create_future()
        listed = d.get("guild_ids")
        guilds = [*(listed if isinstance(listed, list) else ()), d.get("guild_id")]
        nonce = d.get("nonce")
        request = _Request(
            op, frozenset(map(str, guilds)), nonce if isinstance(nonce, str) else None, outcome
        )
        self._waiting.append(request)
        outcome.add_done_callback(lambda _: self._waiting.remove(request))
        return outcome

    def heard(self, dispatch: Dispatch) -> None:
        """Match an event with the request that it is the outcome of, if it is one."""
        if not self._waiting or dispatch.event not in _EVENTS:
            return
        try:
            if dispatch.event == RATE_LIMITED:
                limit = msgspec.json.decode(dispatch.data, type=_Limit)
                self._settle(limit.opcode, limit.meta, max(0.0, limit.retry_after))
            else:
                about = msgspec.json.decode(dispatch.data, type=_About)
                op = next(op for op, event in ANSWERS.items() if event == dispatch.event)
                self._settle(op, about, None)
        except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
            return  # malformed: the request is done after a while, as without an answer

    def _settle(self, op: int, about: _About, outcome: float | None) -> None:
        for request in self._waiting:
            if request.op == op and not request.outcome.done() and request.fits(about):
                request.outcome.set_result(outcome)
                return
