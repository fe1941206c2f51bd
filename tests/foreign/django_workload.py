"""Django's cache at work, with django-redis and its own backend: three aliases, sessions, counters, locks."""

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
            "own": {
                "BACKEND": "django.core.cache.backends.redis.RedisCache",
                "LOCATION": URL,
                "KEY_PREFIX": "own",
                "TIMEOUT": LONG,
            },
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
        ALLOWED_HOSTS=["site"],
        USE_TZ=True,
    )
    django.setup()


def visit(cache: Any, compressed: Any, turn: int) -> None:
    """Do what a site does with its cache for one page."""
    from django.contrib.sessions.backends.cache import SessionStore
    from django.contrib.sessions.backends.cached_db import KEY_PREFIX as STORED
    from django.core.cache import caches
    from django.core.cache.utils import make_template_fragment_key
    from django.http import HttpRequest, HttpResponse
    from django.utils.cache import learn_cache_key

    session = SessionStore()
    session["visits"] = turn
    session.save()
    if len(EARLIER) > 100:
        SessionStore(EARLIER.popleft()).delete()
    EARLIER.append(session.session_key)
    cache.set(f"page:{turn}", {"title": f"Page {turn}", "tags": ["a", "b"]}, timeout=SHORT)
    cache.set(f"page:{turn}:kept", "x" * 100)
    if turn % 10 == 0:
        cache.set(f"{STORED}{session.session_key}", {"visits": turn}, timeout=LONG)  # as with a database
    request = HttpRequest()
    request.META = {"SERVER_NAME": "site", "SERVER_PORT": "80", "PATH_INFO": f"/{turn % 5}"}
    request.path, request.method = f"/{turn % 5}", "GET"
    cache.set(learn_cache_key(request, HttpResponse(), LONG, "pages", cache), HttpResponse("page"))
    cache.set("hits", 0, timeout=None, nx=True)
    cache.incr("hits")
    cache.set_many({f"user:{turn % 50}": {"name": "Ann"}, f"count:{turn % 50}": turn})
    cache.get_or_set("navigation", ["home", "about"], timeout=None)
    cache.set(make_template_fragment_key("menu", [turn % 5]), "<ul></ul>")
    with cache.lock(f"lock:{turn % 5}", timeout=10):
        cache.touch(f"user:{turn % 50}", LONG)
    cache.delete(f"page:{turn - 20}:kept")
    own = caches["own"]
    own.set(f"seen:{turn % 50}", turn)
    own.set(f"profile:{turn % 50}", {"name": "Bob"})
    own.set(make_template_fragment_key("footer", [turn % 5]), "<p></p>")
    compressed.set(f"product:{turn % 200}", {"id": turn, "text": "long " * 20})
    compressed.set(make_template_fragment_key("price", [turn % 5]), "1 EUR")
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
