"""The repository cache as calls, on both engines."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import msgspec
import pytest

from keywright import Call, RoundTrip, connect, new_token
from keywright.errors import StoredDataError, UsageError
from keywright.testing import Raw, Run
from keywright_registry.cache import Miss, RepositoryCache
from keywright_registry.go_encoding import GoRepository
from keywright_registry.repository import Repository
from keywright_registry.schema import (
    OBJECT_EXPIRY,
    AbsentRepository,
    CachedRepository,
    FillLease,
    SizeTimeout,
    SizeWithDescendants,
)
from keywright_registry.sizes import remember_size, remember_timeout
from keywright_registry.transactions import transaction_scope

from .registry_vectors import GOLDEN, repository_at

PATH = "gitlab-org/gitlab"
HOLD = timedelta(seconds=30)
cache = RepositoryCache()
remembering = RepositoryCache(absence=True)


def stored(path: str) -> bytes:
    return b"registry:" + bytes(CachedRepository.of(path))


def test_a_set_repository_has_the_bytes_of_go(run: Run, raw: Raw) -> None:
    run(cache.set(GOLDEN.repository))
    assert raw("GET", stored(PATH)) == GOLDEN.stored
    assert run(cache.get(PATH)) == GOLDEN.repository
    assert run(cache.get("gitlab-org/other")) is None


def test_a_repository_that_go_wrote_is_found(run: Run, raw: Raw) -> None:
    raw("SET", stored(PATH), GOLDEN.stored)
    assert run(cache.get(PATH)) == run(cache.look(PATH)) == GOLDEN.repository


def test_the_expiry_is_six_hours_with_jitter(run: Run, raw: Raw) -> None:
    paths = [f"a/{number}" for number in range(50)]
    for path in paths:
        run(cache.set(repository_at(path)))
    hours = [raw("PTTL", stored(path)) / 3_600_000 for path in paths]
    assert 5.39 < min(hours) < max(hours) < 6.61
    assert len({round(each, 3) for each in hours}) > 20
    assert OBJECT_EXPIRY.ttl_ms == 6 * 3_600_000


def test_a_repository_of_another_path_is_a_miss_and_stays(run: Run, raw: Raw) -> None:
    raw("SET", stored("acme/web"), GoRepository().encode(repository_at("other/web")))
    assert run(cache.get("acme/web")) is None
    assert run(cache.look("acme/web")) is Miss.MISMATCH
    assert run(cache.get_many(["acme/web"])) == {}
    assert raw("EXISTS", stored("acme/web")) == 1


def test_an_undecodable_repository_is_reported(run: Run, raw: Raw) -> None:
    raw("SET", stored(PATH), b"\x00rubbish")
    with pytest.raises(StoredDataError, match="registry Repository"):
        run(cache.get(PATH))


def test_many_are_found_in_one_round_trip_whatever_is_wrong_with_some(run: Run, raw: Raw) -> None:
    paths = [f"a/{number}" for number in range(100)]
    for path in paths[:60]:
        run(cache.set(repository_at(path)))
    assert set(run(cache.get_many(paths))) == set(paths[:60])
    raw("SET", stored(paths[0]), b"rubbish")
    raw("DEL", stored(paths[1]))
    raw("LPUSH", stored(paths[1]), "a list")
    assert set(run(cache.get_many(paths))) == set(paths[2:60])


def test_deleting_forgets_everything_known_of_a_repository(run: Run, raw: Raw) -> None:
    for path in ("a", "b"):
        run(cache.set(repository_at(path)))
        run(SizeWithDescendants.of(path).set(1))
        run(SizeTimeout.of(path).set(value=True))
        run(AbsentRepository.of(path).set(value=True))
        run(FillLease.of(path).acquire("someone", HOLD))
    run(cache.set(repository_at("c")))
    run(cache.delete("a", "b"))
    assert raw.names() == {stored("c")}


def test_renaming_leaves_nothing_of_the_old_paths(run: Run, raw: Raw) -> None:
    """The registry keeps the old objects for up to six hours (docs/resolutions.md#mistake-5)."""
    for path in ("acme/old", "acme/old/api", "acme/old/api/v1", "acme/other"):
        run(cache.set(repository_at(path)))
    moved = [
        (path, repository_at(path.replace("old", "new")))
        for path in ("acme/old", "acme/old/api", "acme/old/api/v1")
    ]
    run(cache.rename(moved))
    gone, there = [old for old, _ in moved], [new.path for _, new in moved]
    assert set(run(cache.get_many([*gone, *there, "acme/other"]))) == {*there, "acme/other"}
    assert raw.names() == {stored(path) for path in (*there, "acme/other")}


def test_a_path_that_is_old_and_new_at_once_is_kept(run: Run) -> None:
    for path in ("b", "b/x"):
        run(cache.set(repository_at(path)))
    run(cache.rename([("b", repository_at("b/x", number=1)), ("b/x", repository_at("c", number=2))]))
    assert run(cache.get_many(["b", "b/x", "c"])) == {
        "b/x": repository_at("b/x", number=1),
        "c": repository_at("c", number=2),
    }


def test_the_size_is_invalidated_and_the_expiry_stays(run: Run, raw: Raw) -> None:
    run(cache.set(repository_at("a", size=5)))
    raw("PEXPIRE", stored("a"), 100_000)
    assert run(cache.invalidate_size("a")) is True
    assert run(cache.get("a")) == repository_at("a")
    assert 0 < raw("PTTL", stored("a")) <= 100_000
    assert run(cache.invalidate_size("a")) is False


def test_invalidating_the_size_of_an_expired_repository_restores_nothing(run: Run, raw: Raw) -> None:
    """The registry writes its whole object back, for six more hours (docs/resolutions.md#mistake-6)."""
    assert run(cache.invalidate_size("a")) is False
    assert raw.names() == set()


def test_invalidating_the_size_of_malformed_data_removes_it(run: Run, raw: Raw) -> None:
    raw("SET", stored("a"), "rubbish")
    assert run(cache.invalidate_size("a")) is True
    assert raw.names() == set()


def test_invalidating_a_size_never_overwrites_a_newer_value(redis_url: str, raw: Raw) -> None:
    raw("SET", stored("a"), GoRepository().encode(repository_at("a", size=1)))
    newer = repository_at("a", number=2)
    other_writer = Interference(lambda: raw("SET", stored("a"), GoRepository().encode(newer)), times=1)
    with connect(redis_url, observers=[other_writer]) as redis:
        assert redis.run(cache.invalidate_size("a")) is False
        assert redis.run(cache.get("a")) == newer


def test_a_repository_is_deleted_if_others_win_every_attempt_to_invalidate_its_size(
    redis_url: str, raw: Raw
) -> None:
    raw("SET", stored("a"), GoRepository().encode(repository_at("a", size=1)))
    numbers = itertools.count(2)

    def write() -> None:
        raw("SET", stored("a"), GoRepository().encode(repository_at("a", number=next(numbers), size=1)))

    with connect(redis_url, observers=[Interference(write)]) as redis:
        assert redis.run(cache.invalidate_size("a")) is True
    assert next(numbers) > 3
    assert raw.names() == set()


class Interference:
    """Another writer that comes right after a repository was read."""

    def __init__(self, write: Callable[[], object], times: int | None = None) -> None:
        self.write = write
        self.times = times

    def __call__(self, trip: RoundTrip) -> None:
        if self.times != 0 and any(operation == "get" for _, operation in trip.operations):
            self.times = None if self.times is None else self.times - 1
            self.write()


def test_a_fill_is_refused_after_another_write(run: Run) -> None:
    """A value that was read before a commit is never written after it."""
    old, new = repository_at("a", number=1), repository_at("a", number=2)
    for write in (cache.set(new), cache.delete("a"), cache.invalidate_size("a"), cache.appeared("a")):
        token = new_token()
        assert run(cache.begin_fill("a", token, HOLD))
        run(write)
        before = run(cache.get("a"))
        assert run(cache.fill("a", old, token)) is False
        assert run(cache.get("a")) == before
        run(cache.delete("a"))


def test_a_fill_is_written_with_the_expiry_and_ends_itself(run: Run, raw: Raw) -> None:
    token = new_token()
    assert run(cache.begin_fill("a", token, HOLD))
    assert not run(cache.begin_fill("a", new_token(), HOLD))
    assert run(cache.fill("a", repository_at("a"), token))
    assert raw.names() == {stored("a")}
    assert raw("PTTL", stored("a")) > 0


def test_absence_is_remembered_only_on_request(run: Run) -> None:
    for each, expected in ((cache, Miss.ABSENT), (remembering, Miss.KNOWN_ABSENT)):
        assert run(each.begin_fill("a", "token", HOLD))
        assert run(each.fill("a", None, "token"))
        assert run(each.look("a")) is expected
    run(remembering.set(repository_at("a")))
    run(CachedRepository.of("a").delete())
    assert run(remembering.look("a")) is Miss.ABSENT


def test_known_absence_lasts_half_a_minute(run: Run, raw: Raw) -> None:
    run(remembering.begin_fill("a", "token", HOLD))
    run(remembering.fill("a", None, "token"))
    assert 26_000 < raw("PTTL", stored("a") + b":absent") < 34_000


def writes() -> list[Call[Any]]:
    a = repository_at("a")
    return [
        cache.set(a),
        cache.delete("a"),
        cache.appeared("a"),
        cache.rename([("b", a)]),
        cache.invalidate_size("a"),
        remember_size("a", 5),
        remember_timeout("a"),
    ]


@pytest.mark.parametrize("number", range(len(writes())))
def test_a_cache_write_inside_a_transaction_is_refused_and_sends_nothing(
    redis_url: str, raw: Raw, number: int
) -> None:
    raw("SET", stored("a"), GOLDEN.stored)
    with connect(redis_url) as redis, transaction_scope():
        with pytest.raises(UsageError, match=r"not committed yet.*after the commit"):
            redis.run(writes()[number])
        assert redis.run(cache.get("b")) is None  # reading is harmless
    assert raw.names() == {stored("a")}
    assert raw("GET", stored("a")) == GOLDEN.stored


def test_a_write_that_was_made_inside_may_run_afterwards(run: Run) -> None:
    with transaction_scope():
        write = cache.set(repository_at("a"))
    run(write)
    assert run(cache.get("a")) == repository_at("a")


def test_a_repository_keeps_its_other_fields_when_its_size_is_invalidated(run: Run) -> None:
    whole = msgspec.structs.replace(GOLDEN.repository, parent_id=3, size=7)
    run(cache.set(whole))
    run(cache.invalidate_size(PATH))
    assert run(cache.get(PATH)) == msgspec.structs.replace(whole, size=None)
    assert isinstance(run(cache.look(PATH)), Repository)
