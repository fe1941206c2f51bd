"""The upgrade of v1 databases: on read, while events are handled, and by a sweep."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from keywright import gather_list
from keywright.errors import StoredDataError
from keywright.operations import Rounds
from keywright_openmod.actions import LinkAction
from keywright_openmod.extracts import read_extract, read_upgraded
from keywright_openmod.schema import ExtractHash, LinkExtract, UnresolvedAuditError
from keywright_openmod.upgrade import UpgradeProgress, upgrade_all

from .newsroom import NOON, Newsroom, deleted, mod_action, updated
from .reddit_double import Exchange, PublicPost

AT_MS = int(NOON.timestamp() * 1000)


def store(room: Newsroom, post: str, action: str, actor: str, thing: str, owner: str) -> None:
    """Store an action with the commands of v1."""
    permalink = "" if thing.startswith("t2_") else f"/r/cats/comments/{thing[3:]}/"
    room.raw("ZADD", f"user:{owner}", AT_MS, thing)
    room.raw("ZADD", f"mod-actions:{thing}", AT_MS, post)
    words = ("type", action, "actor", actor, "thingId", thing, "permalink", permalink, "createdAt", AT_MS)
    room.raw("HSET", f"audit:{post}", *words)


def v1_database(room: Newsroom) -> dict[str, dict[str, str]]:
    """Store a v1 audit of every type, and return the extracts that they become."""
    ann, mod = room.reddit.join("Ann"), room.reddit.join("Mod")
    post, comment = room.reddit.write_post(ann, "secret"), room.reddit.write_comment(ann, "secret")
    expected = {}
    for number, action in enumerate(("removelink", "spamlink", "approvelink")):
        store(room, f"t3_a{number}", action, "Mod", post.id, ann.id)
        expected[f"audit:t3_a{number}"] = {
            "type": action,
            "actor": mod.id,
            "target": ann.id,
            "link": post.id,
        }
    for number, action in enumerate(("removecomment", "spamcomment", "approvecomment")):
        store(room, f"t3_b{number}", action, "mod", comment.id, ann.id)
        expected[f"audit:t3_b{number}"] = {
            "type": action,
            "actor": mod.id,
            "target": ann.id,
            "comment": comment.id,
        }
    for number, action in enumerate(("banuser", "unbanuser", "muteuser", "unmuteuser")):
        store(room, f"t3_c{number}", action, "Mod", ann.id, ann.id)
        expected[f"audit:t3_c{number}"] = {"type": action, "actor": mod.id, "target": ann.id}
    store(room, "t3_d0", "removelink", "Anti-Evil Operations", post.id, ann.id)
    expected["audit:t3_d0"] = {
        "type": "removelink",
        "actor": "t2_antieviloperations",
        "target": ann.id,
        "link": post.id,
    }
    store(room, "t3_d1", "removelink", "LeftLongAgo", post.id, ann.id)
    expected["audit:t3_d1"] = {
        "type": "removelink",
        "actor": "t2_deleted",
        "target": ann.id,
        "link": post.id,
    }
    return expected


def audits(room: Newsroom) -> dict[str, Any]:
    return {name: value for name, value in room.everything().items() if name.startswith("audit:")}


def test_reading_upgrades_every_type(any_room: Newsroom) -> None:
    expected = v1_database(any_room)
    others = {name: value for name, value in any_room.everything().items() if name not in expected}
    for name in expected:
        found = any_room.wait(
            read_extract(any_room.db, any_room.reddit.session(), name.removeprefix("audit:"))
        )
        assert found.type == expected[name]["type"]
    assert audits(any_room) == expected, "with a member of v1 left it would be v1 forever"
    assert {name: value for name, value in any_room.everything().items() if name not in expected} == others


@pytest.mark.parametrize("by", ["reading", "the sweep"])
@pytest.mark.parametrize("created", [{}, {"createdAt": "2024-01-02T12:00:00Z"}, {"createdAt": ""}], ids=str)
@pytest.mark.parametrize("action", ["banuser", "unbanuser", "muteuser", "unmuteuser"])
def test_a_v1_audit_of_a_user_without_a_permalink_or_a_numeric_time_is_upgraded(
    room: Newsroom, action: str, created: dict[str, str], by: str
) -> None:
    """The document: "if a comment or post, the permalink". Actions on users have none."""
    room.reddit.join("Mod")
    room.reddit.join("Eve")
    words = [x for pair in created.items() for x in pair]
    room.raw("HSET", "audit:t3_a", "type", action, "actor", "Mod", "thingId", "t2_eve", *words)
    if by == "reading":
        found = room.wait(read_extract(room.db, room.reddit.session(), "t3_a"))
        assert (found.type, found.target) == (action, "t2_eve")
    else:
        assert room.upgrade().left == ()
    assert audits(room) == {"audit:t3_a": {"type": action, "actor": "t2_mod", "target": "t2_eve"}}


def test_an_audit_whose_ids_are_stored_is_upgraded_without_the_platform(room: Newsroom) -> None:
    store(room, "t3_a", "banuser", "[ redacted ]", "t2_ann", "t2_ann")
    store(room, "t3_b", "removelink", "reddit", "t3_1", "t2_ann")
    room.raw(
        "HSET", "cache:t3_1", "type", "post", "title", "T", "url", "u", "permalink", "/p", "author", "t2_ann"
    )
    assert room.run(ExtractHash("t3_a").get()).actor == "t2_redacted"
    assert room.run(ExtractHash("t3_b").get()) == LinkExtract(
        LinkAction.REMOVE_LINK, "t2_reddit", "t2_ann", "t3_1"
    )


def test_an_audit_that_needs_the_platform_is_an_error_and_stays_unchanged(room: Newsroom) -> None:
    store(room, "t3_a", "banuser", "Mod", "t2_ann", "t2_ann")
    before = room.everything()
    with pytest.raises(UnresolvedAuditError, match="both ask the platform"):
        room.run(ExtractHash("t3_a").get())
    assert room.everything() == before


@pytest.mark.parametrize(
    ("gone", "target"), [("account", "t2_deleted"), ("submission", "t2_unavailable")], ids=str
)
def test_authors_who_no_longer_exist_become_special_accounts(room: Newsroom, gone: str, target: str) -> None:
    ann = room.reddit.join("Ann")
    room.reddit.join("Mod")
    post = room.reddit.write_post(ann, "one")
    store(room, "t3_a", "removelink", "Mod", post.id, ann.id)
    if gone == "account":
        room.reddit.delete_account(ann.id)
    else:
        del room.reddit.things[post.id]
    found = room.wait(read_extract(room.db, room.reddit.session(), "t3_a"))
    assert found.target == target


def test_concurrent_upgrades_agree_and_a_writer_in_between_wins(room: Newsroom) -> None:
    v1_database(room)

    async def at_once() -> list[Any]:
        session = room.reddit.session()
        return await asyncio.gather(*(read_extract(room.db, session, "t3_a0") for _ in range(8)))

    assert len(set(map(repr, room.wait(at_once())))) == 1
    store(room, "t3_z", "removelink", "Mod", "t3_p1", "t2_ann")
    rounds = read_upgraded("t3_z", "t2_mod", "t2_ann").rounds(room.db.context)
    wires = next(rounds)
    replies = room.run(Exchange(wires))
    room.raw("DEL", "audit:t3_z")
    room.raw("HSET", "audit:t3_z", "type", "banuser", "actor", "t2_new", "target", "t2_ann")
    assert _to_the_end(room, rounds, replies).actor == "t2_new"


def _to_the_end(room: Newsroom, rounds: Rounds[Any], replies: list[Any]) -> Any:
    try:
        while True:
            replies = room.run(Exchange(rounds.send(replies)))
    except StopIteration as stop:
        return stop.value


def test_a_record_of_no_version_is_reported_and_left(room: Newsroom) -> None:
    store(room, "t3_a", "lock", "Mod", "t3_1", "t2_ann")
    before = room.everything()
    with pytest.raises(StoredDataError):
        room.wait(read_extract(room.db, room.reddit.session(), "t3_a"))
    assert room.upgrade().left == ("t3_a",)
    assert audits(room) == {name: value for name, value in before.items() if name.startswith("audit:")}


@pytest.mark.parametrize(
    ("action", "thing"),
    [("removelink", "t1_1"), ("spamcomment", "t3_1"), ("banuser", "t3_1"), ("unmuteuser", "t1_1")],
)
def test_an_audit_whose_thing_does_not_fit_its_action_is_reported_and_left(
    room: Newsroom, action: str, thing: str
) -> None:
    room.reddit.join("Mod")
    store(room, "t3_a", action, "Mod", thing, "t2_ann")
    store(room, "t3_b", "banuser", "Mod", "t2_ann", "t2_ann")
    done = room.upgrade()
    assert (done.left, done.upgraded) == (("t3_a",), 1)
    assert room.everything()["audit:t3_a"]["thingId"] == thing
    with pytest.raises(StoredDataError, match=thing):
        room.wait(read_extract(room.db, room.reddit.session(), "t3_a"))


def test_the_sweep_upgrades_everything_and_enrols_everyone(any_room: Newsroom) -> None:
    expected = v1_database(any_room)
    store(any_room, "t3_e", "banuser", "Mod", "t2_bob", "t2_bob")
    expected["audit:t3_e"] = {"type": "banuser", "actor": "t2_mod", "target": "t2_bob"}
    kept = {n: v for n, v in any_room.everything().items() if n.startswith(("user:", "mod-actions:"))}
    reports: list[UpgradeProgress] = []
    done = any_room.upgrade(progress=reports.append, page=4)
    assert audits(any_room) == expected
    assert {n: v for n, v in any_room.everything().items() if n.startswith(("user:", "mod-actions:"))} == kept
    assert (done.total, done.seen, done.upgraded, done.left) == (13, 13, 13, ())
    assert done.enrolled == 2
    assert set(any_room.everything()["cdpComplianceUserList"]) == {"t2_ann", "t2_bob", "t2_mod"}
    assert reports[-1] == done
    assert [step.seen for step in reports] == sorted(step.seen for step in reports)
    asked = [word for word in any_room.reddit.asked if word.startswith("account_named")]
    assert len(asked) == len(set(map(str.lower, asked))), "each moderator is looked up once"
    assert not [word for word in any_room.reddit.asked if word.startswith("thing")], (
        "the ids of authors come from the tracking sets"
    )


def test_a_tracking_set_that_cannot_be_read_does_not_stop_the_sweep(any_room: Newsroom) -> None:
    expected = v1_database(any_room)
    any_room.raw("ZADD", "user:t2_bob", AT_MS, "of another program")
    any_room.raw("SET", "user:t2_cleo", "of another program")
    done = any_room.upgrade()
    assert audits(any_room) == expected
    assert done.upgraded == len(expected)
    assert "t2_ann" in any_room.everything()["cdpComplianceUserList"]


def test_a_sweep_without_v1_records_reads_no_tracking_set(room: Newsroom) -> None:
    """The service sweeps at every start, and must not load all tracked ids for nothing."""
    v1_database(room)
    room.upgrade()
    room.raw("ZADD", "user:t2_bob", AT_MS, "t3_1")
    room.raw("CONFIG", "RESETSTAT")
    assert room.upgrade().enrolled == 1
    assert "cmdstat_zrange" not in str(room.raw("INFO", "commandstats"))


def test_a_second_sweep_changes_nothing(room: Newsroom) -> None:
    v1_database(room)
    room.upgrade()
    before = room.everything()
    done = room.upgrade()
    assert (done.upgraded, done.enrolled) == (0, 0)
    assert room.everything() == before


def test_the_sweep_can_be_stopped_anywhere_and_resumed(room: Newsroom) -> None:
    expected = v1_database(room)

    class EnoughError(Exception):
        pass

    upgraded = 0
    for _ in range(20):

        def until_some(progress: UpgradeProgress) -> None:
            nonlocal upgraded
            if progress.upgraded >= 3:
                upgraded += progress.upgraded
                raise EnoughError

        try:
            upgraded += room.upgrade(progress=until_some, page=1).upgraded
        except EnoughError:
            continue
        break
    assert audits(room) == expected
    assert upgraded == len(expected), "nothing is upgraded twice"


def test_without_a_platform_the_sweep_leaves_records_whose_ids_are_unknown(room: Newsroom) -> None:
    expected = v1_database(room)
    done = room.wait(upgrade_all(room.db, None))
    assert done.upgraded == 1
    assert len(done.left) == len(expected) - 1
    assert room.upgrade().upgraded == len(expected) - 1
    assert audits(room) == expected


def test_events_and_deletions_work_on_a_v1_database(any_room: Newsroom) -> None:
    """Updates, actions, deletions and erasures before any sweep."""
    v1_database(any_room)
    for post in ("t3_a0", "t3_b0"):
        any_room.reddit.public[post] = any_room.reddit.public.get(post) or public()
    any_room.reddit.rewrite("t3_p1", "new words")
    any_room.handle(updated("t3_p1"))
    assert "new words" in any_room.reddit.public["t3_a0"].body
    assert any_room.everything()["audit:t3_a0"]["actor"] == "t2_mod"
    ann = any_room.reddit.accounts["t2_ann"]
    any_room.handle(mod_action("spamlink", "Mod", ann, "t3_p1"))
    assert len(any_room.everything()["mod-actions:t3_p1"]) == 6
    del any_room.reddit.things["t1_c2"]
    any_room.handle(deleted("t1_c2", "t2_ann"))
    assert "audit:t3_b0" not in any_room.everything()
    assert "mod-actions:t1_c2" not in any_room.everything()
    assert "t1_c2" not in any_room.everything()["user:t2_ann"]
    any_room.reddit.delete_account("t2_ann")
    any_room.enforce_all()
    assert not [n for n in any_room.everything() if n.startswith(("audit:", "mod-actions:", "user:"))]


def test_a_purge_of_v1_records_does_not_wait_for_their_upgrade(room: Newsroom) -> None:
    ann = room.reddit.join("Ann")
    store(room, "t3_a", "banuser", "Mod", ann.id, ann.id)
    room.reddit.public["t3_a"] = public()
    room.upgrade()
    store(room, "t3_b", "banuser", "Mod", ann.id, ann.id)
    room.reddit.public["t3_b"] = public()
    room.reddit.delete_account(ann.id)
    room.reddit.asked.clear()
    room.enforce_all()
    assert not [word for word in room.reddit.asked if word.startswith("account_named")]
    assert "Mod" in room.reddit.public["t3_b"].body
    assert not room.everything()


def public() -> PublicPost:
    return PublicPost("cats_log", "u/Mod removed a post from r/cats", "old words of Ann")


def test_many_records_are_swept_with_progress(room: Newsroom) -> None:
    count = 10_000
    room.reddit.join("Mod")
    fill(room, count)
    reports: list[UpgradeProgress] = []
    done = room.upgrade(progress=reports.append)
    assert (done.total, done.upgraded, done.left) == (count, count, ())
    assert len(reports) > count / 500
    sample = room.run(gather_list(ExtractHash(f"t3_{number}").get() for number in range(0, count, 997)))
    assert {(each.type, each.actor) for each in sample} == {(LinkAction.REMOVE_LINK, "t2_mod")}
    assert all(each.target == f"t2_{int(each.link[3:]) % 1000}" for each in sample)


def fill(room: Newsroom, count: int) -> None:
    """Store v1 records of a thousand users by one script: only the sweep is under test."""
    script = (
        "for i = tonumber(ARGV[1]), tonumber(ARGV[2]) do "
        "redis.call('ZADD', 'user:t2_' .. (i % 1000), 1, 't3_' .. i) "
        "redis.call('ZADD', 'mod-actions:t3_' .. i, 1, 't3_' .. i) "
        "redis.call('HSET', 'audit:t3_' .. i, 'type', 'removelink', 'actor', 'Mod', 'thingId', 't3_' .. i, "
        "'permalink', '/p', 'createdAt', '1704196800000') end"
    )
    for start in range(0, count, 10_000):
        room.raw("EVAL", script, 0, start, start + 9_999)
