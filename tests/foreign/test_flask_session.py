"""Flask-Session 0.8: three applications, one with JSON, and visitors who come, return and leave."""

from __future__ import annotations

from foreign.audits import Fault
from foreign.conformance import Conformance
from foreign.projects import BRIEF, python_project

PROJECT = python_project("flask-session", "flask_session", length=BRIEF)
GHOST = "session:" + "0" * 43

FAULTS = [
    Fault("a malformed session", "KW202", "undecodable", lambda client: client.set(GHOST, b"\x81", ex=600)),
    Fault("a session that is a hash", "KW201", "wrong-type", lambda client: client.hset(GHOST, "x", "x")),
    Fault("a key of no template", "KW101", "unknown", lambda client: client.set("session:short", "x")),
]


class TestFlaskSession(Conformance):
    """Flask-Session with the declaration of the catalogue."""
