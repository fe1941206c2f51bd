"""Django's cache with django-redis at work: two aliases, sessions, counters and locks."""

from __future__ import annotations

import threading
from collections import deque
from typing import Any

import django
from django.conf import settings

from foreign.workload import URL, announce, turns

THREADS = 3
SHORT = 1
LONG = 3600

EARLIER: deque[str | None] = deque()


def configure() -> None:
    backend = {"BACKEND": "django_redis.cache.RedisCache", "LOCATION": URL}
    settings.configure(
        CACHES={
            "default": {**backend, "KEY_PREFIX": "site", "TIMEOUT": LONG},
            "compressed": {
                **backend,
                "KEY_PREFIX": "api",
                "VERSION": 2,
                "OPTIONS": {
                    "COMPRESSOR": "django_redis.compressors.zlib.ZlibCompressor",
                    "SERIALIZER": "django_redis.serializers.json.JSONSerializer",
                },
            },
        },
        SESSION_ENGINE="django.contrib.sessions.backends.cache",
        INSTALLED_APPS=["django.contrib.sessions"],
        SECRET_KEY="for this test only",
        USE_TZ=True,
    )
    django.setup()


def visit(cache: Any, compressed: Any, turn: int) -> None:
    """Do what a site does with its cache for one page."""
    from django.contrib.sessions.backends.cache import SessionStore

    session = SessionStore()
    session["visits"] = turn
    session.save()
    if len(EARLIER) > 100:
        SessionStore(EARLIER.popleft()).delete()
    EARLIER.append(session.session_key)
    cache.set(f"page:{turn}", {"title": f"Page {turn}", "tags": ["a", "b"]}, timeout=SHORT)
    cache.set(f"page:{turn}:kept", "x" * 100)
    cache.set("hits", 0, timeout=None, nx=True)
    cache.incr("hits")
    cache.set_many({f"user:{turn % 50}": {"name": "Ann"}, f"count:{turn % 50}": turn})
    cache.get_or_set("navigation", ["home", "about"], timeout=None)
    with cache.lock(f"lock:{turn % 5}", timeout=10):
        cache.touch(f"user:{turn % 50}", LONG)
    cache.delete(f"page:{turn - 20}:kept")
    compressed.set(f"product:{turn % 200}", {"id": turn, "text": "long " * 20})
    compressed.set(f"stock:{turn % 200}", turn)
    compressed.set(f"flag:{turn % 200}", value=True, timeout=SHORT)


def main() -> None:
    configure()
    from django.core.cache import caches

    def site(first: int) -> None:
        for turn in turns():
            visit(caches["default"], caches["compressed"], first + THREADS * turn)
            if first == 0 and turn == 10:
                announce()

    threads = [threading.Thread(target=site, args=(n,)) for n in range(THREADS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
