"""The simulated Discord: the routes that a bot needs to run channels and roles, on one port."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route
from starlette.types import Receive, Scope, Send

from keywright_service.testing.discord_rest_simulator.limits import Limits
from keywright_service.testing.discord_rest_simulator.world import Guild
from keywright_service.testing.http_faults import FaultyServer

__all__ = ["DiscordRestSimulator"]

Handler = Callable[[Request], Awaitable[Response]]

UNKNOWN = {
    "application": 10002,
    "channel": 10003,
    "guild": 10004,
    "member": 10007,
    "role": 10011,
    "user": 10013,
    "webhook": 10015,
}
CHANGEABLE = ("name", "topic", "parent_id", "permission_overwrites")


class DiscordRestSimulator(FaultyServer):
    """`with DiscordRestSimulator() as discord:`; `discord.api_url` is what a client is given."""

    def __init__(
        self,
        guild: Guild | None = None,
        *,
        token: str = "simulated-bot-token",
        host: str = "127.0.0.1",
        port: int = 0,
    ) -> None:
        self.guild = guild or Guild()
        self.token = token
        self.limits = Limits()
        self._app = Starlette(routes=self.routes())
        super().__init__(self._limited, host=host, port=port)

    @property
    def api_url(self) -> str:
        return f"{self.url}/api/v10"

    async def _limited(self, scope: Scope, receive: Receive, send: Send) -> None:
        refusal, headers = self.limits.before(scope)
        if refusal is not None:
            await refusal(scope, receive, send)
            return

        async def send_limited(message: Any) -> None:
            if message["type"] == "http.response.start":
                message["headers"] += [(k.lower().encode(), v.encode()) for k, v in headers.items()]
            await send(message)

        await self._app(scope, receive, send_limited)

    def routes(self) -> list[Route]:
        guild = "/api/v10/guilds/{guild:int}"
        commands = "/api/v10/applications/{application:int}/guilds/{guild:int}/commands"
        table: dict[tuple[str, str], Handler] = {
            ("GET", "/api/v10/gateway/bot"): self._gateway,
            ("GET", "/api/v10/applications/@me"): self._application,
            ("PATCH", "/api/v10/applications/@me"): self._change_application,
            ("GET", commands): self._commands,
            ("PUT", commands): self._set_commands,
            ("PATCH", "/api/v10/webhooks/{application:int}/{token}/messages/@original"): self._edit_reply,
            ("GET", "/api/v10/users/@me"): self._me,
            ("GET", "/api/v10/users/{user:int}"): self._user,
            ("GET", f"{guild}/channels"): self._channels,
            ("POST", f"{guild}/channels"): self._make_channel,
            ("GET", "/api/v10/channels/{channel:int}"): self._channel,
            ("PATCH", "/api/v10/channels/{channel:int}"): self._change_channel,
            ("DELETE", "/api/v10/channels/{channel:int}"): self._delete_channel,
            ("POST", "/api/v10/channels/{channel:int}/messages"): self._post,
            ("GET", f"{guild}/roles"): self._roles,
            ("POST", f"{guild}/roles"): self._make_role,
            ("GET", f"{guild}/roles/{{role:int}}"): self._role,
            ("PATCH", f"{guild}/roles/{{role:int}}"): self._change_role,
            ("DELETE", f"{guild}/roles/{{role:int}}"): self._delete_role,
            ("GET", f"{guild}/members/{{user:int}}"): self._member,
            ("PUT", f"{guild}/members/{{user:int}}/roles/{{role:int}}"): self._add_role,
            ("DELETE", f"{guild}/members/{{user:int}}/roles/{{role:int}}"): self._remove_role,
        }
        return [Route(path, self._checked(each), methods=[method]) for (method, path), each in table.items()]

    def _checked(self, handler: Handler) -> Handler:
        """Check the token and all that the path names first, as Discord does."""
        there: dict[str, Callable[[int], bool]] = {
            "application": lambda application: application == self.guild.bot,
            "guild": lambda guild: guild == self.guild.id,
            "channel": lambda channel: channel in self.guild.channels,
            "role": lambda role: role in self.guild.roles,
        }

        async def handled(request: Request) -> Response:
            if request.headers.get("authorization") != f"Bot {self.token}":
                return JSONResponse({"message": "401: Unauthorized", "code": 0}, 401)
            for name, value in request.path_params.items():
                if name in there and not there[name](value):
                    return _unknown(name)
            return await handler(request)

        return handled

    def endpoint_problem(self, url: str) -> str | None:
        """Return why Discord would not send interactions here, after a try. This simulator sends none."""
        return f"{url} was not tried."

    async def _application(self, request: Request) -> Response:
        return JSONResponse(self.guild.application)

    async def _change_application(self, request: Request) -> Response:
        url = (await request.json())["interactions_endpoint_url"]
        found = await run_in_threadpool(self.endpoint_problem, url)
        if found is not None:
            problem = {"code": "URL_INVALID", "message": f"The url could not be verified. {found}"}
            errors = {"interactions_endpoint_url": {"_errors": [problem]}}
            return JSONResponse({"message": "Invalid Form Body", "code": 50035, "errors": errors}, 400)
        self.guild.application["interactions_endpoint_url"] = url
        return JSONResponse(self.guild.application)

    async def _commands(self, request: Request) -> Response:
        return JSONResponse(self.guild.commands)

    async def _set_commands(self, request: Request) -> Response:
        self.guild.set_commands(await request.json())
        return JSONResponse(self.guild.commands)

    async def _edit_reply(self, request: Request) -> Response:
        token = request.path_params["token"]
        if token not in self.guild.tokens:
            return _unknown("webhook")
        self.guild.replies[token] = await request.json()
        return JSONResponse({"id": str(self.guild.new_id())})

    async def _gateway(self, request: Request) -> Response:
        starts = {"total": 1000, "remaining": 999, "reset_after": 14_400_000, "max_concurrency": 1}
        info = {"url": "wss://gateway.discord.gg", "shards": 1, "session_start_limit": starts}
        return JSONResponse(info)

    async def _me(self, request: Request) -> Response:
        return JSONResponse({"id": str(self.guild.bot), "username": "keywright", "bot": True})

    async def _user(self, request: Request) -> Response:
        user = request.path_params["user"]
        name = self.guild.names.get(user)
        if name is None:
            return _unknown("user")
        return JSONResponse({"id": str(user), "username": name.lower(), "global_name": name})

    async def _channels(self, request: Request) -> Response:
        return JSONResponse(list(self.guild.channels.values()))

    async def _make_channel(self, request: Request) -> Response:
        given = await request.json()
        if not 1 <= len(given.get("name", "")) <= 100:
            return _invalid("name")
        return JSONResponse(self.guild.channels[self.guild.make_channel(given)], 201)

    async def _channel(self, request: Request) -> Response:
        return JSONResponse(self.guild.channels[request.path_params["channel"]])

    async def _change_channel(self, request: Request) -> Response:
        channel = self.guild.channels[request.path_params["channel"]]
        given = await request.json()
        channel.update({name: given[name] for name in CHANGEABLE if name in given})
        return JSONResponse(channel)

    async def _delete_channel(self, request: Request) -> Response:
        return JSONResponse(self.guild.channels.pop(request.path_params["channel"]))

    async def _post(self, request: Request) -> Response:
        given = await request.json()
        nonce = given.get("nonce") if given.get("enforce_nonce") else None
        channel, components = request.path_params["channel"], given.get("components")
        message = self.guild.post(channel, given["content"], nonce, components)
        return JSONResponse({"id": str(message), "content": given["content"]})

    async def _roles(self, request: Request) -> Response:
        return JSONResponse(list(self.guild.roles.values()))

    async def _make_role(self, request: Request) -> Response:
        given = await request.json()
        if len(given.get("name", "")) > 100:
            return _invalid("name")
        return JSONResponse(self.guild.roles[self.guild.make_role(given)])

    async def _role(self, request: Request) -> Response:
        return JSONResponse(self.guild.roles[request.path_params["role"]])

    async def _change_role(self, request: Request) -> Response:
        role = self.guild.roles[request.path_params["role"]]
        given = await request.json()
        role.update({name: given[name] for name in ("name", "color", "mentionable") if name in given})
        return JSONResponse(role)

    async def _delete_role(self, request: Request) -> Response:
        self.guild.delete_role(request.path_params["role"])
        return Response(status_code=204)

    async def _member(self, request: Request) -> Response:
        user = request.path_params["user"]
        if user not in self.guild.members:
            return _unknown("member")
        roles = [str(role) for role in sorted(self.guild.members[user])]
        return JSONResponse(
            {
                "user": {"id": str(user), "username": self.guild.names[user]},
                "nick": None,
                "roles": roles,
                "joined_at": self.guild.joined_at.get(user),
            }
        )

    async def _add_role(self, request: Request) -> Response:
        user = request.path_params["user"]
        if user not in self.guild.members:
            return _unknown("member")
        self.guild.members[user].add(request.path_params["role"])
        return Response(status_code=204)

    async def _remove_role(self, request: Request) -> Response:
        user = request.path_params["user"]
        if user not in self.guild.members:
            return _unknown("member")
        self.guild.members[user].discard(request.path_params["role"])
        return Response(status_code=204)


def _unknown(what: str) -> Response:
    return JSONResponse({"message": f"Unknown {what.title()}", "code": UNKNOWN[what]}, 404)


def _invalid(field: str) -> Response:
    problem = {"_errors": [{"code": "BASE_TYPE_BAD_LENGTH", "message": "Must be of another length."}]}
    return JSONResponse({"message": "Invalid Form Body", "code": 50035, "errors": {field: problem}}, 400)
