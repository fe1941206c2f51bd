"""Judges Open Mod: each moderator's action has one public post, and Redis agrees with Reddit."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

from soak.judge.findings import Findings
from soak.judge.raw import Keys, client

__all__ = ["PREFIX", "judge_openmod", "pending_events"]

PREFIX = "soak-openmod"
_REDACTED = "The author deleted this submission"
"""An extract whose subject was deleted before it was recorded stays public, empty and unrecorded."""


def pending_events(port: int) -> int:
    """Return the number of events that the service has not handled."""
    with client(port) as server:
        return int(server.zcard(f"{PREFIX}:pending-events"))


def judge_openmod(world: Path, keys: Keys) -> Findings:
    """Judge by the world of the simulated Reddit, and all keys of Redis."""
    findings = Findings()
    reddit = json.loads(world.read_text())
    stored = {name.removeprefix(f"{PREFIX}:"): value for name, value in keys.items()}
    submissions: dict[str, dict[str, Any]] = reddit["submissions"]
    posts = {name: each for name, each in submissions.items() if each["subreddit"] == reddit["target"]}
    _judge_posts(reddit["log"], submissions, posts, stored, findings)
    _judge_copies(submissions, posts, stored, findings)
    _judge_extracts(posts, stored, findings)
    if left := len(stored.get("pending-events", ())):
        findings.violate(f"{left} events are still pending")
    return findings


def _judge_posts(
    log: list[dict[str, str]],
    submissions: dict[str, dict[str, Any]],
    posts: dict[str, dict[str, Any]],
    stored: Keys,
    findings: Findings,
) -> None:
    """One post and one record for each action; none is required if the target was deleted meanwhile."""
    references = Counter(
        word for post in posts.values() for word in post["body"].split() if word.startswith("`openmod-")
    )
    for reference, times in references.items():
        if times > 1:
            findings.double(f"{reference} was published {times} times")
    wanted = Counter(
        (entry["action"], entry["actor"], entry["target"])
        for entry in log
        if not entry["action"].startswith("approve")  # by default approvals are not recorded
    )
    recorded = Counter(
        (value[b"type"].decode(), value[b"actor"].decode(), _thing(value))
        for name, value in stored.items()
        if name.startswith("audit:")
    )
    findings.acknowledged += wanted.total()
    for action in recorded - wanted:
        findings.double(f"{action} was recorded {recorded[action]} times, but done {wanted[action]} times")
    for action in wanted - recorded:
        if not submissions[action[2]]["deleted"]:
            findings.lose(f"{action} was done {wanted[action]} times, but recorded {recorded[action]} times")


def _thing(record: dict[bytes, bytes]) -> str:
    return (record.get(b"link") or record.get(b"comment") or record[b"target"]).decode()


def _judge_copies(
    submissions: dict[str, dict[str, Any]], posts: dict[str, Any], stored: Keys, findings: Findings
) -> None:
    """Each submission that exists has its copy, and is among those of its author."""
    for name, each in submissions.items():
        if name in posts or each["deleted"]:
            continue
        findings.acknowledged += 1
        tracked = {member for member, _ in stored.get(f"user:{each['author']}", ())}
        if f"cache:{name}" not in stored or name.encode() not in tracked:
            findings.lose(f"{name} of {each['author']}")


def _judge_extracts(posts: dict[str, Any], stored: Keys, findings: Findings) -> None:
    """A published post, its record and the set of its subject belong together."""
    for name, value in stored.items():
        if name.startswith("audit:"):
            post = name.removeprefix("audit:")
            thing = _thing(value)
            members = {member for member, _ in stored.get(f"mod-actions:{thing}", ())}
            if post not in posts:
                findings.violate(f"{name} has no post on Reddit")
            if post.encode() not in members:
                findings.violate(f"{name} is not among the actions on {thing}")
        if name.startswith("mod-actions:"):
            for member, _ in value:
                if f"audit:{member.decode()}" not in stored:
                    findings.violate(f"{name} has {member.decode()}, which has no record")
    for post, published in posts.items():
        if f"audit:{post}" not in stored and _REDACTED not in published["body"]:
            findings.violate(f"{post} is public, but has no record")
