"""Edits of every kind: commands first, then one commit that checks the data, then an undo."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import quote

import httpx
import pytest

import garden
from browsing import Chromium, assert_fits
from exploring import Explored, exploring, exploring_sample, key_path, serious_findings
from keywright import Secret
from keywright.explorer.edit_forms import FormTexts
from keywright.explorer.inputs import Input
from keywright.keyspace.codecs import codec_of
from keywright.testing.runs import Raw

JSON = {"Accept": "application/json"}


class Editor:
    """A browser session without a browser, which edits through JSON documents."""

    def __init__(self, explored: Explored, client: httpx.Client) -> None:
        self.explored = explored
        self.client = client

    def get(self, path: str) -> Any:
        return self.client.get(self.explored.base + path, headers=JSON).json()

    def post(self, path: str, **fields: str) -> httpx.Response:
        return self.client.post(self.explored.base + path, data=fields, headers=JSON)

    def plan(self, path: str, **fields: str) -> httpx.Response:
        """Send a form as it is shown, with some texts changed."""
        form = self.get(path)
        shown = {each["name"]: each["text"] for each in form["inputs"] if not each["fixed"]}
        named = {name.replace("__", "."): text for name, text in fields.items()}
        return self.post(path, mark=form["mark"], seen=form["seen"], **{**shown, **named})

    def apply(self, plan: Any) -> httpx.Response:
        return self.post(f"/edit/{plan['number']}/apply", mark=self.mark, plan=plan["plan"])

    def undo(self, plan: Any) -> httpx.Response:
        return self.post(f"/edit/{plan['number']}/undo", mark=self.mark)

    def done(self, path: str, **fields: str) -> Any:
        """Edit, and return the result."""
        planned = self.plan(path, **fields)
        assert planned.status_code == 200, planned.text
        applied = self.apply(planned.json())
        assert applied.status_code == 200, applied.text
        assert applied.json()["state"] == "applied", applied.text
        return applied.json()

    @property
    def mark(self) -> str:
        page = self.client.get(f"{self.explored.base}/audit").text
        return str(re.findall(r'name="mark" value="([0-9a-f]+)"', page)[0])


def form_path(name: str | bytes, action: str, entry: str | None = None) -> str:
    more = "" if entry is None else f"&entry={quote(entry)}"
    return f"/key/edit?name={quote(name)}&action={action}{more}"


@contextmanager
def editing(url: str, tmp_path: Path, spaces: Any = None, **options: Any) -> Iterator[Editor]:
    given = {"write": True, "undo": tmp_path / "undo.jsonl", **options}
    bindings = garden.SAMPLE.bindings if spaces is None else ()
    with (
        exploring(url, spaces or [garden.garden], bindings, **given) as explored,
        httpx.Client(timeout=20) as client,
    ):
        yield Editor(explored, client)


def state_of(raw: Raw) -> dict[bytes, Any]:
    """Everything that is stored, with times to live in minutes."""
    reads = {
        b"string": ("GET",),
        b"hash": ("HGETALL",),
        b"set": ("SMEMBERS",),
        b"zset": ("ZRANGE", 0, -1, "WITHSCORES"),
        b"list": ("LRANGE", 0, -1),
        b"stream": ("XRANGE", "-", "+"),
    }
    found = {}
    for name in sorted(raw("KEYS", "*")):
        verb, *rest = reads[raw("TYPE", name)]
        value = raw(verb, name, *rest)
        found[name] = (sorted(value) if verb == "SMEMBERS" else value, raw("PTTL", name) // 60_000)
    return found


EDITS: list[tuple[list[tuple[Any, ...]], str, dict[str, str], list[str]]] = [
    (
        [("SET", "g:v1:plant:p", "rose")],
        form_path("g:v1:plant:p", "set"),
        {"value": "tulip"},
        ["SET g:v1:plant:p tulip KEEPTTL"],
    ),
    ([], form_path("g:v1:plant:new", "set"), {"value": "<b>a b</b>"}, ['SET g:v1:plant:new "<b>a b</b>"']),
    (
        [("SET", "g:v1:lasting:value:b", "p", "PX", 90_000)],
        form_path("g:v1:lasting:value:b", "set"),
        {"value": "q"},
        ["SET g:v1:lasting:value:b q PX 86400000"],
    ),
    (
        [("SET", "g:v1:counter:p", "5")],
        form_path("g:v1:counter:p", "set"),
        {"value": "-7"},
        ["SET g:v1:counter:p -7"],
    ),
    (
        [("HSET", "g:v1:record:b", "width", "3", "extra", "kept")],
        form_path("g:v1:record:b", "change"),
        {"member__width": "", "member__length": "4"},
        ["HSET g:v1:record:b length 4", "HDEL g:v1:record:b width"],
    ),
    (
        [("HSET", "g:v1:lasting:record:b", "width", "3"), ("PEXPIRE", "g:v1:lasting:record:b", 630_000)],
        form_path("g:v1:lasting:record:b", "change"),
        {"member__width": "4"},
        ["HSET g:v1:lasting:record:b width 4", "PEXPIRE g:v1:lasting:record:b 86400000"],
    ),
    (
        [],
        form_path("g:v1:strict:b", "change"),
        {"member__width": "1", "member__length": "2", "member__depth": "3"},
        ["HSET g:v1:strict:b width 1 length 2 depth 3"],
    ),
    (
        [("HSET", "g:v1:union:b", "event", "sown", "seeds", "3")],
        form_path("g:v1:union:b", "change"),
        {"member__seeds": "4"},
        ["HSET g:v1:union:b seeds 4"],
    ),
    (
        [("HSET", "g:v1:map:b", "r1", "p")],
        form_path("g:v1:map:b", "put", "r1"),
        {"value": "q"},
        ["HSET g:v1:map:b r1 q"],
    ),
    (
        [("HSET", "g:v1:map:b", "r1", "p")],
        form_path("g:v1:map:b", "add"),
        {"field": "r2", "value": "q"},
        ["HSET g:v1:map:b r2 q"],
    ),
    (
        [("HSET", "g:v1:map:b", "r1", "p")],
        form_path("g:v1:map:b", "remove", "r1"),
        {},
        ["HDEL g:v1:map:b r1"],
    ),
    ([("SADD", "g:v1:set:b", "p")], form_path("g:v1:set:b", "add"), {"member": "q"}, ["SADD g:v1:set:b q"]),
    (
        [("SADD", "g:v1:lasting:set:b", "p"), ("PEXPIRE", "g:v1:lasting:set:b", 630_000)],
        form_path("g:v1:lasting:set:b", "remove", "p"),
        {},
        ["SREM g:v1:lasting:set:b p", "PEXPIRE g:v1:lasting:set:b 86400000"],
    ),
    (
        [("ZADD", "g:v1:sorted:b", 5, "p")],
        form_path("g:v1:sorted:b", "put", "p"),
        {"score": "7"},
        ["ZADD g:v1:sorted:b CH 7 p"],
    ),
    (
        [("ZADD", "g:v1:sorted:b", 5, "p")],
        form_path("g:v1:sorted:b", "add"),
        {"member": "q", "score": "-1"},
        ["ZADD g:v1:sorted:b CH -1 q"],
    ),
    (
        [("ZADD", "g:v1:due:b", 1_700_000_000_000, "p")],
        form_path("g:v1:due:b", "put", "p"),
        {"score": "2030-01-01T00:00:00Z"},
        ["ZADD g:v1:due:b CH 1893456000000 p"],
    ),
    (
        [("ZADD", "g:v1:sorted:b", 5, "p", 6, "q")],
        form_path("g:v1:sorted:b", "remove", "p"),
        {},
        ["ZREM g:v1:sorted:b p"],
    ),
    (
        [("RPUSH", "g:v1:list:b", "p", "q")],
        form_path("g:v1:list:b", "add"),
        {"item": "r", "end": "left"},
        ["LPUSH g:v1:list:b r"],
    ),
    (
        [("RPUSH", "g:v1:list:b", "p", "q", "p", "r")],
        form_path("g:v1:list:b", "put", "q"),
        {"item": "z"},
        ["LSET g:v1:list:b 1 z"],
    ),
    (
        [("RPUSH", "g:v1:list:b", "p", "q", "p", "r")],
        form_path("g:v1:list:b", "remove", "p"),
        {},
        ["LREM g:v1:list:b 0 p"],
    ),
    (
        [("XADD", "g:v1:stream:b", "5-1", "plant", "p", "litres", "1")],
        form_path("g:v1:stream:b", "add"),
        {"member__plant": "q", "member__litres": "2"},
        ["XADD g:v1:stream:b * plant q litres 2"],
    ),
    (
        [
            ("XADD", "g:v1:stream:b", "5-1", "plant", "p", "litres", "1"),
            ("XADD", "g:v1:stream:b", "6-1", "plant", "q", "litres", "1"),
        ],
        form_path("g:v1:stream:b", "remove", "5-1"),
        {},
        ["XDEL g:v1:stream:b 5-1"],
    ),
    (
        [("SET", "g:v1:plant:p", "rose")],
        form_path("g:v1:plant:p", "expire"),
        {"expiry": "2 h 30 min"},
        ["PEXPIRE g:v1:plant:p 9000000"],
    ),
    (
        [("SET", "g:v1:plant:p", "rose", "PX", 700_000)],
        form_path("g:v1:plant:p", "expire"),
        {"expiry": ""},
        ["PERSIST g:v1:plant:p"],
    ),
    (
        [("RPUSH", "g:v1:list:b", "p", "q"), ("PEXPIRE", "g:v1:list:b", 700_000)],
        form_path("g:v1:list:b", "delete"),
        {},
        ["UNLINK g:v1:list:b"],
    ),
    (
        [("HSET", "g:v1:tool:t", "width", "1"), ("SADD", "g:v1:tools", "t")],
        form_path("g:v1:tool:t", "delete"),
        {},
        ["UNLINK g:v1:tool:t", "SREM g:v1:tools t"],
    ),
    (
        [],
        form_path("g:v1:tool:t", "change"),
        {"member__width": "1"},
        ["HSET g:v1:tool:t width 1", "SADD g:v1:tools t"],
    ),
    # Relations: both sides and the index, whichever side is edited.
    (
        [],
        form_path("g:v1:gardener:ann:plot", "relate"),
        {"partner": "p1"},
        ["SET g:v1:gardener:ann:plot p1", "SADD g:v1:plot:p1:gardeners ann", "SADD g:v1:working ann"],
    ),
    (
        [
            ("SET", "g:v1:gardener:ann:plot", "p1"),
            ("SADD", "g:v1:plot:p1:gardeners", "ann"),
            ("SADD", "g:v1:working", "ann"),
        ],
        form_path("g:v1:plot:p2:gardeners", "relate"),
        {"partner": "ann"},
        [
            "SREM g:v1:plot:p1:gardeners ann",
            "SET g:v1:gardener:ann:plot p2",
            "SADD g:v1:plot:p2:gardeners ann",
            "SADD g:v1:working ann",
        ],
    ),
    (
        [
            ("SET", "g:v1:gardener:ann:plot", "p1"),
            ("SADD", "g:v1:plot:p1:gardeners", "ann"),
            ("SADD", "g:v1:working", "ann"),
        ],
        form_path("g:v1:plot:p1:gardeners", "remove", "ann"),
        {},
        ["UNLINK g:v1:gardener:ann:plot", "SREM g:v1:plot:p1:gardeners ann", "SREM g:v1:working ann"],
    ),
    (
        [
            ("SET", "g:v1:gardener:ann:badge", "b1"),
            ("SET", "g:v1:badge:b1:wearer", "ann"),
            ("SET", "g:v1:gardener:ben:badge", "b2"),
            ("SET", "g:v1:badge:b2:wearer", "ben"),
        ],
        form_path("g:v1:gardener:ann:badge", "relate"),
        {"partner": "b2"},
        [
            "UNLINK g:v1:badge:b1:wearer",
            "UNLINK g:v1:gardener:ben:badge",
            "SET g:v1:gardener:ann:badge b2",
            "SET g:v1:badge:b2:wearer ann",
        ],
    ),
    (
        [("SET", "g:v1:gardener:ann:badge", "b1"), ("SET", "g:v1:badge:b1:wearer", "ann")],
        form_path("g:v1:badge:b1:wearer", "delete"),
        {},
        ["UNLINK g:v1:gardener:ann:badge", "UNLINK g:v1:badge:b1:wearer"],
    ),
    (
        [("SADD", "g:v1:gardener:ann:likes", "p"), ("SADD", "g:v1:liked:p:by", "ann")],
        form_path("g:v1:liked:q:by", "relate"),
        {"partner": "ann"},
        ["SADD g:v1:gardener:ann:likes q", "SADD g:v1:liked:q:by ann"],
    ),
    (
        [
            ("SADD", "g:v1:gardener:ann:likes", "p", "q"),
            ("SADD", "g:v1:liked:p:by", "ann"),
            ("SADD", "g:v1:liked:q:by", "ann"),
        ],
        form_path("g:v1:gardener:ann:likes", "remove", "q"),
        {},
        ["SREM g:v1:gardener:ann:likes q", "SREM g:v1:liked:q:by ann"],
    ),
]


def test_every_edit_shows_its_commands_writes_them_and_is_taken_back(
    redis_url: str, raw: Raw, tmp_path: Path
) -> None:
    with editing(redis_url, tmp_path) as editor:
        for given, path, texts, commands in EDITS:
            raw("FLUSHALL")
            for command in given:
                raw(*command)
            before = state_of(raw)
            planned = editor.plan(path, **texts)
            assert planned.status_code == 200, (path, planned.text)
            assert planned.json()["commands"] == commands, path
            assert state_of(raw) == before, path
            applied = editor.apply(planned.json())
            assert (applied.status_code, applied.json()["state"]) == (200, "applied"), (path, applied.text)
            assert state_of(raw) != before, path
            undone = editor.undo(planned.json())
            assert (undone.status_code, undone.json()["state"]) == (200, "undone"), (path, undone.text)
            assert state_of(raw) == before, path
            assert editor.undo(planned.json()).status_code == 409


def test_another_writer_between_form_plan_and_apply_loses_nothing(
    redis_url: str, raw: Raw, tmp_path: Path
) -> None:
    raw("HSET", "g:v1:record:b", "width", "3")
    raw("HSET", "g:v1:map:b", "r1", "p")
    path = form_path("g:v1:record:b", "change")
    with editing(redis_url, tmp_path) as editor:
        form = editor.get(path)
        raw("HSET", "g:v1:record:b", "length", "9")
        late = editor.post(path, mark=form["mark"], seen=form["seen"], **{"member.width": "4"})
        planned = editor.plan(path, member__width="5").json()
        raw("HSET", "g:v1:record:b", "length", "10")
        overtaken = editor.apply(planned)
        again = editor.apply(planned)
        entry = editor.plan(form_path("g:v1:map:b", "put", "r1"), value="q").json()
        raw("HSET", "g:v1:map:b", "r1", "z")
        entry_overtaken = editor.apply(entry)
        page = editor.client.get(f"{editor.explored.base}/edit/{planned['number']}").text
    assert late.status_code == 409
    shown = {each["name"]: each for each in late.json()["inputs"]}
    assert shown["member.length"]["text"] == "9"
    assert (shown["member.width"]["text"], shown["member.width"]["stored"]) == ("4", "3")
    assert "changed since it was shown" in late.json()["problem"]
    assert (overtaken.status_code, overtaken.json()["state"]) == (409, "overtaken")
    assert overtaken.json()["now"] == {"plant": None, "width": 3, "length": 10}
    assert again.status_code == entry_overtaken.status_code == 409
    assert raw("HGETALL", "g:v1:record:b") == {b"width": b"3", b"length": b"10"}
    assert raw("HGET", "g:v1:map:b", "r1") == b"z"
    assert "Nothing was written." in page
    assert list(tmp_path.iterdir()) == []


def test_an_undo_leaves_newer_data_alone_on_all_keys(redis_url: str, raw: Raw, tmp_path: Path) -> None:
    raw("SET", "g:v1:gardener:ann:plot", "p1")
    raw("SADD", "g:v1:plot:p1:gardeners", "ann")
    raw("SADD", "g:v1:working", "ann")
    with editing(redis_url, tmp_path) as editor:
        moved = editor.done(form_path("g:v1:gardener:ann:plot", "relate"), partner="p2")
        editor.done(form_path("g:v1:gardener:ann:plot", "relate"), partner="p3")
        refused = editor.undo(moved)
    assert (refused.status_code, refused.json()["state"]) == (409, "kept")
    assert raw("GET", "g:v1:gardener:ann:plot") == b"p3"
    assert raw("EXISTS", "g:v1:plot:p1:gardeners", "g:v1:plot:p2:gardeners") == 0


def test_values_that_do_not_decode_are_reported_and_kept_in_the_form(
    redis_url: str, raw: Raw, tmp_path: Path
) -> None:
    raw("HSET", "g:v1:record:b", "width", "3")
    raw("SET", "g:v1:plant:p", "rose")
    hostile = "</textarea><script>alert(1)</script>\u202e\x00"
    with editing(redis_url, tmp_path) as editor:
        refused = {
            text: editor.plan(form_path("g:v1:record:b", "change"), member__width=text)
            for text in ("abc", "1.5", "9" * 30, hostile)
        }
        incomplete = editor.plan(form_path("g:v1:strict:b", "change"), member__width="1")
        unchanged = editor.plan(form_path("g:v1:plant:p", "set"))
        expiries = [
            editor.plan(form_path("g:v1:plant:p", "expire"), expiry=text).status_code
            for text in ("soon", "-5 s", "5", "2001-01-01T00:00:00Z", "9" * 40 + " d")
        ]
        form = editor.get(form_path("g:v1:plant:p", "set"))
        huge = editor.post(
            form_path("g:v1:plant:p", "set"), mark=form["mark"], seen=form["seen"], value="x" * 3_000_000
        )
        page = editor.client.post(
            editor.explored.base + form_path("g:v1:record:b", "change"),
            data={
                "mark": form["mark"],
                "seen": editor.get(form_path("g:v1:record:b", "change"))["seen"],
                "member.width": hostile,
            },
        )
        saved = editor.done(form_path("g:v1:plant:p", "set"), value=hostile)
        shown = editor.client.get(f"{editor.explored.base}/edit/{saved['number']}").text
    for text, answer in refused.items():
        assert answer.status_code == 422
        problem = next(each for each in answer.json()["inputs"] if each["name"] == "member.width")
        assert problem["problem"].startswith("expected a signed 64-bit integer, found")
        assert problem["text"] == text
    assert {each["name"] for each in incomplete.json()["inputs"] if each["problem"]} == {
        "member.length",
        "member.depth",
    }
    assert (unchanged.status_code, unchanged.json()["problem"]) == (422, "Nothing is changed.")
    assert expiries == [422] * 5
    assert huge.status_code == 413
    assert page.status_code == 422
    assert "<script>alert" not in page.text + shown
    assert "&lt;script&gt;" in page.text
    assert raw("GET", "g:v1:plant:p") == hostile.encode()
    assert raw("HGETALL", "g:v1:record:b") == {b"width": b"3"}


def test_expiries_stay_within_the_declaration(redis_url: str, raw: Raw, tmp_path: Path) -> None:
    raw("SET", "g:v1:lasting:value:b", "p", "PX", 630_000)
    path = form_path("g:v1:lasting:value:b", "expire")
    with editing(redis_url, tmp_path) as editor:
        longer = editor.plan(path, expiry="2 d")
        none = editor.plan(path, expiry="")
        editor.done(path, expiry="20 h")
    assert (longer.status_code, none.status_code) == (422, 422)
    assert "at most 1 d" in longer.json()["inputs"][0]["problem"]
    assert 71_000_000 < raw("PTTL", "g:v1:lasting:value:b") <= 72_000_000


def test_secrets_are_written_and_never_shown(redis_url: str, raw: Raw, tmp_path: Path) -> None:
    with editing(redis_url, tmp_path) as editor:
        path = form_path("g:v1:sealed:record:b", "change")
        created = editor.done(path, member__name="gate", member__pin="pin-one-secret")
        sealed = raw("HGET", "g:v1:sealed:record:b", "pin")
        form = editor.client.get(editor.explored.base + path).text
        kept = editor.done(path, member__name="gate 2")
        same = raw("HGET", "g:v1:sealed:record:b", "pin")
        changed = editor.done(path, member__pin="pin-two-secret")
        undone = editor.undo(changed)
        back = raw("HGET", "g:v1:sealed:record:b", "pin")
        entry = editor.done(form_path("g:v1:sealed:map:b", "add"), field="g1", value="pin-three-secret")
        pages = [
            editor.client.get(f"{editor.explored.base}/edit/{each['number']}", headers=headers).text
            for each in (created, kept, changed, entry)
            for headers in (JSON, {})
        ]
        wrong = editor.plan(form_path("g:v1:sealed:value:b", "set"), value="pin-four-secret").text
        # The database opens what the explorer sealed.
        with garden.SAMPLE.open(redis_url) as db:
            opened = db.run(garden.SealedMap(bed="b").get("g1"))
    assert opened is not None
    assert opened.reveal() == "pin-three-secret"
    assert sealed == same == back
    assert undone.json()["state"] == "undone"
    assert 'type="password"' in form
    assert not any("-secret" in text or "c2VjcmV0" in text for text in (form, wrong, *pages))
    assert created["commands"] == ["HSET g:v1:sealed:record:b name gate pin (secret)"]


def test_a_reader_a_foreign_form_and_an_index_are_not_edited(
    redis_url: str, raw: Raw, tmp_path: Path
) -> None:
    raw("SET", "g:v1:plant:p", "rose")
    raw("SADD", "g:v1:working", "ann")
    raw("SADD", "g:v1:record:wrong", "x")
    path = form_path("g:v1:plant:p", "set")
    with editing(redis_url, tmp_path, write=False) as reader:
        page = reader.client.get(reader.explored.base + "/key?name=g:v1:plant:p").text
        refused = [
            reader.client.get(reader.explored.base + path).status_code,
            reader.client.get(reader.explored.base + "/template/garden/Plant/new").status_code,
            reader.post(path, mark=reader.mark, value="x").status_code,
        ]
    with editing(redis_url, tmp_path) as editor:
        foreign = httpx.post(editor.explored.base + path, data={"value": "x"}).status_code
        planned = editor.plan(path, value="tulip").json()
        stale = editor.post(f"/edit/{planned['number']}/apply", mark=editor.mark, plan="0" * 24)
        forged = httpx.post(f"{editor.explored.base}/edit/{planned['number']}/apply", data={})
        indexes = [
            editor.client.get(editor.explored.base + form_path(name, action)).status_code
            for name, action in (("g:v1:working", "add"), ("g:v1:tools", "delete"), ("nothing:1", "set"))
        ]
        one_side = editor.client.get(
            editor.explored.base + form_path("g:v1:gardener:ann:plot", "set")
        ).status_code
        other_type = editor.get(form_path("g:v1:record:wrong", "change"))["refusal"]
    assert "/key/edit" not in page
    assert refused == [403, 403, 403]
    assert (foreign, stale.status_code, forged.status_code) == (403, 409, 403)
    assert indexes == [404, 404, 404]
    assert one_side == 404
    assert "stored as a set" in other_type
    assert raw("GET", "g:v1:plant:p") == b"rose"


def test_a_new_key_gets_its_variables_then_its_value(redis_url: str, raw: Raw, tmp_path: Path) -> None:
    with editing(redis_url, tmp_path) as editor:
        base = editor.explored.base + "/template/garden/Plant/new"
        mark = editor.mark
        bad = editor.client.post(base, data={"mark": mark, "plant": "a b:c"})
        good = editor.client.post(base, data={"mark": mark, "plant": "p9"})
        path = good.headers["location"]
        editor.done(path, value="moss")
        index = editor.get("/template/garden/Tools/new")["refusal"]
        union = editor.get("/key/edit?name=g:v1:union:b&action=change&shape=1")["inputs"]
    assert bad.status_code == 422
    assert 'value="a b:c"' in bad.text
    assert good.status_code == 303
    assert raw("GET", "g:v1:plant:p9") == b"moss"
    assert "index" in index
    assert [each["name"] for each in union] == ["member.event", "member.seeds", "member.plant"]


def test_typed_inputs_follow_the_declaration(redis_url: str, raw: Raw, tmp_path: Path) -> None:
    raw("RPUSH", "g:v1:orders:b", '{"plant":"p"}')
    raw("SET", "g:v1:older:value:b", "old p")
    with editing(redis_url, tmp_path) as editor:
        union = editor.get("/key/edit?name=g:v1:union:b&action=change&shape=0")["inputs"]
        order = editor.get(form_path("g:v1:orders:b", "add"))["inputs"][0]
        bad = editor.plan(form_path("g:v1:orders:b", "add"), item='{"plant": 5}')
        editor.done(form_path("g:v1:orders:b", "add"), item='{"plant": "q"}')
        older = editor.get(form_path("g:v1:older:value:b", "set"))["refusal"]
    assert {each["name"]: each["sort"] for each in union} == {
        "member.event": "choice",
        "member.depth": "number",
    }
    assert order["sort"] == "json"
    assert bad.status_code == 422
    assert raw("LRANGE", "g:v1:orders:b", 0, -1) == [b'{"plant":"p"}', b'{"plant":"q"}']
    assert "older shape" in older


def test_a_malformed_secret_is_not_repeated_in_its_error() -> None:
    read = FormTexts({"pin": "hunter2"}, [Input("pin", "pin", "secret", "")])
    assert read.value("pin", codec_of(Secret[int])) is None
    assert read.problems == {"pin": "expected a secret: a signed 64-bit integer"}


def test_edits_of_a_relation_reach_all_slots_of_a_cluster(
    cluster_url: str, raw_cluster: Raw, tmp_path: Path
) -> None:
    with editing(cluster_url, tmp_path) as editor:
        editor.done(form_path("g:v1:gardener:ann:plot", "relate"), partner="p1")
        moved = editor.done(form_path("g:v1:plot:p2:gardeners", "relate"), partner="ann")
        there = (
            raw_cluster("GET", "g:v1:gardener:ann:plot"),
            raw_cluster("SMEMBERS", "g:v1:plot:p2:gardeners"),
        )
        left = raw_cluster("EXISTS", "g:v1:plot:p1:gardeners")
        undone = editor.undo(moved).json()["state"]
    assert there == (b"p2", {b"ann"})
    assert left == 0
    assert undone == "undone"
    assert raw_cluster("GET", "g:v1:gardener:ann:plot") == b"p1"
    assert raw_cluster("SMEMBERS", "g:v1:plot:p1:gardeners") == {b"ann"}
    assert raw_cluster("EXISTS", "g:v1:plot:p2:gardeners") == 0


@pytest.mark.parametrize(("width", "dark"), [(1440, False), (390, True)])
def test_a_person_changes_a_key_and_takes_it_back(
    chromium: Chromium, redis_url: str, raw: Raw, tmp_path: Path, width: int, *, dark: bool
) -> None:
    async def looked(page: Any) -> list[str]:
        await page.wait_for_load_state("load")
        await assert_fits(page)
        return await serious_findings(page)

    async def work(page: Any) -> dict[str, Any]:
        found: dict[str, Any] = {"trouble": []}
        await page.goto(explored.base + key_path("meetup_event:e1"))
        await page.click("#snippets summary")
        await page.click("#backlinks summary")
        await page.wait_for_selector("#backlinks a.row")
        found["links"] = await page.locator("#backlinks a.row").all_inner_texts()
        found["trouble"] += await looked(page)
        await page.click("a:text-is('Change members')")
        await page.fill("input[name='member.time']", "noon")
        await page.click("button:text-is('Show the commands')")
        found["problem"] = await page.inner_text(".field.bad .note")
        found["trouble"] += await looked(page)
        await page.fill("input[name='member.time']", "2030-01-01T10:00:00Z")
        await page.fill("input[name='member.name']", "<b>New</b>")
        await page.click("button:text-is('Show the commands')")
        found["commands"] = await page.inner_text("pre.commands")
        found["trouble"] += await looked(page)
        await page.click("button:text-is('Write')")
        await page.wait_for_selector(".notice.good:has-text('Written.')")
        found["written"] = raw("HGET", "meetup_event:e1", "name")
        await page.click("button:text-is('Undo')")
        await page.wait_for_selector(".notice.good:has-text('Undone.')")
        found["trouble"] += await looked(page)
        await page.goto(explored.base + "/template/meetup/MeetupEvent")
        await page.click("a:text-is('New key')")
        await page.fill("input[name=event]", "e999")
        found["trouble"] += await looked(page)
        await page.click("button:text-is('Continue')")
        await page.wait_for_selector("h1:text-is('Create')")
        found["trouble"] += await looked(page)
        return found

    with exploring_sample(redis_url, "meetup", write=True, undo=tmp_path / "undo") as explored:
        before = raw("HGETALL", "meetup_event:e1")
        found = chromium.visit(work, width=width, dark=dark)
    assert found["trouble"] == []
    assert "SeriesOfEvent e1" in found["links"]
    assert "expected an RFC 3339 time, found “noon”" in found["problem"]
    written = "HSET meetup_event:e1 name <b>New</b> time 2030-01-01T10:00:00+00:00"
    assert found["commands"].strip() == written
    assert found["written"] == b"<b>New</b>"
    assert raw("HGETALL", "meetup_event:e1") == before


def test_links_have_the_names_of_their_targets_and_each_target_once(redis_url: str, raw: Raw) -> None:
    with exploring_sample(redis_url, "meetup") as explored:
        raw("HSET", "meetup_event:e1", "name", "Catan <evening>")
        path = key_path("meetup_event:e1:event_series")
        links = explored.get(path, Accept="application/json").json()["links"]
        page = explored.get(path).text
    event = [link for link in links if link["url"] == "/key?name=meetup_event:e1"]
    assert [(link["along"], link["name"]) for link in event] == [("event", "Catan <evening>")]
    assert len({link["url"] for link in links}) == len(links)
    assert "Catan &lt;evening&gt;" in page


def test_a_document_that_may_hold_secrets_is_not_prefilled(
    redis_url: str, raw: Raw, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(garden.Plant, "hides", ("token",))
    raw("SET", "g:v1:plant:p", "token-of-ann")
    path = form_path("g:v1:plant:p", "set")
    with editing(redis_url, tmp_path) as editor:
        form = editor.get(path)["inputs"][0]
        empty = editor.plan(path)
        edit = editor.done(path, value="token-of-ben")
        pages = [
            editor.client.get(f"{editor.explored.base}{where}").text
            for where in (path, f"/edit/{edit['number']}")
        ]
    assert (form["text"], form["kept"]) == ("", True)
    assert empty.json()["problem"] == "Nothing is changed."
    assert raw("GET", "g:v1:plant:p") == b"token-of-ben"
    assert edit["commands"] == ["SET g:v1:plant:p (secret) KEEPTTL"]
    assert "token-of-ann" not in "".join(pages)
