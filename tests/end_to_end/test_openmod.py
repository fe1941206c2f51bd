"""Open Mod from the wheels: a simulated Reddit, Redis, two copies of the service, and everything killed once.

Judged by raw reads: the file of the simulator, and redis-py.
"""

from __future__ import annotations

import json
import shutil
import time
import urllib.request
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
import redis
from starlette.responses import PlainTextResponse
from starlette.types import Receive, Scope, Send

from end_to_end.installation import Installation, answer, wait_ready
from keywright.testing import RedisServer, free_port, wait_until
from keywright_service.testing.http_server import HttpServer
from service_processes import ServiceProcess

PREFIX = "openmod"
# The keys of the guide, up to their first variable.
DOCUMENTED = {
    *("user", "mod-actions", "audit", "cache", "cdpComplianceUserList", "event"),
    *("log", "log-entry", "log-account", "log-name"),
    *("feed", "pending-events", "thing-checks"),
}
ACTIONS = [
    *("removelink", "spamlink", "approvelink", "removecomment", "spamcomment", "approvecomment"),
    *("banuser", "unbanuser", "muteuser", "unmuteuser"),
]
SETTINGS = f"""\
subreddit = "mysub"

[settings]
targetSubredit = "mysub_log"
moderationActions = {json.dumps(ACTIONS)}

[reddit]
client_id = "simulated-app"
client_secret = "simulated-secret"
username = "openmod-app"
password = "simulated-password"
url = "{{reddit}}"
oauth_url = "{{reddit}}"
timeout = "4s"

[redis]
url = "{{redis}}"
prefix = "{PREFIX}"

[schedule]
poll = "500ms"
enforce = "500ms"
retry = "100ms"
hold = "5s"
backfill = "1h"

[log]
format = "json"
"""
A_WHILE = 180.0
ACTIONS_A_SECOND = 6
FORCED_SECONDS = 4.0

Record = tuple[str, str, str]
"""Action, moderator, target."""


@dataclass
class Reddit:
    """`keywright openmod simulate` on one port; its world is a file, which outlives it."""

    installed: Installation
    file: Path
    running: ExitStack
    port: int = field(default_factory=free_port)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def start(self, *, rate: int) -> None:
        arguments = ("--port", str(self.port), "--rate", str(rate), "--world", str(self.file))
        log = self.file.with_suffix(".log")
        service = self.installed.service("openmod", "simulate", *arguments, log=log)
        self.process: ServiceProcess = self.running.enter_context(service)
        wait_until(lambda: answer(f"{self.url}/api/v1/me")[0] == 401, "the simulator answers", seconds=60)

    def kill(self) -> None:
        self.process.end()

    def world(self) -> dict[str, Any]:
        found: dict[str, Any] = json.loads(self.file.read_text())
        return found

    def change(self, change: Callable[[dict[str, Any]], None]) -> None:
        """Change the world as people on Reddit would; the simulator is killed, and starts without traffic."""
        self.kill()
        world = self.world()
        change(world)
        self.file.write_text(json.dumps(world))
        self.start(rate=0)


@dataclass
class Copies:
    """Two copies of the service, with one file."""

    installed: Installation
    config: Path
    running: ExitStack
    health: list[int] = field(default_factory=lambda: [free_port(), free_port()])
    pages: list[int] = field(default_factory=lambda: [free_port(), free_port()])
    processes: dict[int, ServiceProcess] = field(default_factory=dict)

    def start(self, number: int) -> None:
        arguments = ("--config", str(self.config), "--log-address", f":{self.pages[number]}")
        more = ("--set", f"health.address=:{self.health[number]}")
        log = self.config.with_suffix(f".{number}.log")
        service = self.installed.service("openmod", "serve", *arguments, *more, log=log)
        self.processes[number] = self.running.enter_context(service)

    def logs(self) -> str:
        return "".join(self.config.with_suffix(f".{number}.log").read_text() for number in (0, 1))

    def wait_ready(self) -> None:
        for port in self.health:
            wait_ready(f"http://127.0.0.1:{port}/ready")

    def wait_health(self, status: int) -> None:
        for port in self.health:
            wait_until(
                lambda: answer(f"http://127.0.0.1:{port}/health")[0] == status,  # noqa: B023
                f"/health of both copies is {status}",
                seconds=A_WHILE,
            )

    def public_log(self, number: int) -> list[dict[str, Any]]:
        """Return every entry of the public log of one copy."""
        entries: list[dict[str, Any]] = []
        path = "/api/actions?limit=100"
        while path:
            url = f"http://127.0.0.1:{self.pages[number]}{path}"
            wait_ready(url)
            page = answer(url)[1]
            entries += page["actions"]
            path = page["next"]
        return entries

    def page(self, path: str) -> str:
        with urllib.request.urlopen(f"http://127.0.0.1:{self.pages[0]}{path}", timeout=5) as response:
            text: str = response.read().decode()
        return text

    def wait_log(self, number: int) -> None:
        """Wait for this many more entries."""
        before = len(self.public_log(1))
        wait_until(
            lambda: len(self.public_log(1)) >= before + number, f"{number} entries more", seconds=A_WHILE
        )


@dataclass
class Judge:
    """Compares the world of Reddit with Redis."""

    reddit: Reddit
    server: RedisServer
    forced: float = 0.0

    def expected(self) -> Counter[Record]:
        """Return the actions on what exists. Reddit's times are whole seconds: equal entries are one."""
        world = self.reddit.world()
        gone = {each["id"] for each in world["users"] if each["deleted"]}
        gone |= {each["id"] for each in world["submissions"] if each["deleted"] or each["author"] in gone}
        entries = {
            (each["action"], each["moderator"], each["target"], int(each["created"]))
            for each in world["log"]
            if each["target"] not in gone
        }
        return Counter(entry[:3] for entry in entries)

    def stored(self) -> dict[str, Any]:
        """Return every key without its prefix, and its value."""
        with redis.Redis.from_url(self.server.tcp_url, decode_responses=True) as client:
            return dict(self._read(client))

    def _read(self, client: redis.Redis) -> Iterator[tuple[str, Any]]:
        for name in client.scan_iter(count=1000):
            kind = client.type(name)
            readers: dict[Any, Callable[[str], Any]] = {
                "hash": client.hgetall,
                "zset": lambda key: client.zrange(key, 0, -1),
                "string": client.get,
            }
            if kind in readers:  # it may have expired meanwhile
                yield name.removeprefix(f"{PREFIX}:"), readers[kind](name)

    def make_checks_due(self) -> None:
        """Let a day pass."""
        if time.monotonic() - self.forced < FORCED_SECONDS:
            return
        self.forced = time.monotonic()
        with redis.Redis.from_url(self.server.tcp_url) as client:
            for key in ("cdpComplianceUserList", "thing-checks"):
                members = client.zrange(f"{PREFIX}:{key}", 0, -1)
                if members:
                    client.zadd(f"{PREFIX}:{key}", dict.fromkeys(members, 0), xx=True)

    def wait(self, what: str) -> dict[str, Any]:
        """Wait until every action is recorded once, and nothing deleted is. Return what is stored."""
        found: dict[str, Any] = {}

        def settled() -> bool:
            self.make_checks_due()
            found.clear()
            found.update(self.stored())
            complete = records(found) == self.expected() and not found.get("pending-events")
            return complete and not remains(found, self.reddit.world())

        try:
            wait_until(settled, what, seconds=A_WHILE)
        except AssertionError:
            expected, recorded = self.expected(), records(found)
            left = remains(found, self.reddit.world())
            pytest.fail(f"{what}: missing {expected - recorded}, too many {recorded - expected}, left {left}")
        return found

    def check(self, stored: dict[str, Any], entries: list[dict[str, Any]]) -> None:
        """Assert that posts, sets, records, the index and the public log belong together."""
        world = self.reddit.world()
        posts = {each["id"]: each for each in world["submissions"] if each["subreddit"] == "mysub_log"}
        references = Counter(
            word for each in posts.values() for word in each["body"].split() if word.startswith("`openmod-")
        )
        assert set(references.values()) == {1}, "no action was published twice"
        audits = {name[6:]: value for name, value in stored.items() if name.startswith("audit:")}
        assert set(audits) <= set(posts)
        assert all("Reference: `openmod-" in posts[post]["body"] for post in audits)
        listed = {post for name, value in stored.items() if name.startswith("mod-actions:") for post in value}
        assert listed == set(audits)
        logged = {name[10:] for name in stored if name.startswith("log-entry:")}
        assert set(stored["log"]) == logged == set(audits)
        shown = {each["id"]: (each["action"], each["thing"]) for each in entries}
        assert shown == {post: (value["type"], thing_of(value)) for post, value in audits.items()}
        assert len(entries) == len(shown)
        assert [each["at"] for each in entries] == sorted((each["at"] for each in entries), reverse=True)
        assert {name.partition(":")[0] for name in stored} <= DOCUMENTED


def thing_of(audit: dict[str, str]) -> str:
    return audit.get("link") or audit.get("comment") or audit["target"]


def records(stored: dict[str, Any]) -> Counter[Record]:
    """Return the actions that Redis has."""
    return Counter(
        (value["type"], value["actor"], thing_of(value))
        for name, value in stored.items()
        if name.startswith("audit:")
    )


def remains(stored: dict[str, Any], world: dict[str, Any]) -> list[str]:
    """Return the keys that have deleted accounts or submissions.

    Markers stay for 14 days, and a feed is at its newest entry. The permalink of a comment has its post.
    """
    accounts = [each for each in world["users"] if each["deleted"]]
    traces = [trace for each in accounts for trace in (each["id"], each["name"])]
    things = {each["id"] for each in world["submissions"] if each["deleted"]}
    found = []
    for name, value in stored.items():
        if name.startswith(("event:", "feed:")):
            continue
        if isinstance(value, dict):
            held = {text for member, text in value.items() if member != "parent"}
        else:
            held = set(value if isinstance(value, list) else [value])
        if things & {name.partition(":")[2], *held} or any(trace in str((name, value)) for trace in traces):
            found.append(name)
    return found


class Unavailable:
    """A Reddit that answers every request with 503."""

    asked = 0

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        self.asked += 1
        await PlainTextResponse("overloaded", 503)(scope, receive, send)


def test_every_action_has_one_extract_after_every_part_was_killed(
    installed: Installation, tmp_path: Path
) -> None:
    with RedisServer(tcp=True) as server, ExitStack() as running:
        reddit = Reddit(installed, tmp_path / "world.json", running)
        reddit.start(rate=ACTIONS_A_SECOND)
        config = tmp_path / "openmod.toml"
        config.write_text(SETTINGS.format(reddit=reddit.url, redis=server.tcp_url))
        copies = Copies(installed, config, running)
        judge = Judge(reddit, server)
        for number in (0, 1):
            copies.start(number)
        copies.wait_ready()
        copies.wait_log(2)

        copies.processes[0].end()
        copies.start(0)
        copies.wait_log(2)
        copies.wait_ready()

        server.kill()
        copies.wait_health(503)
        server.start()
        copies.wait_health(200)

        reddit.kill()
        copies.wait_health(503)
        overloaded = Unavailable()
        with HttpServer(overloaded, port=reddit.port):
            wait_until(lambda: overloaded.asked > 0, "a copy is answered with 503", seconds=A_WHILE)
        reddit.start(rate=ACTIONS_A_SECOND)
        copies.wait_health(200)
        copies.wait_log(2)

        banned = next(each for each in reddit.world()["users"] if each["name"] == "person_1")
        reddit.change(lambda world: ban(world, banned["id"]))
        stored = judge.wait("every action is recorded once")
        judge.check(stored, copies.public_log(0))
        assert [each["user"]["name"] for each in copies.public_log(1) if each["action"] == "banuser"] == [
            banned["name"]
        ]
        assert "User banned" in copies.page("/?action=banuser&user=person_1")
        assert "color-scheme" in copies.page("/static/log.css")

        assert "restored" not in copies.logs()
        server.kill()
        shutil.rmtree(server.socket.parent / "appendonlydir")
        server.start()
        stored = judge.wait("an empty Redis is filled again")
        judge.check(stored, copies.public_log(1))
        assert "log: Redis was emptied or restored" in copies.logs()

        deleted = next(
            value["link"] for name, value in stored.items() if "link" in value and "audit:" in name
        )
        reddit.change(lambda world: delete(world, account=banned["id"], submission=deleted))
        stored = judge.wait("a deleted account and a deleted submission are erased")
        entries = copies.public_log(0)
        judge.check(stored, entries)
        assert deleted not in [each["thing"] for each in entries]
        for trace in (banned["id"], banned["name"]):
            assert trace not in json.dumps(entries)
        posts = [each for each in reddit.world()["submissions"] if each["subreddit"] == "mysub_log"]
        assert not [each for each in posts if banned["name"] in each["body"]]

        copies.wait_health(200)
        assert [process.stop() for process in copies.processes.values()] == [0, 0]
        claims = [name for name, value in judge.stored().items() if str(value).startswith("claim:")]
        assert claims == []


def ban(world: dict[str, Any], user: str) -> None:
    entry = {
        "id": "ModAction_ban",
        "action": "banuser",
        "moderator": world["users"][0]["id"],
        "subreddit": "mysub",
        "target": user,
        "created": time.time(),
    }
    world["log"].append(entry)


def delete(world: dict[str, Any], *, account: str, submission: str) -> None:
    for each in world["users"]:
        each["deleted"] = each["deleted"] or each["id"] == account
    for each in world["submissions"]:
        each["deleted"] = each["deleted"] or each["id"] == submission
