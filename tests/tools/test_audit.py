"""Audits: counts, findings, ignored keys, and masked ids."""

from __future__ import annotations

import threading
import tracemalloc
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import redis

import kinship
import migrating
from audit_samples import SAMPLES
from audited import PRIMARIES, Sample, audited, repaired
from examples import bookshop
from failing_walks import left_of
from keywright import Database, Keyspace, Set, SnowflakeStr, Value, many_to_one, refers
from keywright.errors import ServerRefusedError, UsageError
from keywright.testing import RedisCluster, RedisServer, as_user
from keywright.testing.conditions import wait_until
from keywright.testing.runs import Raw
from keywright.tools.audit import (
    CODES,
    AuditOptions,
    Checkpoint,
    WalkProgress,
    audit,
    codes_named,
    parse_budget,
)
from keywright.tools.audit import checkpoint as resuming
from keywright.tools.audit.tally import Tally
from keywright.tools.model import Model
from keywright.tools.pace import FULL_SPEED, Pace
from keywright.tools.repair.fingerprints import fingerprint
from replicas import replica_in_sync

ROOT = Path(__file__).parents[2]

box = Keyspace("box", "A few keys in a box of their own.", prefix="box")


class Parcel(Value[str], key="parcel:<parcel>", space=box):
    """The content of a parcel."""

    parcel: SnowflakeStr


hall = Keyspace("hall", "Ids in a relation that no name can have.", prefix="hall")


class TicketCar(Value[str], key="ticket:<ticket>:car", space=hall):
    """The car of a ticket."""

    ticket: int


class CarTickets(Set[int], key="car:<plate>:tickets", space=hall):
    """The tickets of a car."""

    plate: str


class Fined(Set[str], key="fined", space=hall):
    """The plates of cars that were fined."""


class Owner(Value[str], key="car:<plate>:owner", space=hall):
    """The owner of a car."""

    plate: str


many_to_one(TicketCar, inverse=CarTickets)
refers(Fined, Owner, lambda _, plates: plates, name="fined")
refers(Owner, Owner, lambda _, heir: [heir], name="heir")
HALL = Sample(Model("hall", (hall,)), (), lambda _: None, {})
BOX = Sample(Model("box", (box,)), (), lambda _: None, {})
TOWN = SAMPLES["town"]()


@pytest.fixture
def client(redis_url: str) -> Iterator[Any]:
    with redis.Redis.from_url(redis_url) as found:
        yield found


@pytest.mark.parametrize("code", CODES)
def test_every_code_has_a_page_that_describes_its_repair(code: str) -> None:
    page = (ROOT / CODES[code].page).read_text()
    assert page.startswith(f"# {code} {CODES[code].word}\n")
    assert "## What repair does" in page
    assert f"[{code}]({code}.md)" in (ROOT / "docs/findings/README.md").read_text()


def test_findings_are_named_by_code_word_or_group() -> None:
    assert codes_named(["KW101", "dangling", "index"]) == {"KW101", "KW401", "KW404", "KW405"}


def test_keys_and_bytes_equal_the_counts_of_the_server(redis_url: str, client: Any) -> None:
    sample = SAMPLES["drc"]()
    with sample.open(redis_url) as db:
        sample.fill(db)
    report, _ = audited(redis_url, sample)
    names = client.keys()
    measured = sum(client.memory_usage(name) for name in names)
    assert sum(row.keys for row in report.rows) == len(names)
    assert sum(row.bytes or 0 for row in report.rows) == pytest.approx(measured, rel=0.05)
    assert sum(row.share or 0 for row in report.rows) == pytest.approx(1)
    messages = next(row for row in report.rows if row.template == "messages:<message>")
    assert messages.coverage == 1


def test_an_audit_only_reads_and_never_asks_for_all_keys(redis_url: str, client: Any) -> None:
    with TOWN.open(redis_url) as db:
        TOWN.fill(db)
    before = _stored(client)
    client.config_resetstat()
    audited(redis_url, TOWN)
    used = {name.removeprefix("cmdstat_") for name in client.info("commandstats")}
    asked = {"scan", "get", "mget", "strlen", "sscan", "pttl", "memory|usage", "sismember", "exists"}
    connected = {"auth", "hello", "client|setinfo", "select", "info", "command|info", "dbsize"}
    unspecific = {"memory", "command", "client", "config"}  # Redis 6.2 does not count subcommands apart
    assert used <= asked | connected | unspecific | {"config|resetstat"}
    assert _stored(client) == before


def test_unknown_keys_are_grouped_and_those_of_others_left_alone(redis_url: str, client: Any) -> None:
    client.mset({f"box:old:{n}": "x" for n in range(30)} | {f"other:{n}": "x" for n in range(9)})
    client.set("box:parcel:7", "a book")
    report, findings = audited(redis_url, BOX)
    assert report.patterns == [("box:old:<number>", 30)]
    assert {finding.code for finding in findings} == {"KW101"}
    assert (report.keys, report.tally.outside) == (31, 9)


def test_ids_and_values_are_masked_unless_asked_for(redis_url: str, client: Any) -> None:
    client.set("box:parcel:123456789", b"\xff\xfe secret-ish")
    report, _ = audited(redis_url, BOX)
    assert "123456789" not in str(report.as_data())
    assert "secret-ish" not in str(report.as_data())
    shown, _ = audited(redis_url, BOX, show_ids=True)
    assert "123456789" in str(shown.as_data())
    assert "secret-ish" in str(shown.as_data())


def test_an_id_that_no_name_can_have_is_a_finding(redis_url: str, client: Any, tmp_path: Path) -> None:
    client.mset({"hall:ticket:1:car": "B-AX1", "hall:ticket:2:car": "B AX 2"})
    client.sadd("hall:car:B-AX1:tickets", 1)
    report, findings = audited(redis_url, HALL)
    assert report.counts == {"KW202": 1}
    (found,) = findings
    assert found.name == b"hall:ticket:2:car"
    assert "as <plate> of 'car:<plate>:tickets'" in str(report.as_data())
    repaired(redis_url, HALL, tmp_path / "undo.jsonl")
    assert client.mget("hall:ticket:1:car", "hall:ticket:2:car") == [b"B-AX1", None]


def test_a_reference_to_an_id_that_no_name_can_have_dangles(
    redis_url: str, client: Any, tmp_path: Path
) -> None:
    client.sadd("hall:fined", "B-AX1", "B AX 2")
    client.mset({"hall:car:B-AX1:owner": "B-AX1", "hall:car:B-AX3:owner": "B AX 3"})
    report, findings = audited(redis_url, HALL)
    assert report.counts == {"KW401": 2}
    assert sorted((each.name, each.member) for each in findings) == [
        (b"hall:car:B-AX3:owner", None),
        (b"hall:fined", b"B AX 2"),
    ]
    assert "leads to no Owner: no name can have this id" in str(report.as_data())
    repaired(redis_url, HALL, tmp_path / "undo.jsonl")
    assert client.smembers("hall:fined") == {b"B-AX1"}
    assert client.keys("hall:car:*") == [b"hall:car:B-AX1:owner"]


def test_declared_secrets_are_never_shown(redis_url: str, client: Any) -> None:
    client.set("shop:door_code", b"\xff4711")
    sample = SAMPLES["bookshop"]()
    report, _ = audited(redis_url, sample, show_ids=True)
    assert report.counts == {"KW202": 1}
    assert "4711" not in str(report.as_data())


def test_a_sample_reads_some_values_and_matches_all_names(redis_url: str, client: Any) -> None:
    client.mset({f"box:parcel:{n}": "x" * 100 for n in range(1, 2001)})
    client.set("box:strange", "x")
    full, _ = audited(redis_url, BOX)
    client.config_resetstat()
    report, findings = audited(redis_url, BOX, options=PRIMARIES._replace(sample=0.1))
    assert [finding.code for finding in findings] == ["KW101"]
    (row,) = report.rows
    assert row.keys == 2000
    assert row.bytes == pytest.approx(full.rows[0].bytes, rel=0.05)
    assert 100 < report.tally.templates["parcel:<parcel>"].sized < 300


def test_a_budget_that_is_exceeded_is_a_finding(redis_url: str, client: Any) -> None:
    client.set("box:parcel:1", "x" * 5000)
    over, _ = audited(redis_url, BOX, budgets=[parse_budget("parcel:<parcel>=4KB")])
    within, _ = audited(redis_url, BOX, budgets=[parse_budget("*=1MB")])
    assert over.counts == {"KW501": 1}
    assert within.counts == {}


def test_the_codes_to_fail_on_can_be_chosen(redis_url: str, client: Any) -> None:
    client.set("box:strange", "x")
    assert audited(redis_url, BOX)[0].failed
    assert not audited(redis_url, BOX, failing=codes_named(["dangling"]))[0].failed


def _interrupt_after(number: int) -> Callable[[WalkProgress], None]:
    def interrupt(progress: WalkProgress) -> None:
        if progress.seen > number:
            raise KeyboardInterrupt

    return interrupt


def test_an_interrupted_audit_goes_on_where_it_was(
    redis_url: str, client: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    client.mset({f"box:parcel:{n}": "x" for n in range(1, 5001)} | {"box:strange": "x"})
    monkeypatch.setattr(resuming, "EVERY_SECONDS", 0.0)
    path, slowly = tmp_path / "progress", PRIMARIES._replace(pace=Pace(10_000, full_speed=True))
    checkpoint = Checkpoint.at(path, ["box"])
    with pytest.raises(KeyboardInterrupt):
        audited(redis_url, BOX, options=slowly, checkpoint=checkpoint, on_progress=_interrupt_after(2500))
    assert path.stat().st_mode & 0o077 == 0
    client.config_resetstat()
    report, _ = audited(redis_url, BOX, options=slowly, checkpoint=Checkpoint.at(path, ["box"]))
    assert report.rows[0].keys == 5000
    assert report.counts == {"KW101": 1}
    assert 0 < client.info("commandstats")["cmdstat_scan"]["calls"] < 5000 / 200 * 0.6
    assert not path.exists()


def test_the_rate_is_held(redis_url: str, client: Any) -> None:
    client.mset({f"box:parcel:{n}": "x" for n in range(1, 1001)})
    seen: list[WalkProgress] = []
    audited(redis_url, BOX, options=PRIMARIES._replace(pace=Pace(5000)), on_progress=seen.append)
    assert seen[-1].seen == 1000
    assert seen[-1].rate <= 5500


def test_large_collections_are_read_in_pages_and_truncated_ones_are_reported(
    redis_url: str, client: Any
) -> None:
    client.sadd("housed", *(f"p{n}" for n in range(3000)))
    report, findings = audited(redis_url, TOWN)
    assert report.counts == {"KW404": 3000}
    assert len({finding.member for finding in findings}) == 3000
    part, _ = audited(redis_url, TOWN, options=PRIMARIES._replace(entries=1000))
    assert part.tally.truncated == 1
    assert part.counts["KW404"] < 3000


def test_values_too_large_to_read_are_measured_and_noted(redis_url: str, client: Any) -> None:
    client.mset({f"box:parcel:{n}": "x" for n in range(1, 100)} | {"box:parcel:100": "x" * (2 << 20)})
    report, _ = audited(redis_url, BOX)
    assert report.counts == {"KW502": 1}
    assert not report.failed
    (row,) = report.rows
    assert row.keys == 100
    assert (row.bytes or 0) > row.largest_bytes >= 2 << 20


def test_a_relation_that_moves_during_the_audit_is_not_a_finding(redis_url: str) -> None:
    with TOWN.open(redis_url) as db:
        TOWN.fill(db)
        stop = threading.Event()
        mover = threading.Thread(target=_move_house, args=(db, stop))
        mover.start()
        try:
            for _ in range(8):
                _, findings = audited(redis_url, TOWN)
                assert findings == []
        finally:
            stop.set()
            mover.join()


def test_replicas_are_read_where_there_are_any(keywright_cluster: RedisCluster, cluster_url: str) -> None:
    with TOWN.open(cluster_url) as db:
        TOWN.fill(db)
    whole, _ = audited(cluster_url, TOWN)

    def caught_up() -> bool:
        report, findings = audited(cluster_url, TOWN, options=AuditOptions())
        assert report.replicas == 3
        return findings == [] and report.tally.names == whole.tally.names

    wait_until(caught_up, "an audit of the replicas that finds all there is")


def test_a_key_under_a_former_name_is_distinguished_from_an_unknown_key(redis_url: str, client: Any) -> None:
    client.hset("shop:customer:7", mapping={"first_name": "Ben Nevis", "last_name": ""})
    client.set("shop:nobodys", "x")
    _, findings = audited(redis_url, SAMPLES["bookshop"]())
    assert {finding.code: finding.name for finding in findings} == {
        "KW102": b"shop:customer:7",
        "KW101": b"shop:nobodys",
    }


def test_names_that_are_not_text_are_unknown_keys(redis_url: str, client: Any) -> None:
    client.set(b"box:parcel:\xff\xfe", "x")
    client.set(b"box:parcel:1\nbox:parcel:2", "x")
    report, _ = audited(redis_url, BOX)
    assert report.counts == {"KW101": 2}


def test_ignored_names_are_left_out(redis_url: str, client: Any) -> None:
    client.set("box:strange:1", "x")
    report, _ = audited(redis_url, BOX, options=PRIMARIES._replace(ignore=["box:strange:*"]))
    assert report.counts == {}


def test_seals_are_not_judged_without_a_keyring(keywright_server: RedisServer, redis_url: str) -> None:
    sample = SAMPLES["bookshop"]()
    with sample.open(redis_url) as db:
        sample.fill(db)
    without = sample._replace(bindings=(bookshop.shop.bind(), bookshop.last_year.bind()))
    assert audited(redis_url, without)[1] == []


def _move_house(db: Database, stop: threading.Event) -> None:
    turn = 0
    while not stop.is_set():
        turn += 1
        db.run(kinship.home.replace(f"p{turn % 60}", f"h{turn % 19}"))
        db.run(kinship.desk.replace(f"p{turn % 60}", f"d{turn % 60}"))


def _stored(client: Any) -> dict[bytes, str]:
    return {name: fingerprint(client.dump(name)) for name in client.scan_iter()}


@pytest.mark.parametrize("after", [0, 1000], ids=["at once", "with pages on their way"])
def test_a_replica_that_goes_away_is_replaced_by_its_primary(after: int) -> None:
    with RedisServer(tcp=True) as primary, RedisServer(tcp=True, replica_of=primary) as replica:
        replica_in_sync(primary, replica)
        with redis.Redis.from_url(primary.tcp_url) as client:
            client.mset({f"box:parcel:{n}": "x" for n in range(1, 3001)})
            assert client.wait(1, 10_000) == 1
        stopped: list[int] = []

        def stop_once(progress: WalkProgress) -> None:
            if not stopped and progress.seen > after:
                stopped.append(progress.seen)
                replica.stop()

        report, findings = audited(
            primary.tcp_url, BOX, options=AuditOptions(pace=Pace(8_000)), on_progress=stop_once
        )
        assert report.replicas == 1
        assert stopped
        assert stopped[0] < 3000
        assert findings == []
        assert report.rows[0].keys == 3000


@pytest.mark.parametrize("change", ["restarted", "another database"])
def test_a_cursor_of_a_server_that_was_restarted_or_of_another_database_is_not_gone_on_from(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, change: str
) -> None:
    monkeypatch.setattr(resuming, "EVERY_SECONDS", 0.0)
    path, parcels = tmp_path / "progress", {f"box:parcel:{n}": "x" for n in range(1, 3001)}
    with RedisServer(tcp=True) as server:
        url = server.tcp_url
        with redis.Redis.from_url(url) as client:
            client.mset(parcels)
        slowly, checkpoint = PRIMARIES._replace(pace=Pace(10_000)), Checkpoint.at(path, ["box"])
        with pytest.raises(KeyboardInterrupt):
            audited(url, BOX, options=slowly, checkpoint=checkpoint, on_progress=_interrupt_after(1000))
        if change == "restarted":
            server.restart()
        else:
            url, parcels = url.removesuffix("/0") + "/1", {"box:parcel:1": "x"}
        with redis.Redis.from_url(url) as client:
            client.mset(parcels)
        report, _ = audited(url, BOX, checkpoint=Checkpoint.at(path, ["box"]))
    assert report.rows[0].keys == len(parcels)


def test_a_checkpoint_keeps_the_counts_until_each_cursor(tmp_path: Path) -> None:
    path, one = tmp_path / "progress", Tally(names=1)
    checkpoint = Checkpoint.at(path, ["box"])
    checkpoint.save("one", 5, one)
    one.names = 10  # its next pages, which its cursor is not behind yet
    checkpoint.save("other", 7, Tally(names=3))
    again = Checkpoint.at(path, ["box"])
    assert [again.of("one"), again.of("other")] == [(5, Tally(names=1)), (7, Tally(names=3))]


def test_an_audit_of_a_cluster_that_goes_on_counts_nothing_twice(
    cluster_url: str, raw_cluster: Raw, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for n in range(1, 601):
        raw_cluster("SET", f"box:parcel:{n}", "x")
    monkeypatch.setattr(resuming, "EVERY_SECONDS", 0.0)
    path, slowly = tmp_path / "progress", PRIMARIES._replace(pace=Pace(2000))
    checkpoint = Checkpoint.at(path, ["box"])
    with pytest.raises(KeyboardInterrupt):
        audited(cluster_url, BOX, options=slowly, checkpoint=checkpoint, on_progress=_interrupt_after(300))
    assert path.exists()
    report, _ = audited(cluster_url, BOX, checkpoint=Checkpoint.at(path, ["box"]))
    assert report.rows[0].keys == 600


@pytest.mark.parametrize("forbidden", ["mget", "sscan", "pttl", "type", "sismember"])
def test_an_audit_that_may_not_read_says_so(redis_url: str, client: Any, forbidden: str) -> None:
    client.mset({"person:ann": "Ann", "person:ann:home": "h1", "club:c1:members": "no set"})
    client.sadd("housed", "ann")
    client.sadd("house:h1:residents", "ann")
    client.sadd("people", "ann")
    rules = ["reset", "on", "nopass", "~*", "+@all", f"-{forbidden}"]
    client.execute_command("ACL", "SETUSER", "looker", *rules)
    try:
        with pytest.raises(ServerRefusedError, match=r"NOPERM.*Grant this user"):
            audited(as_user(redis_url, "looker", "x"), TOWN)
    finally:
        client.execute_command("ACL", "DELUSER", "looker")


def test_a_record_that_was_read_in_part_is_not_said_to_lack_members(redis_url: str, client: Any) -> None:
    client.hset("sheet:a", mapping={f"extra{n}": "x" for n in range(3000)} | {"title": "Waves"})
    library = Sample(Model("library", (migrating.now,)), (), lambda _: None, {})
    report, findings = audited(redis_url, library, options=PRIMARIES._replace(entries=1))
    assert report.tally.truncated == 1
    assert [finding.code for finding in findings if finding.code != "KW301"] == []


def test_memory_does_not_grow_with_the_obligations_of_a_page(redis_url: str, client: Any) -> None:
    number = 230  # each person is in every club: so many questions, for each side, on one page of names
    for n in range(number):
        client.sadd(f"person:p{n}:clubs", *(f"c{m}" for m in range(number)))
        client.sadd(f"club:c{n}:members", *(f"p{m}" for m in range(number)))
    tracemalloc.start()
    try:
        report, _ = audited(redis_url, TOWN, options=PRIMARIES._replace(pace=FULL_SPEED))
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert report.counts == {}
    assert peak < 40 << 20


def test_a_budget_of_an_undeclared_template_is_refused_before_anything_is_read(redis_url: str) -> None:
    reported: list[WalkProgress] = []
    with pytest.raises(UsageError, match="budget of 'parcels' does not name a template"):
        audited(redis_url, BOX, budgets=[parse_budget("parcels=1MB")], on_progress=reported.append)
    assert reported == []


def test_a_node_that_fails_ends_the_walk_of_the_others(cluster_url: str, raw_cluster: Raw) -> None:
    for n in range(1, 301):
        raw_cluster("SET", f"box:parcel:{n}", "x")

    options = PRIMARIES._replace(pace=Pace(500))
    assert left_of(cluster_url, lambda db, fail: audit(db, BOX.model, options, on_progress=fail)) == []


def test_a_former_name_that_is_not_text_is_an_unknown_key(redis_url: str, client: Any) -> None:
    client.sadd(b"loans:\xff\xfe", "b1")
    client.sadd("loans:ann", "b1")
    library = Sample(Model("library", (migrating.now,)), (), lambda _: None, {})
    assert audited(redis_url, library)[0].counts == {"KW101": 1, "KW102": 1}
