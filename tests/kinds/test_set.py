"""Set: distinct members."""

from __future__ import annotations

import pytest

from keywright import Id, Keyspace, Set, SnowflakeId, preview
from keywright.errors import CrossSlotError, StoredDataError, ValueRefusedError, WrongTypeError
from keywright.testing.runs import Raw, Run

space = Keyspace("choirs", "Who sings in which choir.")

ABOVE_DOUBLES = 2**53 + 1


class Singers(Set[SnowflakeId], key="singers:<choir>", space=space):
    """The singers of a choir."""

    choir: Id


class Section(Set[SnowflakeId], key="{choir:<choir>}:section:<voice>", space=space):
    """The singers of one voice; the voices of a choir share a slot."""

    choir: Id
    voice: Id


def test_add_counts_the_new_members(run: Run, raw: Raw) -> None:
    assert run(Singers("bach").add(ABOVE_DOUBLES, 2)) == 2
    assert run(Singers("bach").add(2, 3)) == 1
    assert raw("SMEMBERS", "singers:bach") == {b"9007199254740993", b"2", b"3"}
    assert run(Singers("bach").members()) == {ABOVE_DOUBLES, 2, 3}


def test_remove_counts_the_entries_that_existed(run: Run, raw: Raw) -> None:
    run(Singers("bach").add(1, 2))
    assert run(Singers("bach").remove(2, 9)) == 1
    assert raw("SMEMBERS", "singers:bach") == {b"1"}


def test_replace_leaves_only_the_given_entries(run: Run, raw: Raw) -> None:
    run(Singers("bach").add(1, 2))
    run(Singers("bach").replace([3]))
    assert raw("SMEMBERS", "singers:bach") == {b"3"}
    run(Singers("bach").replace([]))
    assert raw("EXISTS", "singers:bach") == 0


def test_membership_is_asked_for_one_and_for_many(run: Run) -> None:
    run(Singers("bach").add(1))
    assert run(Singers("bach").has(1)) is True
    assert run(Singers("bach").has(2)) is False
    assert run(Singers("bach").has_many([1, 2])) == {1: True, 2: False}
    assert run(Singers("bach").size()) == 1


def test_a_missing_set_is_empty(run: Run) -> None:
    assert run(Singers("none").members()) == set()
    assert run(Singers("none").pop()) is None
    assert run(Singers("none").pop_many(2)) == set()


def test_pop_removes_the_returned_member(run: Run, raw: Raw) -> None:
    run(Singers("bach").add(1, 2, 3))
    one = run(Singers("bach").pop())
    two = run(Singers("bach").pop_many(2))
    assert {one} | two == {1, 2, 3}
    assert raw("EXISTS", "singers:bach") == 0


def test_a_sample_holds_different_members(run: Run) -> None:
    run(Singers("bach").add(1, 2, 3))
    assert len(set(run(Singers("bach").sample(2)))) == 2
    assert sorted(run(Singers("bach").sample(9))) == [1, 2, 3]


def test_scan_pages_through_every_member(run: Run) -> None:
    singers = {2**53 + number for number in range(1000)}
    run(Singers("bach").add(*singers))
    cursor, page = run(Singers("bach").scan(count=100))
    found, pages = set(page), 1
    while cursor:
        cursor, page = run(Singers("bach").scan(cursor, count=100))
        found |= set(page)
        pages += 1
    assert found == singers
    assert pages > 1


def test_sets_are_combined_by_the_server(run: Run) -> None:
    run(Singers("bach").add(1, 2))
    run(Singers("verdi").add(2, 3))
    assert run(Singers("bach").union(Singers("verdi"))) == {1, 2, 3}
    assert run(Singers("bach").intersection(Singers("verdi"))) == {2}
    assert run(Singers("bach").difference(Singers("verdi"))) == {1}
    assert run(Singers("bach").union()) == {1, 2}


def test_move_takes_a_member_along(run: Run, raw: Raw) -> None:
    run(Singers("bach").add(1))
    assert run(Singers("bach").move(1, Singers("verdi"))) is True
    assert run(Singers("bach").move(1, Singers("verdi"))) is False
    assert raw("EXISTS", "singers:bach") == 0
    assert raw("SMEMBERS", "singers:verdi") == {b"1"}


def test_calls_without_members_send_nothing(run: Run) -> None:
    for call in (Singers("bach").add(), Singers("bach").remove(), Singers("bach").has_many([])):
        assert preview(call) == []
    assert run(Singers("bach").add()) == 0
    assert run(Singers("bach").remove()) == 0
    assert run(Singers("bach").has_many([])) == {}


def test_a_member_outside_the_type_is_not_sent() -> None:
    with pytest.raises(ValueRefusedError) as refused:
        Singers("bach").add(-1)
    assert refused.value.template == "singers:<choir>"


def test_a_stored_member_that_does_not_decode_names_the_key(run: Run, raw: Raw) -> None:
    raw("SADD", "singers:bach", "Anna")
    with pytest.raises(StoredDataError) as wrong:
        run(Singers("bach").members())
    assert wrong.value.key == b"singers:bach"
    assert wrong.value.template == "singers:<choir>"
    assert wrong.value.found == "b'Anna'"


def test_a_string_under_the_name_is_named(run: Run, raw: Raw) -> None:
    raw("SET", "singers:bach", "x")
    with pytest.raises(WrongTypeError) as wrong:
        run(Singers("bach").add(1))
    assert wrong.value.expected == "a set (set)"


def test_tagged_sets_are_combined_and_moved_on_a_cluster(cluster_run: Run, raw_cluster: Raw) -> None:
    alto, bass = Section("bach", "alto"), Section("bach", "bass")
    cluster_run(alto.add(1, 2))
    cluster_run(bass.add(2))
    assert cluster_run(alto.union(bass)) == {1, 2}
    assert cluster_run(alto.intersection(bass)) == {2}
    assert cluster_run(alto.difference(bass)) == {1}
    assert cluster_run(alto.move(1, bass)) is True
    assert raw_cluster("SMEMBERS", "{choir:bach}:section:bass") == {b"1", b"2"}


def test_untagged_sets_are_refused_on_a_cluster_before_anything_is_sent(
    cluster_run: Run, raw_cluster: Raw
) -> None:
    bach, verdi = Singers("bach"), Singers("verdi")
    cluster_run(bach.add(1))
    for call in (bach.union(verdi), bach.intersection(verdi), bach.difference(verdi)):
        with pytest.raises(CrossSlotError) as refused:
            cluster_run(call)
        assert {name for name, _ in refused.value.keys} == {b"singers:bach", b"singers:verdi"}
    with pytest.raises(CrossSlotError):
        cluster_run(bach.move(1, verdi))
    assert raw_cluster("SMEMBERS", "singers:bach") == {b"1"}
    assert raw_cluster("EXISTS", "singers:verdi") == 0
