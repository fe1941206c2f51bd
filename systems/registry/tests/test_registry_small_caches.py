"""Sizes with descendants, pre-signed URLs and blob descriptors."""

from __future__ import annotations

import hashlib
from datetime import timedelta

import msgspec
import pytest

from keywright import RoundTrip, connect
from keywright.errors import UsageError
from keywright.testing import ManualClock, Raw, Run
from keywright_registry import blobs
from keywright_registry.schema import (
    BlobDescriptor,
    CachedUrl,
    RepositoryBlobs,
    SizeTimeout,
    SizeWithDescendants,
)
from keywright_registry.sizes import known_size, remember_size, remember_timeout
from keywright_registry.url_cache import UrlCache, request_hash

DIGEST = "sha256:" + "a" * 64


def test_a_size_that_was_measured_is_nine_bytes_for_five_minutes(run: Run, raw: Raw) -> None:
    run(remember_size("acme", 5))
    name = b"registry:" + bytes(SizeWithDescendants.of("acme"))
    assert raw("GET", name) == b"\xd3\0\0\0\0\0\0\0\5"
    assert 269_000 < raw("PTTL", name) < 331_000
    assert run(known_size("acme")) == 5


def test_a_timeout_is_not_hidden_by_a_size_of_zero(run: Run, raw: Raw) -> None:
    """The registry caches 0 bytes after a failed query (docs/resolutions.md#mistake-4)."""
    assert run(known_size("acme")) is None
    run(remember_timeout("acme"))
    assert isinstance(run(known_size("acme")), TimeoutError)
    assert raw("GET", b"registry:" + bytes(SizeTimeout.of("acme"))) == b"true"
    run(remember_size("acme", 0))
    assert run(known_size("acme")) == 0


def test_only_top_level_repositories_have_such_a_size() -> None:
    for call in (known_size, remember_timeout):
        with pytest.raises(UsageError, match="Ask for 'acme'"):
            call("acme/web")
    with pytest.raises(UsageError):
        remember_size("acme/web", 1)


def test_a_url_is_cached_until_ten_minutes_before_its_end(
    redis_url: str, raw: Raw, manual_clock: ManualClock
) -> None:
    urls, until = UrlCache(), manual_clock() + timedelta(minutes=20)
    with connect(redis_url, clock=manual_clock) as redis:
        assert redis.run(urls.set("blobs/x", "https://cdn/x?sig", until))
        assert redis.run(urls.get("blobs/x")) == "https://cdn/x?sig"
        assert redis.run(urls.get("blobs/x", {"method": "HEAD"})) is None
        (name,) = raw.names()
        assert name == b"registry:storage:urlcache:" + hashlib.sha256(b"blobs/x").hexdigest().encode()
        assert raw("GET", name) == b"\x81\xa3URL\xb1https://cdn/x?sig"
        assert 599_000 < raw("PTTL", name) <= 600_000


@pytest.mark.parametrize("minutes", [0, 9, 10])
def test_a_url_that_ends_too_soon_is_not_kept(
    redis_url: str, raw: Raw, manual_clock: ManualClock, minutes: int
) -> None:
    with connect(redis_url, clock=manual_clock) as redis:
        until = manual_clock() + timedelta(minutes=minutes)
        assert not redis.run(UrlCache().set("blobs/x", "https://cdn/x", until))
    assert raw.names() == set()


def test_the_request_is_its_path_and_its_options_by_name_but_the_expiry() -> None:
    expected = hashlib.sha256(b"/p" + b"a:1" + b"method:GET").hexdigest()
    assert request_hash("/p", {"method": "GET", "a": "1", "expiry": "now"}) == expected
    assert CachedUrl(expected).request == expected


def test_a_url_written_by_go_is_read(run: Run, raw: Raw) -> None:
    raw(
        "SET",
        b"registry:" + bytes(CachedUrl(request_hash("p", {}))),
        msgspec.msgpack.encode({"URL": "u", "New": 1}),
    )
    assert run(UrlCache().get("p")) == "u"


def test_a_blob_is_known_by_itself_and_by_its_repository(run: Run, raw: Raw) -> None:
    run(blobs.remember("acme/web", BlobDescriptor(DIGEST, 12, "application/json")))
    assert run(blobs.stat(DIGEST)) == BlobDescriptor(DIGEST, 12, "application/json")
    assert run(blobs.stat_in("acme/web", DIGEST)) == BlobDescriptor(DIGEST, 12, "application/json")
    assert run(blobs.stat_in("acme/api", DIGEST)) is None
    assert raw("HGETALL", f"blobs::{DIGEST}") == {
        b"digest": DIGEST.encode(),
        b"size": b"12",
        b"mediatype": b"application/json",
    }
    assert raw("SMEMBERS", "repository::acme/web::blobs") == {DIGEST.encode()}
    raw("HSET", f"repository::acme/web::blobs::{DIGEST}", "mediatype", "text/plain")
    found = run(blobs.stat_in("acme/web", DIGEST))
    assert found is not None
    assert found.mediatype == "text/plain"


def test_a_blob_that_is_gone_is_in_no_repository(run: Run, raw: Raw) -> None:
    """The registry leaves it in the sets, so a push seems to succeed (docs/resolutions.md#mistake-10)."""
    for repository in ("acme/web", "acme/api"):
        run(blobs.remember(repository, BlobDescriptor(DIGEST, 12, "x")))
    run(blobs.forget(DIGEST, "acme/web", "acme/api"))
    assert run(blobs.stat(DIGEST)) is None
    assert not run(RepositoryBlobs("acme/web").has(DIGEST))
    assert raw.names() == set()


def test_a_blob_of_many_repositories_is_forgotten_in_two_round_trips(redis_url: str, raw: Raw) -> None:
    trips: list[RoundTrip] = []

    def observe(trip: RoundTrip) -> None:
        trips.append(trip)

    repositories = [f"acme/{number}" for number in range(50)]
    with connect(redis_url, observers=[observe]) as redis:
        for repository in repositories:
            redis.run(blobs.remember(repository, BlobDescriptor(DIGEST, 12, "x")))
        trips.clear()
        redis.run(blobs.forget(DIGEST, *repositories))
    assert len(trips) == 2
    assert raw.names() == set()
