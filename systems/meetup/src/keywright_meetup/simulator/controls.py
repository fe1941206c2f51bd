"""A simulated Discord that people use from a shell: commands and buttons as one of its members."""

from __future__ import annotations

import json
from typing import Any
from urllib.parse import parse_qs

import httpx
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route

from keywright.tools.http import body_of
from keywright_meetup.simulator.discord import SimulatedDiscord

__all__ = ["PATH", "DiscordWithControls"]

PATH = "/simulated"
LARGEST_FORM = 16 * 1024


class DiscordWithControls(SimulatedDiscord):
    """`GET /simulated` shows the guild, `POST /simulated` uses a command or presses a button.

    A form has the fields `as` (a member), `command` or `button`, and optionally `channel`. Each other field
    is an option of the command. Members and channels are given by name or id.
    """

    def routes(self) -> list[Route]:
        shown = Route(PATH, self._show, methods=["GET"])
        return [*super().routes(), shown, Route(PATH, self._use, methods=["POST"])]

    async def _show(self, request: Request) -> Response:
        guild = self.guild
        channels = [
            {
                "id": channel["id"],
                "name": channel["name"],
                "topic": channel["topic"],
                "messages": [text for place, text in guild.messages if place == int(channel["id"])],
            }
            for channel in guild.text_channels
        ]
        members = [
            {"id": str(user), "name": guild.names[user], "roles": sorted(guild.roles_of(user))}
            for user in guild.members
            if user != guild.bot
        ]
        commands = [each["name"] for each in guild.commands]
        shown = {"members": members, "channels": channels, "commands": commands}
        return Response(json.dumps(shown, indent=2) + "\n", media_type="application/json")

    async def _use(self, request: Request) -> Response:
        given = parse_qs((await body_of(request, LARGEST_FORM)).decode(errors="replace"))
        form: dict[str, str] = {name: values[-1] for name, values in given.items()}
        try:
            reply = await run_in_threadpool(self._used, form)
        except (LookupError, ValueError) as error:
            return PlainTextResponse(f"{error.args[0]}\n", 400)
        except httpx.HTTPError as error:
            return PlainTextResponse(f"The bot does not answer: {error}\n", 502)
        buttons = [button for row in reply["components"] for button in row["components"]]
        links = [f"{each['label']}: {each['url']}" for each in buttons if "url" in each]
        return PlainTextResponse("\n".join([reply["content"], *links]) + "\n")

    def _used(self, form: dict[str, str]) -> dict[str, Any]:
        if self.guild.application["interactions_endpoint_url"] is None:
            raise LookupError("Discord does not know where to send this. Run keywright meetup register.")
        user = self._member_named(form.pop("as", ""))
        channel = self._channel_named(form.pop("channel")) if "channel" in form else None
        if "button" in form:
            return self.press(user, form["button"], channel)
        name = form.pop("command", "")
        options = {each: self._option(each, value) for each, value in form.items()}
        return self.command(user, name, channel, **options)

    def _option(self, name: str, value: str) -> str | int | bool:
        if name == "user":
            return str(self._member_named(value))
        if name == "days":
            if not value.isdecimal():
                raise ValueError(f"days must be a number, got {value!r}.")
            return int(value)
        return value == "true" if name == "only_as_host" else value

    def _member_named(self, given: str) -> int:
        names = {name: user for user, name in self.guild.names.items() if user in self.guild.members}
        return _found("member", given, names)

    def _channel_named(self, given: str) -> int:
        names = {channel["name"]: int(channel["id"]) for channel in self.guild.text_channels}
        return _found("channel", given, names)


def _found(what: str, given: str, names: dict[str, int]) -> int:
    for name, identity in names.items():
        if given in (name, str(identity)):
            return identity
    raise LookupError(f"There is no {what} {given!r}. There are: {', '.join(names) or 'none'}.")
