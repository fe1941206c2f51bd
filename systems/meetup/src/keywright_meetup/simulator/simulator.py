"""The simulated Meetup: its API and its OAuth provider, on one port."""

from __future__ import annotations

from starlette.applications import Starlette
from starlette.routing import Route

from keywright_meetup.simulator.api import GraphQl
from keywright_meetup.simulator.oauth import CLIENT_ID, CLIENT_SECRET, OAuthProvider
from keywright_meetup.simulator.world import MeetupWorld
from keywright_service.testing.http_faults import FaultyServer

__all__ = ["MeetupSimulator"]


class MeetupSimulator(FaultyServer):
    """The server: `with MeetupSimulator() as meetup:`. Its addresses are for the client under test."""

    client_id = CLIENT_ID
    client_secret = CLIENT_SECRET

    def __init__(self, world: MeetupWorld | None = None, *, host: str = "127.0.0.1", port: int = 0) -> None:
        self.world = world or MeetupWorld()
        self.oauth = OAuthProvider(self.world)
        self.graphql = GraphQl(self.world, self.oauth)
        routes = [
            Route("/gql-ext", self.graphql.answer, methods=["POST"]),
            Route("/oauth2/authorize", self.oauth.authorize, methods=["GET", "POST"]),
            Route("/oauth2/access", self.oauth.token, methods=["POST"]),
        ]
        super().__init__(Starlette(routes=routes), host=host, port=port)

    @property
    def api_url(self) -> str:
        return f"{self.url}/gql-ext"

    @property
    def authorize_url(self) -> str:
        return f"{self.url}/oauth2/authorize"

    @property
    def token_url(self) -> str:
        return f"{self.url}/oauth2/access"
