"""Repositories as the Go registry encodes them, and strategies for others."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import NamedTuple

import msgspec
from hypothesis import strategies as st

from keywright_registry.repository import Repository


class Vector(NamedTuple):
    """A repository, and the bytes that vmihailenco/msgpack v5 writes for it."""

    repository: Repository
    stored: bytes


def _read() -> list[Vector]:
    lines = Path(__file__).with_name("repositories.jsonl").read_text().splitlines()
    return [
        Vector(
            msgspec.convert(row, Repository), bytes.fromhex(row["msgpack_hex"])
        )  # unknown fields are skipped
        for row in map(json.loads, lines)
    ]


VECTORS = _read()

GOLDEN = Vector(
    Repository(
        id=1,
        namespace_id=1,
        name="gitlab",
        path="gitlab-org/gitlab",
        created_at=datetime.fromtimestamp(1_650_000_000, UTC).replace(microsecond=123_456),
        updated_at=datetime.fromtimestamp(1_650_000_001, UTC),
        size=1,
    ),
    bytes.fromhex(
        "8aa24944d30000000000000001ab4e616d6573706163654944d30000000000000001a44e616d65a66769746c6162a4"
        "50617468b16769746c61622d6f72672f6769746c6162a8506172656e74494482a5496e743634d30000000000000000"
        "a556616c6964c2a9437265617465644174d7ff1d6f280062590080a955706461746564417482a454696d65d6ff6259"
        "0081a556616c6964c3a944656c65746564417482a454696d65c70cff00000000fffffff1886e0900a556616c6964c2"
        "a453697a65d30000000000000001af4c6173745075626c6973686564417482a454696d65c70cff00000000fffffff1"
        "886e0900a556616c6964c2"
    ),
)

int64 = st.integers(-(2**63), 2**63 - 1)
moments = st.datetimes(timezones=st.just(UTC))
texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=300)

repositories = st.builds(
    Repository,
    id=int64,
    namespace_id=int64,
    name=texts,
    path=texts,
    parent_id=st.none() | int64,
    created_at=moments,
    updated_at=st.none() | moments,
    deleted_at=st.none() | moments,
    size=st.none() | int64,
    last_published_at=st.none() | moments,
)


def repository_at(path: str, *, number: int = 1, size: int | None = None) -> Repository:
    """A plain repository of a path."""
    return Repository(
        id=number,
        namespace_id=1,
        name=path.rpartition("/")[2],
        path=path,
        created_at=datetime(2026, 1, 2, 3, 4, 5, 678_901, tzinfo=UTC),
        size=size,
    )
