"""`keywright recover` on a cluster: abandoned commits are listed, finished, undone; intents set aside go."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from invoking import invoke_keywright
from keywright import Database, connect
from keywright.testing.runs import Raw
from kinship import Mortal, assert_whole, home, survey

pytestmark = pytest.mark.cluster


def _until(db: Database, person: str, operation: str) -> Mortal:
    process = Mortal(db, home.assign(person, "one"))
    while not process.wires[0].operation.name.startswith(operation):
        process.step()
    return process


def test_abandoned_commits_are_listed_and_with_yes_finished_or_undone(
    cluster_url: str, raw_cluster: Raw
) -> None:
    with connect(cluster_url, clock=lambda: datetime.now(UTC) - timedelta(minutes=1)) as db:
        _until(db, "ann", "decide").step()
        _until(db, "bob", "decide")
    listed = invoke_keywright("recover", "kinship:town", "--url", cluster_url)
    assert listed.exit_code == 1
    assert listed.stdout.splitlines() == [
        "kinship:town: 1 to finish, 1 to undo unless they are still at work",
        "Nothing was changed. Add --yes to do it.",
    ]
    assert raw_cluster("EXISTS", "person:ann:home") == 0
    done = invoke_keywright("recover", "kinship:town", "--url", cluster_url, "--yes")
    assert (done.exit_code, done.stdout) == (
        0,
        "kinship:town: 1 finished, 1 undone, 0 too young to judge\n",
    )
    assert_whole(survey(raw_cluster))
    assert raw_cluster("GET", "person:ann:home") == b"one"


def test_an_intent_that_is_set_aside_is_listed_and_removed_by_name(
    cluster_url: str, raw_cluster: Raw
) -> None:
    planted = "b" * 40
    raw_cluster("HSET", "keywright:intents:town::b", planted, "Cgarbage")
    raw_cluster("HSET", "keywright:held:town::{person:ann:home}", "x", f"{planted}@intents:town::b")
    for options in ((), ("--yes",)):
        done = invoke_keywright("recover", "kinship:town", "--url", cluster_url, *options)
        assert done.exit_code == 1
        assert f"--remove {planted} --yes" in done.stdout
    gone = invoke_keywright("recover", "kinship:town", "--url", cluster_url, "--remove", planted, "--yes")
    assert (gone.exit_code, gone.stdout.splitlines()[0]) == (0, f"removed {planted}")
    with connect(cluster_url) as db:
        assert db.run(home.assign("ann", "one")) is True
    assert_whole(survey(raw_cluster))
    again = invoke_keywright("recover", "kinship:town", "--url", cluster_url, "--remove", planted, "--yes")
    assert again.exit_code == 2
    assert "has no intent" in again.stderr


def test_on_one_server_there_is_nothing_to_recover(redis_url: str) -> None:
    assert invoke_keywright("recover", "kinship:town", "--url", redis_url).exit_code == 0
