"""The audit of a dump is the audit of the live database: same findings, counts, relations and references."""

from __future__ import annotations

import asyncio
import re
from pathlib import Path
from typing import Any

import pytest
import redis

import garden
from audit_samples import SAMPLES
from audited import Sample, audited
from dumps import audited_dump, comparable, coverages, dump_of, totals
from fault_table import stock
from keywright import Id, Keyspace, Set, Value, Violation, gather, invariant
from keywright.operations import Steps
from keywright.testing.damage import plant
from keywright.tools.model import Model
from keywright.tools.plugins import load_model, model_names


@pytest.mark.parametrize("damaged", [False, True], ids=["healthy", "damaged"])
@pytest.mark.parametrize("name", SAMPLES)
def test_the_audit_of_a_dump_is_that_of_the_live_database(
    redis_url: str, tmp_path: Path, name: str, damaged: bool
) -> None:
    sample = SAMPLES[name]()
    with sample.open(redis_url) as db:
        sample.fill(db)
        planted = plant(db, sample.model.spaces, each=sample.each, older=sample.older) if damaged else []
    live, live_findings = audited(redis_url, sample)
    with redis.Redis.from_url(redis_url) as client:
        path = dump_of(client, tmp_path / "dump.rdb")
    report, findings = audited_dump(path, sample)
    assert comparable(findings) == comparable(live_findings)
    assert totals(report) == totals(live)
    of_file, of_server = coverages(report, live)
    assert of_file == of_server
    assert bool(findings) == bool(planted)


def test_every_kind_of_key_is_audited_in_a_dump_as_on_the_server(redis_url: str, tmp_path: Path) -> None:
    with redis.Redis.from_url(redis_url) as client:
        with garden.SAMPLE.open(redis_url) as db:
            stock(db, client)
            planted = plant(db, garden.SAMPLE.model.spaces, each=2)
        live, live_findings = audited(redis_url, garden.SAMPLE)
        path = dump_of(client, tmp_path / "dump.rdb")
    report, findings = audited_dump(path, garden.SAMPLE)
    assert comparable(findings) == comparable(live_findings)
    assert totals(report) == totals(live)
    assert {each.code for each in findings} >= {each.code for each in planted}
    assert len({each.template for each in findings}) > 20


def test_every_installed_model_is_audited_in_a_dump_as_on_the_server(redis_url: str, tmp_path: Path) -> None:
    """One database has the data of all of them, so that each meets unknown keys too."""
    for name, make in SAMPLES.items():
        sample = make()
        with sample.open(redis_url) as db:
            sample.fill(db)
            if name != "drc":  # healthy keys of one, and damaged ones of the others
                plant(db, sample.model.spaces, each=2, unknown=3, older=sample.older)
    models = [load_model(name) for name in model_names()]
    samples = [
        Sample(model, tuple(space.bind() for space in model.spaces), lambda _: None, {}) for model in models
    ]
    live = [audited(redis_url, sample) for sample in samples]
    with redis.Redis.from_url(redis_url) as client:
        path = dump_of(client, tmp_path / "dump.rdb")
    found = 0
    for sample, (report, findings) in zip(samples, live, strict=True):
        of_file, findings_of_file = audited_dump(path, sample)
        assert comparable(findings_of_file) == comparable(findings), sample.model.name
        assert totals(of_file) == totals(report), sample.model.name
        found += len({each.code for each in findings})
    assert found > 20


def test_the_program_of_the_page_on_dumps_returns_the_counts_of_the_findings(
    redis_url: str, tmp_path: Path
) -> None:
    sample = SAMPLES["drc"]()
    with sample.open(redis_url) as db:
        sample.fill(db)
        plant(db, sample.model.spaces, each=1)
    with redis.Redis.from_url(redis_url) as client:
        path = dump_of(client, tmp_path / "dump.rdb")
    page = (Path(__file__).parents[2] / "docs" / "rdb.md").read_text()
    (program,) = re.findall(r"```python\n(.*?)```", page, re.DOTALL)
    names: dict[str, Any] = {}
    exec(program, names)  # the page's own code
    report, _ = audited_dump(path, sample)
    assert asyncio.run(names["findings"](path)) == report.counts


lots = Keyspace("lots", "Lots of a draw.", prefix="lots")


class Lots(Set[Id], key="lots:<draw>", space=lots):
    """The lots of a draw."""

    draw: Id


class Names(Value[str], key="name:<draw>", space=lots):
    """The name of a draw."""

    draw: Id


drawn = invariant("drawn", "Any lot that is drawn is a short one.", [Lots])
named = invariant("named", "A draw has the same name twice.", [Names])


@drawn.check
def _drawn(key: Lots, value: Any) -> Steps[list[Violation]]:
    (lot,) = yield key.sample(1)
    return [Violation("a long lot")] if len(lot) > 3 else []


@named.check
def _named(key: Names, value: Any) -> Steps[list[Violation]]:
    twice = yield gather(key.get(), key.exists())
    return [] if twice == (value, True) else [Violation("two names")]


def test_an_invariant_that_a_file_cannot_answer_is_reported_as_unchecked(
    redis_url: str, tmp_path: Path
) -> None:
    sample = Sample(Model("lots", (lots,)), (), lambda _: None, {})
    with redis.Redis.from_url(redis_url) as client:
        client.sadd("lots:lots:1", "a", "b")
        client.set("lots:name:1", "first")
        path = dump_of(client, tmp_path / "dump.rdb")
    assert audited(redis_url, sample)[1] == []
    (finding,) = audited_dump(path, sample)[1]
    assert (finding.code, finding.name, finding.link) == ("KW603", b"lots:lots:1", "drawn")
