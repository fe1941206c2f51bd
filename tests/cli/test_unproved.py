"""Tools refuse a model that `check` refuses: reading needs --unproved, and nothing unproved is written."""

from __future__ import annotations

from pathlib import Path

import pytest

from invoking import Invoke
from keywright.testing.runs import Raw

OVERLAP = "is a Event and a EventSeries"
UNION = "is a Queue of queues and a QueueResult of results"


def reading(url: str, folder: Path) -> list[tuple[str, ...]]:
    """The commands that only read, without the model that follows their name."""
    return [
        ("audit", "--url", url),
        ("stats", "--url", url),
        ("acl", "--role", "reader"),
        ("docs",),
        ("docs", "--check", str(folder / "none.md")),
    ]


def test_reading_commands_refuse_an_unproved_model_with_the_counterexample(
    invoke: Invoke, redis_url: str, tmp_path: Path
) -> None:
    commands = [*reading(redis_url, tmp_path), ("get", "event:a", "--url", redis_url), ("explore",)]
    for command, *options in commands:
        done = invoke(command, "cli_spaces:overlapping", *options)
        assert (done.exit_code, done.stdout) == (2, ""), command
        assert (
            "error: cli_spaces:overlapping is not proved. Finding 1 of 1: overlapping-templates"
            in done.stderr
        )
        assert OVERLAP in done.stderr
        assert "`keywright check cli_spaces:overlapping` lists every finding" in done.stderr
        assert "Add --unproved to read all the same." in done.stderr


def test_reading_commands_read_an_unproved_model_on_request_and_warn(
    invoke: Invoke, redis_url: str, raw: Raw, tmp_path: Path
) -> None:
    raw("SET", "event:a", "x")
    for command, *options in reading(redis_url, tmp_path):
        done = invoke(command, "cli_spaces:overlapping", *options, "--unproved")
        assert done.exit_code in (0, 1), command
        assert "warning: cli_spaces:overlapping is not proved" in done.stderr
        assert OVERLAP in done.stderr
    done = invoke("get", "cli_spaces:overlapping", "event:a", "--url", redis_url, "--unproved")
    assert (done.exit_code, '"x"' in done.stdout) == (0, True)


@pytest.mark.parametrize(
    "command",
    [("repair",), ("repair", "--yes", "--remove", "wrong-type"), ("migrate",), ("migrate", "--yes")],
    ids=" ".join,
)
def test_an_unproved_model_is_never_repaired_nor_migrated(
    invoke: Invoke, redis_url: str, raw: Raw, command: tuple[str, ...]
) -> None:
    raw("RPUSH", "event:a:series", "x")
    before = raw("DUMP", "event:a:series")
    done = invoke(*command, "cli_spaces:overlapping", "--url", redis_url)
    assert (done.exit_code, done.stdout) == (2, "")
    assert OVERLAP in done.stderr
    assert "Nothing was changed." in done.stderr
    refused = invoke(*command, "cli_spaces:overlapping", "--url", redis_url, "--unproved")
    assert refused.exit_code == 2
    assert "--unproved" in refused.stderr
    assert raw("DUMP", "event:a:series") == before


def test_an_explorer_that_repairs_needs_a_proved_model(invoke: Invoke) -> None:
    done = invoke("explore", "cli_spaces:overlapping", "--write", "--unproved")
    assert done.exit_code == 2
    assert "--write edits and repairs, which needs a proved model" in done.stderr


@pytest.mark.parametrize("names", ["cli_spaces:queues,results", "cli_spaces:results,queues"])
def test_keyspaces_of_one_database_are_proved_together_in_any_order(
    invoke: Invoke, redis_url: str, raw: Raw, names: str
) -> None:
    raw("SET", "queue:a:result", "x")
    checked = invoke("check", names)
    assert checked.exit_code == 1
    assert "queues overlaps with 'queue:<queue>:result' of results" in checked.stdout
    assert UNION in checked.stdout
    for command in ("audit", "recover", "repair", "stats", "migrate"):
        done = invoke(command, names, "--url", redis_url)
        assert (done.exit_code, done.stdout) == (2, "")
        assert UNION in done.stderr


def test_each_of_the_keyspaces_is_proved_alone(invoke: Invoke) -> None:
    for name in ("queues", "results", "apart"):
        assert invoke("check", f"cli_spaces:{name}").exit_code == 0


def test_a_prefix_of_its_own_keeps_a_keyspace_apart(invoke: Invoke, redis_url: str, raw: Raw) -> None:
    raw("RPUSH", "queue:a:result", "x")
    raw("SET", "{apart}:queue:a:result", "x")
    for names in ("cli_spaces:queues,apart", "cli_spaces:apart,queues"):
        checked = invoke("check", names)
        assert checked.exit_code == 0
        assert "proved  keyspaces share no name" in checked.stdout
        done = invoke("audit", names, "--url", redis_url)
        assert done.exit_code == 0, done.output


def test_the_prefix_that_keyspaces_are_bound_to_counts(invoke: Invoke, redis_url: str) -> None:
    assert invoke("check", "cli_spaces:queues,apart", "--prefix", "one").exit_code == 1
    done = invoke("audit", "cli_spaces:queues,apart", "--prefix", "one", "--url", redis_url)
    assert done.exit_code == 2
    assert "'one:queue:" in done.stderr


@pytest.mark.parametrize("names", ["cli_spaces:results,former_results", "cli_spaces:former_results,results"])
def test_a_replaced_keyspace_shares_names_with_its_successor_which_owns_them(
    invoke: Invoke, redis_url: str, raw: Raw, names: str
) -> None:
    raw("SET", "queue:a:result", "x")
    assert invoke("check", names).exit_code == 0
    done = invoke("audit", names, "--url", redis_url)
    assert done.exit_code == 0, done.output
