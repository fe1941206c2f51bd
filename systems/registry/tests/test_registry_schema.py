"""The keys, row by row, beside the guidelines and the registry's code."""

from __future__ import annotations

import base64
from datetime import timedelta
from typing import Any, NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

from keywright import Context, Key, Keyspace, check
from keywright.errors import VariableError
from keywright.operations import slot_of
from keywright_registry import schema
from keywright_registry.schema import (
    REPOSITORY_KEYS,
    CachedRepository,
    keys_of,
    legacy,
    registry,
)

GITLAB = "6fc8277be731c24196adfdfbbf4fab5a760941f1808efc8e2f37d1fae8b44ac3"
BAR = "fcde2b2edba56bf408601fb721fe9b5c338d10ee429ea04fae5511b68fbf8fb9"
DIGEST = f"sha256:{BAR}"


class Row(NamedTuple):
    """A key with its stored name, Redis type and expiry."""

    key: Key
    name: str
    redis_type: str = "string"
    expiry: timedelta | None = None


def of(kind: Any) -> Any:
    return kind.of("gitlab-org/gitlab")


TAG = f"{{repository:gitlab-org:{GITLAB}}}"
ROWS = (
    # As the guidelines have them.
    Row(of(schema.PullCount), f"registry:api:{TAG}:pull"),
    Row(of(schema.PushCount), f"registry:api:{TAG}:push"),
    Row(of(schema.CachedRepository), f"registry:db:{TAG}", expiry=timedelta(hours=6)),
    # As the code has them.
    Row(of(schema.SizeWithDescendants), f"registry:db:{TAG}:swd", expiry=timedelta(minutes=5)),
    Row(of(schema.SizeTimeout), f"registry:db:{TAG}:swd-timeout", expiry=timedelta(hours=24)),
    Row(of(schema.RepositoryLsn), f"registry:db:{TAG}:lsn", expiry=timedelta(hours=1)),
    Row(of(schema.RepositoryLease), f"registry:api:{{repository-lease:gitlab-org:{GITLAB}}}"),
    Row(of(schema.ProjectLease), f"registry:api:{{project-lease:gitlab-org:{GITLAB}}}"),
    Row(
        schema.RateLimit(base64.b64encode(b"1.2.3.4").decode()),
        "registry:api:{rate-limit:ip:MS4yLjMuNA==}",
        "hash",
    ),
    Row(schema.MetricsLock("row_count_lock"), "registry:db:{metrics}:row_count_lock"),
    Row(schema.MetricsLock("bbm_progress_lock"), "registry:db:{metrics}:bbm_progress_lock"),
    Row(schema.CachedUrl(BAR), f"registry:storage:urlcache:{BAR}"),
    Row(schema.Blob(DIGEST), f"blobs::{DIGEST}", "hash"),
    Row(schema.RepositoryBlobs("a/b"), "repository::a/b::blobs", "set"),
    Row(schema.RepositoryBlob("a/b", DIGEST), f"repository::a/b::blobs::{DIGEST}", "hash"),
    # Ours.
    Row(of(schema.AbsentRepository), f"registry:db:{TAG}:absent", expiry=timedelta(seconds=30)),
    Row(of(schema.FillLease), f"registry:db:{TAG}:filling"),
    Row(of(schema.CountedPath), f"registry:api:{TAG}:counted"),
    Row(of(schema.CountBatch), f"registry:api:{TAG}:batch", "hash"),
    Row(
        schema.NamedRateLimit("MS4yLjMuNA==", "push"),
        "registry:api:{rate-limit:ip:MS4yLjMuNA==}:push",
        "hash",
    ),
)


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.name)
def test_a_key_has_its_name_its_type_and_its_expiry(row: Row) -> None:
    kind = type(row.key)
    assert Context().name(row.key) == row.name.encode()
    assert kind.declaration.space.parse(row.name.encode()) == row.key
    assert kind.redis_type == row.redis_type
    lasting = kind.declaration.expiry and kind.declaration.expiry.ttl_ms
    assert lasting == (row.expiry and row.expiry / timedelta(milliseconds=1))


def test_every_declared_key_has_a_row() -> None:
    assert {type(row.key) for row in ROWS} == {*registry, *legacy}


@pytest.mark.parametrize("space", [registry, legacy], ids=lambda space: space.name)
def test_the_keyspace_is_proved(space: Keyspace) -> None:
    assert check(space) == []


def test_a_component_follows_the_prefix() -> None:
    components = {kind.declaration.template.source.partition(":")[0] for kind in registry}
    assert registry.prefix == "registry"
    assert components <= {"api", "db", "gc", "storage"}


@pytest.mark.parametrize(
    ("path", "tag"),
    [
        ("gitlab-org/gitlab", f"gitlab-org:{GITLAB}"),
        ("bar", f"bar:{BAR}"),
        ("test/repo", "test:c3ecf330c6173bf445635647db26f09843444527b55b3a0f5d5223d64045d378"),
    ],
)
def test_the_tag_is_the_namespace_and_the_hash_of_the_path(path: str, tag: str) -> None:
    assert bytes(CachedRepository.of(path)) == f"db:{{repository:{tag}}}".encode()


def test_the_slots_are_those_that_the_registry_has() -> None:
    assert {slot_of(Context().name(key)) for key in keys_of("gitlab-org/gitlab")} == {4533}
    assert slot_of(Context().name(of(schema.RepositoryLease))) == 6521


def test_all_keys_of_a_repository_are_proved_to_share_a_slot() -> None:
    """The same hash tag of the same variables, with any prefix."""
    declared = [kind.declaration for kind in REPOSITORY_KEYS]
    assert len({each.template.marked_tag for each in declared}) == 1
    assert CachedRepository.declaration.template.tag_variables == ("namespace", "path_hash")
    for variable in ("namespace", "path_hash"):
        assert len({each.template.alphabets[variable] for each in declared}) == 1
        assert len({each.derived[variable] for each in declared}) == 1
    tagged = {kind for kind in registry if "{repository:" in kind.declaration.template.source}
    assert set(REPOSITORY_KEYS) == tagged


@given(
    st.text(min_size=1).filter(lambda path: not path.startswith("/")), st.sampled_from(["registry", "a:b"])
)
def test_any_path_has_its_keys_in_one_slot_and_reads_back(path: str, prefix: str) -> None:
    try:
        keys = keys_of(path)
    except (VariableError, UnicodeEncodeError):
        assert any("\ud800" <= char <= "\udfff" for char in path)
        return
    context = Context([registry.bind(prefix=prefix)])
    assert len({slot_of(context.name(key)) for key in keys}) == 1
    assert [registry.parse(context.name(key), context) for key in keys] == keys


def test_repositories_of_two_namespaces_never_share_a_key() -> None:
    ours, theirs = CachedRepository.of("one/app"), CachedRepository.of("two/app")
    assert ours != CachedRepository("two", ours.path_hash)
    assert theirs.namespace == "two"


@pytest.mark.parametrize("path", ["", "/app"])
def test_a_path_without_a_namespace_has_no_keys(path: str) -> None:
    with pytest.raises(VariableError):
        CachedRepository.of(path)
