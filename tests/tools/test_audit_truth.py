"""Statements of an audit: true while others write, exact or marked as an estimate, with their scope."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from typing import Annotated, Any

import msgspec
import pytest
import redis

from audited import PRIMARIES, Sample, audited
from keywright import (
    Id,
    Keyring,
    Keyspace,
    List,
    Map,
    Record,
    SealedIfBound,
    Secret,
    Set,
    Stream,
    Value,
    aconnect,
    connect,
    expires_at,
    expires_in,
)
from keywright.engine.telemetry import RoundTrip
from keywright.testing import as_user
from keywright.tools.audit import AuditOptions, AuditReport, Finding, audit
from keywright.tools.audit.formats.text import as_text
from keywright.tools.describe.inspection import Hidden, inspect
from keywright.tools.model import Model
from keywright.tools.stats import take_snapshot

jobs = Keyspace("jobs", "Jobs of another program.", prefix="app")


class JobDetails(msgspec.Struct):
    """A job."""

    name: str
    state: str


class Job(Record[JobDetails], key="job:<job>", space=jobs):
    """A job, which the program lets expire."""

    job: Id


class Session(Value[int], key="session:<user>", space=jobs, expiry=expires_in(timedelta(minutes=5))):
    """A session."""

    user: Id


class Ticket(Value[datetime], key="ticket:<ticket>", space=jobs, expiry=expires_at(lambda value: value)):
    """A ticket, with the moment at which it ends."""

    ticket: Id


class Tags(Set[int], key="tags:<job>", space=jobs):
    """Numbers of tags."""

    job: Id


class Settings(Value[JobDetails], key="settings:<user>", space=jobs):
    """Settings, as JSON."""

    user: Id


class Answers(Map[Id, JobDetails], key="answers:<job>", space=jobs):
    """Answers by person, as JSON."""

    job: Id


class Log(Stream[JobDetails], key="log:<job>", space=jobs):
    """A log."""

    job: Id


class Document(Value[JobDetails], key="document:<job>", space=jobs, open=True):
    """A document of others."""

    job: Id


class OpenRecord(Record[JobDetails], key="open:<job>", space=jobs, open=True):
    """A record of others."""

    job: Id


class Steps(List[int], key="steps:<job>", space=jobs):
    """Numbers of steps."""

    job: Id


class Scores(Map[Id, int], key="scores:<job>", space=jobs):
    """Scores by person."""

    job: Id


JOBS = Sample(Model("jobs", (jobs,)), (), lambda _: None, {})
DETAILS = {"name": "n", "state": "s"}


@pytest.fixture
def client(redis_url: str) -> Iterator[Any]:
    with redis.Redis.from_url(redis_url) as found:
        yield found


def after(operation: str, act: Callable[[], object]) -> Callable[[RoundTrip], None]:
    """Return an observer that acts once, after the first round trip with an operation."""
    waiting = [act]

    def observer(trip: RoundTrip) -> None:
        if waiting and any(name == operation for _, name in trip.operations):
            waiting.pop()()

    return observer


async def _audited(url: str, observer: Callable[[RoundTrip], None]) -> list[Finding]:
    found: list[Finding] = []
    async with aconnect(url, observers=[observer]) as db:
        await audit(db, JOBS.model, PRIMARIES, on_finding=found.append)
    return found


@pytest.mark.anyio
async def test_records_that_expire_between_scan_and_read_are_not_findings(
    redis_url: str, client: Any
) -> None:
    for n in range(200):
        client.hset(f"app:job:{n}", mapping=DETAILS)
    gone = [f"app:job:{n}" for n in range(0, 200, 2)]
    assert await _audited(redis_url, after("scan", lambda: client.delete(*gone))) == []


@pytest.mark.anyio
@pytest.mark.parametrize(
    ("name", "wrong", "read", "mended"),
    [
        ("job:1", ("hset", "job:1", "name", "n"), "hscan", ("hset", "job:1", "state", "s")),
        ("job:2", ("set", "job:2", "text"), "type", ("delete", "job:2")),
        ("session:1", ("set", "session:1", "7"), "ttl", ("expire", "session:1", 60)),
        ("session:2", ("set", "session:2", "x", 60), "mget", ("set", "session:2", "7", 60)),
        ("ticket:1", ("set", "ticket:1", "2030-01-01T00:00:00Z"), "mget", ("delete", "ticket:1")),
        ("tags:1", ("sadd", "tags:1", "1", "x"), "sscan", ("srem", "tags:1", "x")),
        ("steps:1", ("rpush", "steps:1", "1", "x", "2"), "lrange", ("lrem", "steps:1", 0, "x")),
        ("scores:1", ("hset", "scores:1", "ann", "x"), "hscan", ("hset", "scores:1", "ann", "3")),
        ("other:1", ("set", "other:1", "x"), "scan", ("delete", "other:1")),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
async def test_a_problem_that_is_gone_at_the_second_look_is_not_a_finding(
    redis_url: str, client: Any, name: str, wrong: tuple[Any, ...], read: str, mended: tuple[Any, ...]
) -> None:
    def do(command: tuple[Any, ...]) -> object:
        return getattr(client, command[0])(f"app:{command[1]}", *command[2:])

    do(wrong)
    assert await _audited(redis_url, after(read, lambda: do(mended))) == []


@pytest.mark.anyio
@pytest.mark.parametrize(
    ("wrong", "codes"),
    [
        (("hset", "job:1", "name", "n"), ["KW203"]),
        (("set", "job:2", "text"), ["KW201"]),
        (("set", "session:1", "7"), ["KW301"]),
        (("set", "session:2", "7", 86400), ["KW302"]),
        (("set", "session:3", "x", 60), ["KW202"]),
        (("set", "ticket:1", "2030-01-01T00:00:00Z"), ["KW301"]),
        (("sadd", "tags:1", "1", "x", "y"), ["KW202", "KW202"]),
        (("rpush", "steps:1", "1", "x", "2"), ["KW202"]),
        (("hset", "scores:1", "ann", "x"), ["KW202"]),
        (("set", "other:1", "x"), ["KW101"]),
    ],
    ids=lambda value: "-".join(value) if isinstance(value, list) else value[1],
)
async def test_a_problem_that_stays_is_a_finding(
    redis_url: str, client: Any, wrong: tuple[Any, ...], codes: list[str]
) -> None:
    getattr(client, wrong[0])(f"app:{wrong[1]}", *wrong[2:])
    found = await _audited(redis_url, lambda _: None)
    assert [finding.code for finding in found] == codes


def test_the_share_of_expiring_keys_of_a_small_template_is_exact(redis_url: str, client: Any) -> None:
    for n in range(35):
        client.hset(f"app:job:{n}", mapping=DETAILS)
        if n < 25:
            client.expire(f"app:job:{n}", 600)
    row = _rows(audited(redis_url, JOBS)[0])["job:<job>"]
    assert (row.coverage, row.coverage_error, row.bytes_error) == (25 / 35, 0, 0)
    measured = sum(client.memory_usage(name) for name in client.scan_iter())
    assert row.bytes == measured


def test_figures_from_a_sample_are_marked_as_estimates_with_their_error(redis_url: str, client: Any) -> None:
    client.mset({f"app:box:{n}": n for n in range(10)})
    for n in range(3000):
        client.hset(f"app:job:{n}", mapping=DETAILS)
    report, _ = audited(redis_url, JOBS, options=AuditOptions(sample=0.1, prefer_replica=False))
    row = _rows(report)["job:<job>"]
    assert row.coverage == 0
    assert 0 < row.coverage_error < 0.1
    measured = sum(client.memory_usage(f"app:job:{n}") for n in range(3000))
    assert row.bytes == pytest.approx(measured, rel=0.05)
    text = as_text(report)
    assert "~0% ±" in text
    assert "~ is an estimate from a sample, with its margin at 95 % confidence" in text


def test_at_least_64_keys_of_each_template_are_measured_whatever_the_sample(
    redis_url: str, client: Any
) -> None:
    for n in range(60):
        client.hset(f"app:job:{n}", mapping=DETAILS)
    report, _ = audited(redis_url, JOBS, options=AuditOptions(sample=0.0001, prefer_replica=False))
    measured = sum(client.memory_usage(name) for name in client.scan_iter())
    assert _rows(report)["job:<job>"].bytes == measured


def test_the_scope_and_the_keys_outside_of_it_are_reported_exactly(redis_url: str, client: Any) -> None:
    client.hset("app:job:1", mapping=DETAILS)
    client.mset({f"other:{n}": "x" for n in range(1000)})
    report, findings = audited(redis_url, JOBS)
    assert findings == []
    assert (report.keys, report.tally.outside) == (1, 1000)
    assert "scope: keys whose names begin with 'app:'; 1,000 keys outside of it were not read" in as_text(
        report
    )
    assert report.as_data()["outside"] == 1000


@pytest.mark.anyio
async def test_stats_of_a_few_keys_are_exact_and_of_none_unknown(redis_url: str, client: Any) -> None:
    client.hset("app:job:1", mapping=DETAILS)
    client.mset({"other:1": "x", "other:2": "x"})
    async with aconnect(redis_url) as db:
        found = await take_snapshot(db, JOBS.model)
    counts = {count.template: count for count in found.counts}
    job = counts["job:<job>"]
    assert (job.bytes, job.bytes_error, job.expiring) == (client.memory_usage("app:job:1"), 0, 0)
    assert counts["tags:<job>"].expiring is None
    assert (found.names, found.outside) == (1, 2)


def test_a_size_that_the_server_does_not_report_is_unknown_and_not_zero(redis_url: str, client: Any) -> None:
    client.hset("app:job:1", mapping=DETAILS)
    client.acl_setuser("auditor", enabled=True, nopass=True, keys=["*"], commands=["+@all", "-memory"])
    with redis.Redis.from_url(redis_url, username="auditor", password="x") as user:
        assert user.ping()
    report, _ = audited(as_user(redis_url, "auditor", "x"), JOBS)
    assert _rows(report)["job:<job>"].bytes is None
    line = next(line for line in as_text(report).splitlines() if line.startswith("job:<job>"))
    assert line.split()[1:4] == ["1", "-", "-"]


def _rows(report: AuditReport) -> dict[str, Any]:
    return {row.template: row for row in report.rows}


def test_the_moment_of_a_ticket_is_compared_with_its_ttl(redis_url: str, client: Any) -> None:
    soon = datetime.now(UTC) + timedelta(minutes=5)
    client.set("app:ticket:1", soon.isoformat().replace("+00:00", "Z"), ex=300)
    assert audited(redis_url, JOBS)[1] == []


EXTRA = '{"name":"n","state":"s","password":"hunter2"}'


@pytest.mark.parametrize(
    ("wrong", "shown"),
    [
        (
            ("hset", "job:1", "name", "n", "state", "s", "password", "hunter2"),
            "found 'password'; entry password",
        ),
        (("set", "settings:1", EXTRA), "found 'password'"),
        (("hset", "answers:1", "ann", EXTRA), "found 'password'; entry ann"),
        (("xadd", "log:1", "1-1", "name", "n", "state", "s", "password", "x"), "found 'password'; entry 1-1"),
    ],
    ids=lambda value: value[1] if isinstance(value, tuple) else "",
)
def test_a_member_that_is_not_declared_is_a_finding(
    redis_url: str, client: Any, wrong: tuple[str, ...], shown: str
) -> None:
    client.execute_command(wrong[0], f"app:{wrong[1]}", *wrong[2:])
    report, (finding,) = audited(redis_url, JOBS)
    assert report.failed
    assert (finding.code, finding.reason) == ("KW206", "has members that are not declared")
    assert finding.shown_reason(show_ids=True) == f"has members that are not declared; {shown}"
    assert "hunter2" not in str(report.as_data())
    assert "password" not in str(report.as_data())


def test_a_class_that_is_open_may_have_members_that_are_not_declared(redis_url: str, client: Any) -> None:
    client.set("app:document:1", EXTRA)
    client.hset("app:open:1", mapping={**DETAILS, "password": "hunter2"})
    assert audited(redis_url, JOBS)[1] == []


vault = Keyspace("vault", "Tokens.")


class Token(Value[Annotated[Secret[str], SealedIfBound]], key="token:<user>", space=vault):
    """A token, sealed where a keyring is bound."""

    user: Id


@pytest.mark.parametrize(
    ("sealed", "in_clear", "state"),
    [
        (2, 0, "sealed (2 values sealed, 0 in clear)"),
        (0, 2, "in clear (0 values sealed, 2 in clear)"),
        (2, 1, "mixed (2 values sealed, 1 in clear)"),
    ],
)
@pytest.mark.parametrize("bound", [False, True], ids=["without a keyring", "with the keyring"])
def test_the_state_of_seals_is_reported_from_the_data(
    redis_url: str, sealed: int, in_clear: int, state: str, bound: bool
) -> None:
    keyring = Keyring.generate("k1")
    with connect(redis_url, vault.bind(keyring=keyring)) as db:
        for n in range(sealed):
            db.run(Token(f"s{n}").set(Secret("hunter2")))
    with connect(redis_url) as db:
        for n in range(in_clear):
            db.run(Token(f"c{n}").set(Secret("hunter2")))
    binding = vault.bind(keyring=keyring if bound else None)
    report, findings = audited(redis_url, Sample(Model("vault", (vault,)), (binding,), lambda _: None, {}))
    assert f"token:<user>: {state}" in as_text(report)
    assert [finding.code for finding in findings] == ["KW204"] * in_clear * bound
    with connect(redis_url, binding) as db:
        shown = {db.run(inspect(key)).value for key in db.scan(Token)}  # type: ignore[union-attr]  # it is there
    expected = {Hidden.SEALED: sealed, Hidden.IN_CLEAR: in_clear}
    assert shown == {mark for mark, count in expected.items() if count}
