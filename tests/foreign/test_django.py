"""Django 5.2 with django-redis 7 and its own backend: three caches, sessions, counters and locks."""

from __future__ import annotations

from foreign.audits import Fault
from foreign.conformance import Conformance
from foreign.projects import python_project

PROJECT = python_project("django", "django_redis")

FAULTS = [
    Fault(
        "a malformed pickle",
        "KW202",
        "undecodable",
        lambda client: client.set("site:1:user:999", b"\x80\x04\x95cut", ex=600),
    ),
    Fault(
        "malformed compressed JSON",
        "KW202",
        "undecodable",
        lambda client: client.set("api:2:product:999", b"\x78\x9ccut", ex=600),
    ),
    Fault(
        "a session that is a list",
        "KW201",
        "wrong-type",
        lambda client: client.rpush("site:1:django.contrib.sessions.cache0", "x"),
    ),
    Fault("a key of no template", "KW101", "unknown", lambda client: client.set("site:users", "x")),
]


class TestDjango(Conformance):
    """django-redis with its declaration in the catalogue."""
