"""Flask-Session at work: an application with each serializer, and visitors who come, return and leave."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from flask import Flask, session
from flask_session import Session
from redis import Redis

from foreign.workload import URL, announce, turns

VISITORS = 200


def application(name: str, **options: Any) -> Flask:
    """Return an application that signs visitors in and out and counts their requests."""
    app = Flask(name)
    app.config.update(SESSION_TYPE="redis", SESSION_REDIS=Redis.from_url(URL), **options)
    Session(app)

    @app.get("/")
    def visit() -> str:
        session["visits"] = session.get("visits", 0) + 1
        session["seen"] = datetime.now(UTC).isoformat()
        return str(session["visits"])

    @app.get("/login/<name>")
    def login(name: str) -> str:
        app.session_interface.regenerate(session)  # type: ignore[attr-defined]
        session["user"] = {"name": name, "roles": ["reader", "écrivain"], "score": 0.5}
        session.setdefault("_flashes", []).append(("message", f"Hello {name}"))
        return name

    @app.get("/logout")
    def logout() -> str:
        session.clear()
        return "gone"

    return app


def main() -> None:
    shops = [
        application("packed"),
        application("text", SESSION_SERIALIZATION_FORMAT="json"),
        application("brief", SESSION_PERMANENT=False, PERMANENT_SESSION_LIFETIME=1, SESSION_ID_LENGTH=64),
    ]
    visitors = [[app.test_client() for _ in range(VISITORS)] for app in shops]
    for turn in turns():
        for clients in visitors:
            for n in range(10):
                client = clients[(turn * 7 + n) % VISITORS]
                client.get("/")
                if n == 0:
                    client.get(f"/login/name-{turn}")
                elif n == 1 and turn % 3 == 0:
                    client.get("/logout")
        if turn == 0:
            announce()
