"""The envelope of events: which are accepted, which count, and the errors for the rest."""

from __future__ import annotations

import json
from typing import Any

import pytest

from keywright import check, connect
from keywright.testing import Raw, Run
from keywright_registry.counters import pending
from keywright_registry.repository import Counts
from keywright_registry.schema import CountedEvent, notifications
from keywright_registry.service.notifications import (
    LONGEST_ID,
    MANIFEST_TYPES,
    EventOutcome,
    EventResult,
    MalformedError,
    count_all,
    parse,
)

from ..registry_service import LAYER, MANIFEST, envelope, event


def test_an_envelope_of_the_registry_is_read() -> None:
    sent = event("push", "acme/web", method="PUT")
    (found,) = parse(envelope(sent))
    assert (found.id, found.action) == (sent["id"], "push")
    assert found.target.repository == "acme/web"
    assert (found.target.media_type, found.request.method) == (MANIFEST, "PUT")


def test_unused_fields_may_hold_anything() -> None:
    """A refused envelope is sent again forever, and blocks all that follow it."""
    sent = event("push")
    sent["target"] |= {"size": None, "digest": 7, "tag": ["a"], "url": None}
    sent["request"] |= {"id": 1, "addr": None, "useragent": {}}
    (found,) = parse(envelope(sent))
    assert found.counts


def test_unknown_fields_and_missing_optional_ones_are_tolerated() -> None:
    lean = {
        "id": "1",
        "timestamp": "2026-01-02T03:04:05+02:00",
        "action": "pull",
        "target": {"repository": "a", "references": [{}]},
    }
    (found,) = parse(json.dumps({"events": [{**lean, "extra": {"deep": [1]}}], "more": None}).encode())
    assert found.request.method == ""
    assert parse(b'{"events":[]}') == []


@pytest.mark.parametrize("media_type", sorted(MANIFEST_TYPES))
def test_pulls_and_pushes_of_every_kind_of_manifest_count(media_type: str) -> None:
    pull, push = parse(envelope(event("pull", media_type=media_type), event("push", media_type=media_type)))
    assert pull.counts
    assert push.counts


@pytest.mark.parametrize(
    "other",
    [
        event("pull", media_type=LAYER),
        event("push", media_type=LAYER),
        event("pull", media_type="application/vnd.oci.image.config.v1+json"),
        event("pull", media_type=""),
        event("pull", method="HEAD"),
        event("mount"),
        event("delete"),
        event("invented"),
    ],
    ids=["blob pull", "blob push", "config", "no type", "HEAD", "mount", "delete", "unknown action"],
)
def test_blobs_heads_mounts_and_deletes_do_not_count(other: dict[str, Any]) -> None:
    (found,) = parse(envelope(other))
    assert not found.counts


def without(name: str) -> dict[str, Any]:
    return {key: value for key, value in event().items() if key != name}


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        (b"", "not an envelope"),
        (b"{", "not an envelope"),
        (b"[]", "Expected `object`"),
        (b"{}", "missing required field `events`"),
        (b'{"events":{}}', r"\$\.events"),
        (b'{"events":[1]}', r"\$\.events\[0\]"),
        (b"\xff\xfe", "not an envelope"),
        (b'{"events":' * 5000, "not an envelope"),
        (envelope(without("id")), "`id`"),
        (envelope(without("target")), "`target`"),
        (envelope(without("action")), "`action`"),
        (envelope(event(id="")), "length >= 1"),
        (envelope(event(id="x" * (LONGEST_ID + 1))), "length <="),
        (envelope(event(id=7)), r"\$\.events\[\.\.\.\]\.id|\$\.events\[0\]\.id"),
        (envelope(event(timestamp="yesterday")), "timestamp"),
        (envelope(event(path="Not/A/Name")), "has 'N' in it"),
        (envelope(event(path="")), "is empty"),
        (envelope(event(), event(path="../etc")), "wrong place"),
    ],
)
def test_a_malformed_envelope_is_refused_with_the_reason(body: bytes, reason: str) -> None:
    with pytest.raises(MalformedError, match=reason):
        parse(body)


def test_an_event_is_counted_once(run: Run) -> None:
    events = parse(envelope(event("pull"), event("push"), event("pull", media_type=LAYER)))
    assert run(count_all(events)) == [
        EventResult("pull", EventOutcome.COUNTED),
        EventResult("push", EventOutcome.COUNTED),
        EventResult("pull", EventOutcome.IGNORED),
    ]
    again = run(count_all([*events, *parse(envelope(event("pull")))]))
    assert [result.outcome for result in again] == [
        EventOutcome.REPEATED,
        EventOutcome.REPEATED,
        EventOutcome.COUNTED,
        EventOutcome.IGNORED,
    ]
    assert run(pending("acme/web")) == Counts("acme/web", 2, 1)


def test_an_event_twice_in_one_envelope_is_counted_once(run: Run) -> None:
    twice = event("push")
    run(count_all(parse(envelope(twice, twice))))
    assert run(pending("acme/web")) == Counts("acme/web", 0, 1)


def test_any_text_can_be_an_events_id(run: Run) -> None:
    odd = [event("pull", id=text) for text in ("a:b", "{x}", "é \n", "*", "x" * LONGEST_ID)]
    run(count_all(parse(envelope(*odd, *odd))))
    assert run(pending("acme/web")).pulls == len(odd)


def test_a_counted_event_is_forgotten_after_a_while(run: Run, raw: Raw) -> None:
    run(count_all(parse(envelope(event("pull", id="e1")))))
    (name,) = [each for each in raw.names() if each.endswith(b":event:e1")]
    assert name.startswith(b"registry:api:{repository:acme:")
    assert 0 < raw("PTTL", name) <= 6 * 3600 * 1000


def test_counting_is_one_slot_each_on_a_cluster(cluster_run: Run) -> None:
    events = parse(envelope(*(event("pull", f"n{number}/web") for number in range(20))))
    cluster_run(count_all(events))
    cluster_run(count_all(events))
    assert {cluster_run(pending(f"n{number}/web")).pulls for number in range(20)} == {1}


def test_an_unknown_action_does_not_become_a_label() -> None:
    (found,) = parse(envelope(event("x" * 1000)))
    with connect() as db:
        assert db.run(count_all([found])) == [EventResult("other", EventOutcome.IGNORED)]


def test_the_keyspace_is_sound() -> None:
    assert [finding for finding in check(notifications) if finding.severity == "error"] == []
    assert CountedEvent.__doc__
