"""Worker processes: they share the work of a tool, and the result is that of one process."""

from __future__ import annotations

import asyncio
import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from operator import itemgetter
from pathlib import Path
from typing import Any

import pytest
import redis

from audit_samples import SAMPLES
from audited import PRIMARIES, Sample
from dumps import comparable, dump_of
from invoking import invoke_keywright
from keywright import Keyspace, Value
from keywright.errors import KeywrightError, ServerRefusedError, UsageError, WorkerError
from keywright.testing import as_user
from keywright.testing.conditions import wait_until
from keywright.testing.damage import plant
from keywright.tools.audit import AuditOptions, AuditReport, Checkpoint, Finding, WalkProgress, audit
from keywright.tools.audit import checkpoint as resuming
from keywright.tools.infer import infer_server
from keywright.tools.jobs import MOST_JOBS, JobPlan
from keywright.tools.jobs.carried_errors import carried, raised_again
from keywright.tools.model import Model
from keywright.tools.pace import FULL_SPEED, Pace
from keywright.tools.sources import opened_source
from test_errors import EXAMPLES

DRC = SAMPLES["drc"]()
FAST = PRIMARIES._replace(pace=FULL_SPEED)
SLOWLY = PRIMARIES._replace(pace=Pace(2_000, full_speed=True))
_SECONDS = re.compile(r"[0-9][0-9.,e+]* s\b")


@pytest.fixture
def damaged(redis_url: str) -> str:
    _fill(redis_url)
    return redis_url


@pytest.fixture(params=["server", "cluster", "dump"])
def source(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """A server, a cluster of three masters, or a dump, with data that is not as declared."""
    url = request.getfixturevalue("cluster_url" if request.param == "cluster" else "redis_url")
    _fill(url)
    if request.param != "dump":
        return str(url)
    with redis.Redis.from_url(url) as client:
        return f"dump:{dump_of(client, tmp_path / 'dump.rdb')}"


def _fill(url: str) -> None:
    with DRC.open(url) as db:
        DRC.fill(db)
        plant(db, DRC.model.spaces, each=3)


def _audited(
    source: str,
    jobs: int,
    *,
    options: AuditOptions = FAST,
    on_progress: Callable[[WalkProgress], None] | None = None,
    checkpoint: Checkpoint | None = None,
    plan: bool = False,
) -> tuple[AuditReport, list[Finding]]:
    """Audit with some jobs; one is this process, unless a plan is wanted for it too."""
    found: list[Finding] = []
    shared = JobPlan(jobs, "drc", source) if plan or jobs > 1 else None

    async def run() -> AuditReport:
        async with opened_source(source, *DRC.bindings) as db:
            return await audit(
                db,
                DRC.model,
                options,
                show_ids=True,
                on_finding=found.append,
                on_progress=on_progress,
                checkpoint=checkpoint,
                plan=shared,
            )

    return asyncio.run(run()), found


def _report(report: AuditReport) -> str:
    """Return all of a report but what differs between two audits of one job.

    That is its duration, times to live, and the memory of collections: a server resizes tables in steps.
    """
    data = {**report.as_data(), "seconds": 0}
    if "a dump of" not in report.server:
        collections = {
            kind.declaration.template.source
            for space in DRC.model.spaces
            for kind in space
            if kind.redis_type != "string"
        }
        for row in data["templates"]:
            del row["share"]
            if row["template"] in collections:
                del row["bytes"], row["largest_bytes"], row["largest"], row["bytes_error"]
        data["templates"].sort(key=itemgetter("template"))
    return _SECONDS.sub("… s", str(data))


def test_the_report_of_several_jobs_is_that_of_one(source: str) -> None:
    report, findings = _audited(source, 1)
    assert len(findings) > 30
    # Of a cluster workers read names too, as long as each has a node.
    several = {"unix": (2, 3), "redis": (2, 4), "dump": (3,)}[source.partition(":")[0]]
    for jobs in several:
        shared, found = _audited(source, jobs)
        assert _report(shared) == _report(report)
        assert comparable(found) == comparable(findings)


@pytest.mark.parametrize("source", ["cluster"], indirect=True)
def test_the_module_that_several_jobs_infer_is_that_of_one(source: str) -> None:
    texts = []
    for jobs in (1, 2):
        plan = None if jobs == 1 else JobPlan(jobs, "", source)

        async def run(plan: JobPlan | None = plan) -> str:
            async with opened_source(source) as db:
                return (
                    await infer_server(db, show_ids=True, plan=plan, pace=FULL_SPEED, prefer_replica=False)
                ).text

        texts.append(asyncio.run(run()))
    assert _SECONDS.sub("… s", texts[0]) == _SECONDS.sub("… s", texts[1])


def test_the_statistics_of_several_jobs_are_those_of_one(damaged: str) -> None:
    one, two = (
        json.loads(
            invoke_keywright(
                "stats", "drc", "--url", damaged, "--format", "json", "--sample", "100%", "--jobs", jobs
            ).stdout
        )
        for jobs in ("1", "2")
    )
    for snapshot in (one, two):
        del snapshot["seconds"]
        for row in snapshot["templates"]:
            del row["bytes"], row["bytes_error"]  # a server resizes tables in steps
    assert two == one


def test_jobs_of_statistics_need_a_model_by_name(damaged: str) -> None:
    done = invoke_keywright("stats", "--url", damaged, "--jobs", "2")
    assert done.exit_code == 2
    assert "--jobs needs a MODEL" in done.stderr


def _workers(parent: int) -> list[int]:
    """Return the worker processes of a process."""
    children = [
        int(pid)
        for task in Path(f"/proc/{parent}/task").iterdir()
        for pid in (task / "children").read_text().split()
    ]
    return [pid for pid in children if b"keywright.tools.worker" in Path(f"/proc/{pid}/cmdline").read_bytes()]


def test_a_worker_that_is_killed_fails_the_audit(damaged: str) -> None:
    def kill(progress: WalkProgress) -> None:
        os.kill(_workers(os.getpid())[0], signal.SIGKILL)

    with pytest.raises(WorkerError, match="was ended by SIGKILL"):
        _audited(damaged, 2, options=PRIMARIES, on_progress=kill)
    assert not _workers(os.getpid())


def test_an_error_of_a_worker_is_raised_with_its_fields(damaged: str, client: Any) -> None:
    rules = {"keys": ["*"], "categories": ["+@all"], "commands": ["-mget"]}
    client.acl_setuser("watcher", enabled=True, passwords=["+pw"], **rules)
    with pytest.raises(ServerRefusedError) as raised:
        _audited(as_user(damaged, "watcher", "pw"), 1, plan=True)
    assert raised.value.command == "MGET"
    assert raised.value.reply.startswith("NOPERM")


@pytest.mark.parametrize("error", EXAMPLES, ids=lambda each: type(each).__name__)
def test_every_error_can_be_carried_from_a_worker(error: KeywrightError) -> None:
    again = raised_again(carried(error))
    assert type(again) is type(error)
    assert str(again) == str(error)
    assert again.exit_code == error.exit_code


@pytest.mark.parametrize("ending", [signal.SIGINT, signal.SIGKILL], ids=lambda each: each.name)
def test_no_worker_outlives_the_command(damaged: str, ending: signal.Signals) -> None:
    command = [sys.executable, "-m", "keywright", "audit", "drc", "--url", damaged]
    with subprocess.Popen([*command, "--jobs", "2", "--max-rate", "20"], stderr=subprocess.PIPE) as running:
        wait_until(lambda: len(_workers(running.pid)) == 2, "the workers run")
        workers = _workers(running.pid)
        running.send_signal(ending)
        _, said = running.communicate()
    wait_until(lambda: not any(map(_is_alive, workers)), "the workers have ended")
    assert b"Traceback" not in said


def _is_alive(pid: int) -> bool:
    try:
        return b"keywright.tools.worker" in Path(f"/proc/{pid}/cmdline").read_bytes()
    except (FileNotFoundError, ProcessLookupError):
        return False


def test_an_interrupted_audit_of_several_jobs_goes_on_where_it_was(
    damaged: str, client: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(resuming, "EVERY_SECONDS", 0.0)

    def interrupt(progress: WalkProgress) -> None:
        if progress.seen > 200:
            raise KeyboardInterrupt

    whole, _ = _audited(damaged, 1)
    path = tmp_path / "progress"
    with pytest.raises(KeyboardInterrupt):
        _audited(damaged, 2, options=SLOWLY, on_progress=interrupt, checkpoint=Checkpoint.at(path, ["drc"]))
    client.config_resetstat()
    resumed, _ = _audited(damaged, 1, options=SLOWLY, checkpoint=Checkpoint.at(path, ["drc"]))
    assert resumed.counts == whole.counts
    assert resumed.keys == whole.keys
    assert client.info("commandstats")["cmdstat_scan"]["calls"] < whole.keys / 40
    assert not path.exists()


@pytest.mark.parametrize("jobs", [0, MOST_JOBS + 1, 1000])
def test_a_number_of_jobs_that_cannot_be_started_is_refused(redis_url: str, jobs: int) -> None:
    done = invoke_keywright("audit", "drc", "--url", redis_url, "--jobs", str(jobs))
    assert done.exit_code == 2
    assert "--jobs must be a whole number from 1 to 64" in done.stderr
    with pytest.raises(UsageError, match="--jobs must be from 1 to 64"):
        asyncio.run(_with_plan(redis_url, DRC, JobPlan(jobs, "drc", redis_url)))


own = Keyspace("own", "A keyspace that no name leads to.")


class Note(Value[str], key="note", space=own):
    """A note."""


@pytest.mark.parametrize(
    ("model", "said"), [("drc", "is not part of 'drc'"), ("__main__:own", "in the program that runs")]
)
def test_a_model_that_workers_cannot_import_is_refused(redis_url: str, model: str, said: str) -> None:
    sample = Sample(Model("own", (own,)), (own.bind(),), lambda _: None, {})
    with pytest.raises(UsageError, match=said):
        asyncio.run(_with_plan(redis_url, sample, JobPlan(2, model, redis_url)))


async def _with_plan(url: str, sample: Sample, plan: JobPlan) -> None:
    async with opened_source(url, *sample.bindings) as db:
        await audit(db, sample.model, plan=plan)


@pytest.fixture
def client(redis_url: str) -> Iterator[Any]:
    with redis.Redis.from_url(redis_url) as found:
        yield found
        found.acl_deluser("watcher")
