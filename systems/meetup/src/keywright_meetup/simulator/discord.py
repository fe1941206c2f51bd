"""A simulated Discord whose members use commands and buttons: signed interactions are sent to a bot."""

from __future__ import annotations

import json
import secrets
import time
from collections.abc import Callable, Mapping
from typing import Any

import httpx
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from keywright.testing import wait_until
from keywright_service.testing.discord_rest_simulator import DiscordRestSimulator, Guild

__all__ = ["SimulatedDiscord"]

PING, COMMAND, COMPONENT = 1, 2, 3
DEFERRED = 5
# Discord waits for three; here a machine may be busy.
REPLY_SECONDS = 30.0

Json = dict[str, Any]


class SimulatedDiscord(DiscordRestSimulator):
    """Discord with interactions: `discord.command(user, "link")` returns the reply that the user sees."""

    def __init__(
        self,
        guild: Guild | None = None,
        *,
        clock: Callable[[], float] = time.time,
        host: str = "127.0.0.1",
        port: int = 0,
    ) -> None:
        super().__init__(guild, host=host, port=port)
        self._key = Ed25519PrivateKey.generate()
        self._clock = clock
        self.guild.application["verify_key"] = self._key.public_key().public_bytes_raw().hex()

    def endpoint_problem(self, url: str) -> str | None:
        """Try an endpoint as Discord does: it must answer a ping, and refuse one with a wrong signature."""
        ping = self.interaction(PING)
        forged = {**self.signature(ping), "X-Signature-Ed25519": "00" * 64}
        try:
            right, wrong = (
                httpx.post(url, content=ping, headers=headers, timeout=REPLY_SECONDS)
                for headers in (self.signature(ping), forged)
            )
        except httpx.HTTPError as error:
            return f"It does not answer: {error!r}."
        if (right.status_code, wrong.status_code, right.text) == (200, 401, '{"type":1}'):
            return None
        return f"It answers {right.status_code} {right.text}, and to a wrong signature {wrong.status_code}."

    def command(self, user: int, name: str, channel: int | None = None, /, **options: object) -> Json:
        """Use a slash command as a member, in a channel. Return the reply."""
        data = {
            "name": name,
            "options": [{"name": each, "value": value} for each, value in options.items()],
        }
        return self._asked(COMMAND, user, channel, data)

    def press(self, user: int, button: str, channel: int | None = None) -> Json:
        """Press a button of a message in a channel, by its id. Return the reply."""
        return self._asked(COMPONENT, user, channel, {"custom_id": button, "component_type": 2})

    def interaction(
        self, kind: int, user: int | None = None, channel: int | None = None, data: Json | None = None
    ) -> bytes:
        """Return the body of an interaction."""
        body: Json = {
            "id": str(self.guild.new_id()),
            "application_id": str(self.guild.bot),
            "type": kind,
            "token": secrets.token_urlsafe(24),
            "version": 1,
        }
        if user is not None:
            body |= {
                "guild_id": str(self.guild.id),
                "channel_id": str(self.guild.id if channel is None else channel),
                "member": {
                    "user": {"id": str(user), "username": self.guild.names[user].lower()},
                    "roles": [str(role) for role in sorted(self.guild.members[user])],
                    "permissions": str(self.guild.permissions.get(user, 0)),
                },
                "data": data or {},
            }
        return json.dumps(body).encode()

    def signature(self, body: bytes, *, seconds_ago: float = 0.0) -> dict[str, str]:
        """Return the headers with which Discord signs a request."""
        timestamp = str(int(self._clock() - seconds_ago))
        signed = self._key.sign(timestamp.encode() + body).hex()
        return {"X-Signature-Ed25519": signed, "X-Signature-Timestamp": timestamp}

    def send(
        self, body: bytes, headers: Mapping[str, str] | None = None, *, url: str | None = None
    ) -> httpx.Response:
        """Send an interaction to the endpoint that is registered, or to another."""
        url = url or self.guild.application["interactions_endpoint_url"]
        assert url is not None, "no endpoint is registered: run keywright meetup register"
        given = {"Content-Type": "application/json", **(headers or self.signature(body))}
        return httpx.post(url, content=body, headers=given, timeout=REPLY_SECONDS)

    def _asked(self, kind: int, user: int, channel: int | None, data: Json) -> Json:
        return self.reply_to(self.interaction(kind, user, channel, data))

    def reply_to(self, body: bytes, *, url: str | None = None) -> Json:
        """Send an interaction, and return the reply that the user sees in the end."""
        token = json.loads(body)["token"]
        self.guild.tokens.add(token)
        answer = self.send(body, url=url)
        answer.raise_for_status()
        reply: Json = answer.json()
        if reply["type"] == DEFERRED:
            return wait_until(lambda: self.guild.replies.get(token), "a reply that was deferred")
        found: Json = reply["data"]
        return found
