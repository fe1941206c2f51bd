"""The simulated Meetup: its API and its OAuth provider, on one port."""

from __future__ import annotations

from typing import Self

from starlette.applications import Starlette
from starlette.routing import Route

from keywright.testing.http_faults import Answered, FaultyApp
from keywright.testing.http_server import HttpServer
from keywright.testing.meetup_simulator.api import GraphQl
from keywright.testing.meetup_simulator.oauth import CLIENT_ID, CLIENT_SECRET, OAuthProvider
from keywright.testing.meetup_simulator.world import MeetupWorld

__all__ = ["MeetupSimulator"]


class MeetupSimulator:
    """`with MeetupSimulator() as meetup:`; its urls are what a client is given."""

    client_id = CLIENT_ID
    client_secret = CLIENT_SECRET

    def __init__(self, world: MeetupWorld | None = None) -> None:
        self.world = world or MeetupWorld()
        self.oauth = OAuthProvider(self.world)
        self.graphql = GraphQl(self.world, self.oauth)
        routes = [
            Route("/gql-ext", self.graphql.answer, methods=["POST"]),
            Route("/oauth2/authorize", self.oauth.authorize, methods=["GET", "POST"]),
            Route("/oauth2/access", self.oauth.token, methods=["POST"]),
        ]
        self.faults = FaultyApp(Starlette(routes=routes))
        self._server = HttpServer(self.faults)

    def __enter__(self) -> Self:
        self._server.__enter__()
        return self

    def __exit__(self, *exc: object) -> None:
        self._server.__exit__(*exc)

    @property
    def api_url(self) -> str:
        return f"{self._server.url}/gql-ext"

    @property
    def authorize_url(self) -> str:
        return f"{self._server.url}/oauth2/authorize"

    @property
    def token_url(self) -> str:
        return f"{self._server.url}/oauth2/access"

    @property
    def answered(self) -> list[Answered]:
        """Every request since the start, oldest first."""
        return self.faults.answered
