"""The endpoint to which Discord sends interactions: people use slash commands and press buttons of the bot.

A request counts if Discord signed it (Ed25519), not long ago, and it is for our application and guild.
Discord waits three seconds for an answer. Work that takes longer is deferred: the person sees that the bot is
at it, and the reply is written later.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping
from datetime import datetime, timedelta
from http import HTTPStatus
from typing import Any, NamedTuple

import msgspec
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
from starlette.datastructures import Headers
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from keywright import Secret
from keywright.errors import KeywrightError
from keywright.tools.http import body_of
from keywright_service.discord_rest import Application, DiscordGuild, User
from keywright_service.discord_rest.objects import Bits, Snowflake
from keywright_service.errors import PlatformError
from keywright_service.http import json_response
from keywright_service.http_client import MALFORMED

__all__ = ["PATH", "Interaction", "InteractionsEndpoint", "Reply", "endpoint_of"]

log = logging.getLogger("keywright.meetup")

PATH = "/discord/interactions"
LARGEST_BODY = 256 * 1024
SIGNED_WITHIN = timedelta(minutes=5)
REPLY_SECONDS = 2.0  # of the three that Discord waits
WORK_SECONDS = 60.0
# What Discord calls the kinds of interactions and of answers to them.
PING, COMMAND, COMPONENT = 1, 2, 3
PONG, MESSAGE, DEFERRED = 1, 4, 5
EPHEMERAL = 1 << 6

TROUBLE = "Something went wrong on our side. Try again in a few minutes: nothing happens twice."
FOREIGN = "This bot serves another server."


class Option(msgspec.Struct, frozen=True):
    name: str
    value: str | int | float | bool | None = None


class Data(msgspec.Struct, frozen=True):
    """The command with its options, or the id of the button."""

    name: str = ""
    options: tuple[Option, ...] = ()
    custom_id: str = ""


class InvokingMember(msgspec.Struct, frozen=True):
    user: User
    roles: tuple[Snowflake, ...] = ()
    permissions: Bits = "0"


class Interaction(msgspec.Struct, frozen=True):
    """What somebody asked, where, and who they are, as Discord sends it."""

    id: Snowflake
    application_id: Snowflake
    type: int
    token: str = ""
    guild_id: Snowflake | None = None
    channel_id: Snowflake | None = None
    member: InvokingMember | None = None
    data: Data = Data()

    def __repr__(self) -> str:
        return f"<Interaction {self.id}>"


class Reply(NamedTuple):
    """What only the person who asked sees: a text, and rows of buttons. Nobody is notified of mentions."""

    content: str
    components: tuple[Mapping[str, Any], ...] = ()

    def as_data(self) -> dict[str, Any]:
        return {
            "content": self.content,
            "components": list(self.components),
            "allowed_mentions": {"parse": []},
        }

    def as_answer(self) -> Response:
        return json_response({"type": MESSAGE, "data": {**self.as_data(), "flags": EPHEMERAL}})


def endpoint_of(public_url: str) -> str:
    """Return the address that is entered at Discord."""
    return f"{public_url.rstrip('/')}{PATH}"


class InteractionsEndpoint:
    """`answer` does the work of an interaction. Call `close` at the end, which waits for late replies.

    `count` is called with the outcome of every request: refused, replied, deferred; and with failed, if the
    reply is that something went wrong.
    """

    def __init__(
        self,
        api: DiscordGuild,
        answer: Callable[[Interaction], Awaitable[Reply]],
        clock: Callable[[], datetime],
        *,
        count: Callable[[str], None] = lambda _: None,
        reply_seconds: float = REPLY_SECONDS,
    ) -> None:
        self._count = count
        self._api = api
        self._reply_seconds = reply_seconds
        self._answer = answer
        self._clock = clock
        self._application: Application | None = None
        self._late: set[asyncio.Task[None]] = set()

    async def application(self) -> Application:
        """Return our application at Discord, whose key verifies requests; asked for once."""
        if self._application is None:
            self._application = await self._api.application()
        return self._application

    def route(self) -> Route:
        return Route(PATH, self._handle, methods=["POST"])

    async def close(self, grace: float) -> None:
        """Wait so many seconds for late replies."""
        if self._late:
            _, unfinished = await asyncio.wait(self._late, timeout=grace)
            for task in unfinished:
                task.cancel()

    async def _handle(self, request: Request) -> Response:
        deadline = asyncio.get_running_loop().time() + self._reply_seconds
        body = await body_of(request, LARGEST_BODY)
        try:
            async with asyncio.timeout_at(deadline):
                application = await self.application()
        except (PlatformError, TimeoutError) as error:
            log.warning("an interaction cannot be verified: %s", str(error) or "Discord does not answer")
            return self._refusal("try again later", HTTPStatus.SERVICE_UNAVAILABLE)
        if not is_signed(body, request.headers, application.verify_key, self._clock()):
            return self._refusal("invalid request signature", HTTPStatus.UNAUTHORIZED)
        try:
            interaction = msgspec.json.decode(body, type=Interaction)
        except MALFORMED as error:
            log.warning("an interaction cannot be read: %s", error)
            return self._refusal("not an interaction", HTTPStatus.BAD_REQUEST)
        if interaction.type == PING:
            return json_response({"type": PONG})
        # Such as a question for completions, which must not do anything.
        if interaction.type not in (COMMAND, COMPONENT):
            return self._refusal("not a command or a button", HTTPStatus.BAD_REQUEST)
        ours = interaction.application_id == application.id
        if not ours or interaction.guild_id != str(self._api.guild) or interaction.member is None:
            self._count("refused")
            return Reply(FOREIGN).as_answer()
        return await self._answered(interaction, deadline)

    def _refusal(self, error: str, status: HTTPStatus) -> Response:
        self._count("refused")
        return json_response({"error": error}, status)

    async def _answered(self, interaction: Interaction, deadline: float) -> Response:
        work = asyncio.create_task(self._reply(interaction))
        left = max(deadline - asyncio.get_running_loop().time(), 0.0)
        done, _ = await asyncio.wait({work}, timeout=left)
        self._count("replied" if done else "deferred")
        if done:
            return work.result().as_answer()
        late = asyncio.create_task(self._write_late(interaction, work))
        self._late.add(late)
        late.add_done_callback(self._late.discard)
        return json_response({"type": DEFERRED, "data": {"flags": EPHEMERAL}})

    async def _reply(self, interaction: Interaction) -> Reply:
        try:
            async with asyncio.timeout(WORK_SECONDS):
                return await self._answer(interaction)
        except (KeywrightError, TimeoutError) as error:
            log.warning("interaction %s: %s", interaction.id, str(error) or "it took too long")
        except Exception:  # the person waits for a reply
            log.exception("interaction %s", interaction.id)
        self._count("failed")
        return Reply(TROUBLE)

    async def _write_late(self, interaction: Interaction, work: asyncio.Task[Reply]) -> None:
        reply = await work
        try:
            written = await self._api.edit_reply(
                int(interaction.application_id), Secret(interaction.token), **reply.as_data()
            )
        except PlatformError as error:
            log.warning("no reply to interaction %s: %s", interaction.id, error)
        else:
            if not written:
                log.warning("no reply to interaction %s: it is too late", interaction.id)


def is_signed(body: bytes, headers: Headers, key: str, now: datetime) -> bool:
    """Return whether Discord signed this body a short time ago."""
    timestamp = headers.get("X-Signature-Timestamp", "")
    try:
        public = Ed25519PublicKey.from_public_bytes(bytes.fromhex(key))
        public.verify(bytes.fromhex(headers.get("X-Signature-Ed25519", "")), timestamp.encode() + body)
        return abs(now.timestamp() - int(timestamp)) <= SIGNED_WITHIN.total_seconds()
    except (InvalidSignature, ValueError):
        return False
