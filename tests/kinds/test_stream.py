"""Stream: an append-only log with consumer groups."""

from __future__ import annotations

from datetime import timedelta

import msgspec
import pytest

from exploring import exploring, key_path
from keywright import Entry, Id, Keyspace, SnowflakeId, Stream, preview
from keywright.errors import (
    DeclarationError,
    ServerRefusedError,
    StoredDataError,
    ValueRefusedError,
    WrongTypeError,
)
from keywright.testing import RedisServer
from keywright.testing.runs import Raw, Run
from keywright.tools.diff import Severity, diff
from keywright.tools.docs.formats import Format, written
from keywright.tools.model import Model, ModelDescription
from old_redis import is_redis_6

space = Keyspace("weather", "What stations report.")

ABOVE_DOUBLES = 2**53 + 1
NOW = timedelta(0)


class Report(msgspec.Struct):
    station: SnowflakeId
    degrees: float
    remark: str | None = None


class Remark(msgspec.Struct):
    text: str | None = None


class Remarks(Stream[Remark], key="remarks", space=space):
    """Remarks, which may be empty, though not in Redis."""


class Reports(Stream[Report], key="reports:<region>", space=space):
    """The reports of a region, in the order they came."""

    region: Id


COLD, WARM, HOT = Report(ABOVE_DOUBLES, -4.5), Report(2, 18.0, "sunny"), Report(3, 31.0)


def _filled(run: Run) -> Reports:
    reports = Reports("alps")
    for number, report in enumerate((COLD, WARM, HOT), start=1):
        run(reports.add(report, entry_id=f"{number}-0"))
    return reports


def test_add_returns_the_id_and_leaves_out_absent_members(run: Run, raw: Raw) -> None:
    entry_id = run(Reports("alps").add(COLD))
    ((stored_id, members),) = raw("XRANGE", "reports:alps", "-", "+")
    assert stored_id.decode() == entry_id
    assert members == {b"station": b"9007199254740993", b"degrees": b"-4.5"}


def test_the_declaration_encodes_an_entry_and_decodes_it_again() -> None:
    reports = Reports("alps")
    stored = Reports.declaration.encode_members(reports, COLD)
    assert stored == {b"station": b"9007199254740993", b"degrees": b"-4.5"}
    assert Reports.declaration.decode_members(reports, stored) == COLD


def test_an_entry_with_its_own_id_is_refused_the_second_time(run: Run) -> None:
    assert run(Reports("alps").add(COLD, entry_id="5-1")) == "5-1"
    with pytest.raises(ServerRefusedError):
        run(Reports("alps").add(COLD, entry_id="5-1"))
    assert run(Reports("alps").length()) == 1


def test_add_trims_old_entries(run: Run) -> None:
    reports = _filled(run)
    (wire,) = preview(reports.add(COLD, max_length=2))
    assert wire.arguments[2:5] == (b"MAXLEN", b"~", 2)
    (wire,) = preview(reports.add(COLD, min_id="2-0"))
    assert wire.arguments[2:5] == (b"MINID", b"~", "2-0")
    run(reports.add(COLD, max_length=1000))
    assert run(reports.length()) == 4


def test_entries_are_read_in_order(run: Run) -> None:
    reports = _filled(run)
    assert run(reports.range()) == [Entry("1-0", COLD), Entry("2-0", WARM), Entry("3-0", HOT)]
    assert run(reports.range("2-0", "2-0")) == [Entry("2-0", WARM)]
    assert run(reports.range("(1-0", count=1)) == [Entry("2-0", WARM)]
    assert run(reports.newest(2)) == [Entry("3-0", HOT), Entry("2-0", WARM)]
    assert run(reports.length()) == 3


def test_read_returns_the_entries_after_an_id(run: Run) -> None:
    reports = _filled(run)
    assert run(reports.read("2-0")) == [Entry("3-0", HOT)]
    assert run(reports.read(count=1)) == [Entry("1-0", COLD)]
    assert run(reports.read("3-0")) == []
    assert run(reports.read("1-0", wait=timedelta(seconds=5))) == [Entry("2-0", WARM), Entry("3-0", HOT)]
    assert run(reports.read("$", wait=timedelta(milliseconds=20))) == []


def test_remove_and_trim_drop_entries(run: Run, raw: Raw) -> None:
    reports = _filled(run)
    assert run(reports.remove("1-0", "9-9")) == 1
    assert run(reports.trim(max_length=1, exact=True)) == 1
    assert raw("XLEN", "reports:alps") == 1
    run(reports.add(COLD, entry_id="4-0"))
    assert run(reports.trim(min_id="4-0", exact=True)) == 1
    assert run(reports.range()) == [Entry("4-0", COLD)]


def test_calls_without_ids_send_nothing(run: Run) -> None:
    assert preview(Reports("alps").remove()) == []
    assert preview(Reports("alps").acknowledge("g")) == []
    assert run(Reports("alps").remove()) == 0
    assert run(Reports("alps").acknowledge("g")) == 0


def test_a_group_is_made_once_and_with_its_stream(run: Run, raw: Raw) -> None:
    assert run(Reports("alps").create_group("archive")) is True
    assert run(Reports("alps").create_group("archive")) is False
    assert raw("TYPE", "reports:alps") == b"stream"
    assert [group.name for group in run(Reports("alps").groups())] == ["archive"]


def test_creating_a_group_on_another_type_is_an_error(run: Run, raw: Raw) -> None:
    raw("SET", "reports:alps", "x")
    with pytest.raises(WrongTypeError):
        run(Reports("alps").create_group("archive"))


def test_a_group_hands_each_entry_to_one_consumer(run: Run) -> None:
    reports = _filled(run)
    run(reports.create_group("archive"))
    assert run(reports.consume("archive", "ann", count=1)) == [Entry("1-0", COLD)]
    assert run(reports.consume("archive", "bob")) == [Entry("2-0", WARM), Entry("3-0", HOT)]
    assert run(reports.consume("archive", "bob", wait=timedelta(milliseconds=20))) == []
    assert run(reports.consume("archive", "bob", again_from="2-0")) == [Entry("3-0", HOT)]


def test_a_late_group_starts_at_the_given_entry(run: Run) -> None:
    reports = _filled(run)
    run(reports.create_group("late", start="2-0"))
    assert run(reports.consume("late", "ann")) == [Entry("3-0", HOT)]


def test_acknowledged_entries_are_not_pending(run: Run, keywright_server: RedisServer) -> None:
    reports = _filled(run)
    run(reports.create_group("archive"))
    run(reports.consume("archive", "ann"))
    assert run(reports.acknowledge("archive", "1-0", "2-0", "9-9")) == 2
    (pending,) = run(reports.pending("archive"))
    assert (pending.id, pending.consumer, pending.deliveries) == ("3-0", "ann", 1)
    assert run(reports.pending("archive", idle=timedelta(hours=1))) == []
    (group,) = run(reports.groups())
    assert (group.consumers, group.pending, group.last_delivered) == (1, 1, "3-0")
    assert group.lag == (None if is_redis_6(keywright_server) else 0)


def test_reclaim_takes_over_entries_of_another_consumer(run: Run, keywright_server: RedisServer) -> None:
    reports = _filled(run)
    run(reports.create_group("archive"))
    run(reports.consume("archive", "ann"))
    run(reports.remove("2-0"))
    page = run(reports.reclaim("archive", "bob", idle=NOW))
    assert page.cursor == "0-0"
    assert page.entries == [Entry("1-0", COLD), Entry("3-0", HOT)]
    assert page.deleted == ([] if is_redis_6(keywright_server) else ["2-0"])
    assert {entry.consumer for entry in run(reports.pending("archive"))} == {"bob"}


def test_reclaim_goes_on_from_its_cursor(run: Run) -> None:
    reports = _filled(run)
    run(reports.create_group("archive"))
    run(reports.consume("archive", "ann"))
    page = run(reports.reclaim("archive", "bob", idle=NOW, count=2))
    assert (page.cursor, len(page.entries)) == ("3-0", 2)
    rest = run(reports.reclaim("archive", "bob", idle=NOW, cursor=page.cursor))
    assert rest.entries == [Entry("3-0", HOT)]


def test_a_deleted_entry_that_is_pending_is_left_out_of_rereads(run: Run) -> None:
    reports = _filled(run)
    run(reports.create_group("archive"))
    run(reports.consume("archive", "ann"))
    run(reports.remove("1-0"))
    again = run(reports.consume("archive", "ann", again_from="0"))
    assert again == [Entry("2-0", WARM), Entry("3-0", HOT)]


def test_consumers_and_groups_are_forgotten(run: Run) -> None:
    reports = _filled(run)
    run(reports.create_group("archive"))
    run(reports.consume("archive", "ann"))
    assert run(reports.delete_consumer("archive", "ann")) == 3
    assert run(reports.delete_group("archive")) is True
    assert run(reports.delete_group("archive")) is False
    assert run(reports.groups()) == []


def test_consuming_without_a_group_names_the_remedy(run: Run) -> None:
    _filled(run)
    with pytest.raises(ServerRefusedError, match="Create the consumer group first"):
        run(Reports("alps").consume("nobody", "ann"))


def test_an_entry_of_another_type_is_not_sent() -> None:
    with pytest.raises(ValueRefusedError) as refused:
        Reports("alps").add(Report(-1, 0.0))
    assert refused.value.template == "reports:<region>"
    assert "'station'" in refused.value.expected


def test_an_entry_of_nothing_is_not_sent() -> None:
    with pytest.raises(ValueRefusedError) as refused:
        Remarks().add(Remark())
    assert refused.value.expected == "at least one member"


def test_a_stored_entry_without_a_member_names_the_key(run: Run, raw: Raw) -> None:
    raw("XADD", "reports:alps", "1-0", "station", "7")
    with pytest.raises(StoredDataError) as wrong:
        run(Reports("alps").range())
    assert wrong.value.key == b"reports:alps"
    assert wrong.value.expected == "the member 'degrees'"
    assert wrong.value.found == "only 'station'"


def test_groups_work_on_a_cluster(cluster_run: Run) -> None:
    reports = _filled(cluster_run)
    cluster_run(reports.create_group("archive"))
    assert len(cluster_run(reports.consume("archive", "ann"))) == 3
    assert cluster_run(reports.acknowledge("archive", "1-0")) == 1
    assert cluster_run(reports.read("2-0", wait=timedelta(seconds=1))) == [Entry("3-0", HOT)]


class Orders(Stream[Remark], key="orders:<shop>", space=space, groups=["billing", "mail"]):
    """Orders, which two services consume."""

    shop: Id


def _ordered(run: Run) -> Orders:
    orders = Orders("a")
    assert run(orders.create_groups()) == ["billing", "mail"]
    for number in (1, 2, 3):
        run(orders.add(Remark(f"order {number}"), entry_id=f"{number}-0"))
    return orders


def test_declared_groups_are_created_once(run: Run, raw: Raw) -> None:
    orders = _ordered(run)
    assert run(orders.create_groups()) == []
    raw("XGROUP", "DESTROY", "orders:a", "mail")
    assert run(orders.create_groups()) == ["mail"]


def test_the_lag_and_the_pending_entries_of_a_group_are_known(
    run: Run, keywright_server: RedisServer
) -> None:
    orders = _ordered(run)
    run(orders.consume("billing", "ann", count=2))
    state = run(orders.group_state("billing"))
    assert state is not None
    assert (state.pending, state.last_delivered) == (2, "2-0")
    assert state.lag == (None if is_redis_6(keywright_server) else 1)
    run(orders.delete_group("mail"))
    assert run(orders.group_state("mail")) is None


def test_claim_takes_over_the_given_entries_only(run: Run) -> None:
    orders = _ordered(run)
    run(orders.consume("billing", "ann"))
    taken = run(orders.claim("billing", "ben", "1-0", "3-0", idle=NOW))
    assert taken == [Entry("1-0", Remark("order 1")), Entry("3-0", Remark("order 3"))]
    owners = {each.id: each.consumer for each in run(orders.pending("billing"))}
    assert owners == {"1-0": "ben", "2-0": "ann", "3-0": "ben"}
    assert run(orders.claim("billing", "ann", "1-0", idle=timedelta(hours=1))) == []
    assert preview(orders.claim("billing", "ann", idle=NOW)) == []


def test_a_claimed_entry_that_was_deleted_is_left_out(run: Run) -> None:
    orders = _ordered(run)
    run(orders.consume("billing", "ann"))
    run(orders.remove("2-0"))
    assert [each.id for each in run(orders.claim("billing", "ben", "1-0", "2-0", idle=NOW))] == ["1-0"]


def test_a_group_that_is_not_declared_is_refused_before_anything_is_sent() -> None:
    orders = Orders("a")
    for call in (
        lambda: orders.create_group("other"),
        lambda: orders.consume("other", "ann"),
        lambda: orders.acknowledge("other", "1-0"),
        lambda: orders.claim("other", "ann", "1-0", idle=NOW),
        lambda: orders.reclaim("other", "ann", idle=NOW),
        lambda: orders.pending("other"),
        lambda: orders.group_state("other"),
    ):
        with pytest.raises(ValueRefusedError, match="billing, mail"):
            call()


def test_an_undeclared_group_can_be_deleted(run: Run, raw: Raw) -> None:
    raw("XGROUP", "CREATE", "orders:a", "former", "0", "MKSTREAM")
    assert run(Orders("a").delete_group("former")) is True


@pytest.mark.parametrize("groups", [[], "billing", ["a", "a"], ["a", ""], [1]])
def test_groups_that_are_not_different_names_are_a_declaration_error(groups: list[str]) -> None:
    with pytest.raises(DeclarationError):

        class Wrong(Stream[Remark], key="wrong", space=Keyspace("w", "Wrong."), groups=groups):
            """Wrong."""


def test_groups_are_used_on_a_cluster(cluster_run: Run) -> None:
    orders = _ordered(cluster_run)
    cluster_run(orders.consume("mail", "ann"))
    assert len(cluster_run(orders.claim("mail", "ben", "1-0", "2-0", idle=NOW))) == 2


def test_declared_groups_are_documented_and_a_new_one_is_a_caution() -> None:
    def described(*groups: str) -> ModelDescription:
        other = Keyspace("other", "Other.")

        class Things(Stream[Remark], key="things", space=other, groups=groups):
            """Things."""

        return Model("other", (other,)).described()

    assert "Consumer groups" in written(described("a"), Format.MARKDOWN)
    changes = diff(described("a"), described("b")).changes
    assert [(each.severity, each.what.split(":")[0]) for each in changes] == [
        (Severity.CAUTION, "the consumer group 'b' is new"),
        (Severity.CAUTION, "the consumer group 'a' is not declared any more"),
    ]


def test_the_explorer_shows_lag_and_pending_entries(
    run: Run, redis_url: str, keywright_server: RedisServer
) -> None:
    orders = _ordered(run)
    run(orders.consume("billing", "ann", count=2))
    with exploring(redis_url, [space]) as explored:
        page = explored.surveyed().get(key_path("orders:a"))
    lag = "unknown" if is_redis_6(keywright_server) else "1"
    assert f"<code>billing</code>: 2 pending, lag {lag}" in page.text
