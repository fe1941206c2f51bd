"""A healthy database has no findings; one that was damaged in every way has all of them, and is repaired."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from audit_samples import SAMPLES
from audited import audited, repaired
from keywright.testing import RedisServer
from keywright.testing.damage import PlantedFault, plant
from keywright.tools.audit import Finding

MODELS = list(SAMPLES)
LEAST = 200


@pytest.fixture(params=["single", "cluster"])
def place(request: pytest.FixtureRequest) -> str:
    fixture = "redis_url" if request.param == "single" else "cluster_url"
    return str(request.getfixturevalue(fixture))


@pytest.mark.parametrize("name", MODELS)
def test_every_planted_fault_is_found_and_repaired_and_nothing_is_left_to_do(
    name: str, place: str, tmp_path: Path
) -> None:
    sample = SAMPLES[name]()
    with sample.open(place) as db:
        sample.fill(db)
        report, findings = audited(place, sample)
        assert findings == []
        assert not report.failed
        faults = plant(db, sample.model.spaces, each=sample.each, older=sample.older)
        assert len(faults) >= LEAST
        _, findings = audited(place, sample)
        assert _missed(faults, findings) == []
        done = repaired(place, sample, tmp_path / "undo")
        assert done.steps >= LEAST / 2
        assert not done.failed
        report, findings = audited(place, sample)
        assert not report.failed
        # A model may allow and note what the repair of another fault leads to, as a channel without a series.
        assert {finding.code for finding in findings} <= {"KW602"}
        assert repaired(place, sample, tmp_path / "again").steps == 0
        assert not (tmp_path / "again").exists()


def test_all_kinds_of_damage_are_planted_in_some_model(redis_url: str) -> None:
    planted: Counter[str] = Counter()
    for name in ("bookshop", "drc", "meetup"):
        sample = SAMPLES[name]()
        with sample.open(redis_url) as db:
            sample.fill(db)
            faults = plant(db, sample.model.spaces, each=2, older=sample.older)
        planted.update(fault.code for fault in faults)
    assert set(planted) == {
        *("KW101", "KW102", "KW103", "KW201", "KW202", "KW203", "KW204", "KW205"),
        *("KW301", "KW302", "KW401", "KW402", "KW403", "KW404", "KW405"),
    }


def test_the_same_seed_does_the_same_damage(keywright_server: RedisServer, redis_url: str) -> None:
    sample = SAMPLES["town"]()
    with sample.open(redis_url) as db:
        sample.fill(db)
        first = plant(db, sample.model.spaces, seed=3)
        keywright_server.call("FLUSHALL")
        sample.fill(db)
        assert plant(db, sample.model.spaces, seed=3) == first


def _missed(faults: list[PlantedFault], findings: list[Finding]) -> list[PlantedFault]:
    found = {(finding.code, finding.name) for finding in findings}
    return [fault for fault in faults if (fault.code, fault.name) not in found]
