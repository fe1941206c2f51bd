"""Data that means harm, or is only too much: it is shown as what it is, and breaks nothing."""

from __future__ import annotations

import re
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Annotated, Any
from urllib.parse import quote

import msgspec
import pytest

from browsing import Chromium
from exploring import exploring, key_path, watched
from keywright import Codec, FreeText, Id, Keyspace, List, Map, Record, RestOfName, Set, Value, refers
from keywright.testing.conditions import wait_until
from keywright.testing.runs import Raw
from keywright_discord.raw_json import Document

harm = Keyspace("harm", "What <b>others</b> wrote.", prefix="harm")
SCRIPT = "<script>document.title='harmed'</script><img src=x onerror=document.title='harmed'>"
CONTROLS = "a\x00b\x07c\x1b[31m\u202ed\ue000\ufeff"


class Note(Value[str], key="note:<path>", space=harm):
    """A text that <i>anyone</i> may write."""

    path: RestOfName


class Paper(Value[Document], key="paper:<paper>", space=harm):
    """A document."""

    paper: FreeText


class Wide(Map[str, str], key="wide:<wide>", space=harm):
    """Many fields."""

    wide: Id


class Crowd(Set[str], key="crowd:<crowd>", space=harm):
    """Many members."""

    crowd: Id


class Row(List[str], key="row:<row>", space=harm):
    """Items."""

    row: Id


class Letter(msgspec.Struct):
    head: str
    body: str
    foot: str


class Letters(Record[Letter], key="letter:<letter>", space=harm):
    """A record whose members may be long."""

    letter: Id


class Pointer(Value[str], key="pointer:<pointer>", space=harm):
    """Names a list, or it should."""

    pointer: Id


refers(Pointer, Row, lambda _, value: [value.split(":")[1]], name="row", required=False)


def _fill(raw: Raw) -> list[str | bytes]:
    """Hostile keys; the names of those that have a page."""
    evil_path = "<script>alert(1)</script>'\"&--><svg/onload=x>".replace(" ", "")
    nested: Any = SCRIPT
    for _ in range(60):
        nested = {SCRIPT: nested}
    raw("SET", f"harm:note:{evil_path}", SCRIPT)
    raw("SET", "harm:note:controls", CONTROLS)
    raw("SET", "harm:note:broken", b"\xff\xfe broken \xc3")
    raw("SET", "harm:note:empty", "")
    raw("SET", "harm:note:url", "javascript:alert(1)")
    raw("SET", "harm:paper:deep", msgspec.json.encode(nested))
    raw("SET", "harm:paper:wide", msgspec.json.encode({f"k{n}": SCRIPT for n in range(5000)}))
    raw("SET", "harm:paper:list", msgspec.json.encode({"list": list(range(30_000))}))
    raw("HSET", "harm:wide:evil", SCRIPT, SCRIPT, "x" * 3000, "y" * 100_000)
    raw("SADD", "harm:crowd:evil", SCRIPT, CONTROLS, "")
    raw("SET", b"harm:\xff\xfe\x00<b>", b"\x00\x01")
    raw("SET", "harm:<h1>unknown</h1>", SCRIPT)
    raw("LPUSH", "harm:note:wrong-type", SCRIPT)
    return [
        f"harm:note:{evil_path}",
        *(f"harm:note:{each}" for each in ("controls", "broken", "empty", "url", "wrong-type")),
        *(f"harm:paper:{each}" for each in ("deep", "wide", "list")),
        "harm:wide:evil",
        "harm:crowd:evil",
        b"harm:\xff\xfe\x00<b>",
        "harm:<h1>unknown</h1>",
    ]


def test_whatever_is_stored_is_only_text_in_the_browser(
    chromium: Chromium, redis_url: str, raw: Raw, tmp_path: Path
) -> None:
    names = _fill(raw)
    raw("CONFIG", "SET", "slowlog-log-slower-than", "0")  # operations list these names
    raw("GET", names[0])
    raw("CONFIG", "SET", "slowlog-log-slower-than", "10000")
    beside = [(redis_url, [harm.bind(prefix="elsewhere")])]
    undo = tmp_path / "undo"
    with exploring(redis_url, [harm], beside=beside, write=True, undo=undo, show_unknown=True) as explored:
        explored.surveyed()
        explored.explorer.db._loop.call_soon_threadsafe(explored.explorer.auditing.start)
        wait_until(lambda: explored.explorer.auditing.tally, "the audit")
        paths = ["/", "/map", "/operations", "/schema", "/compare", "/changes", "/audit"]
        paths += ["/template/harm/Note", "/template/harm/Paper", f"/search?q={quote(SCRIPT)}"]
        paths += ["/template/harm/Wide?sort=-value", "/template/harm/Note/new"]
        paths += map(key_path, names)
        paths += [key_path("harm:wide:evil", SCRIPT)]
        for name in names[:8]:
            query = key_path(name).partition("?")[2]
            paths += [f"/compare/key?{query}", f"/key/edit?{query}", f"/key/backlinks?{query}"]

        async def visit(page: Any) -> list[str]:
            async def look(page: Any) -> None:
                for path in paths:
                    await page.goto(explored.base + path)
                    assert await page.title() != "harmed", path
                    assert await page.locator("main script, main img, main h1 + h1, main iframe").count() == 0
                    if raw_bytes := await page.query_selector("details.raw summary"):
                        await raw_bytes.click()
                        await page.wait_for_selector(".bytes pre, .bytes .notice")

            return await watched(page, look)

        assert chromium.visit(visit) == []


@pytest.mark.parametrize(
    ("name", "shown"),
    [
        ("harm:note:controls", "a\\x00b\\x07c\\x1b[31m\\u202ed\\ue000\\ufeff"),
        ("harm:note:broken", "Not as declared."),
        ("harm:note:wrong-type", "Not as declared."),
        (b"harm:\xff\xfe\x00<b>", "harm:\\xff\\xfe\\x00&lt;b&gt;"),
        ("harm:<h1>unknown</h1>", "No template matches this name"),
        ("harm:paper:wide", "and 1,000 more"),
        ("harm:wide:evil", f">{'x' * 90}…</a>"),
    ],
)
def test_what_cannot_be_read_is_spelled_out_or_said(
    redis_url: str, raw: Raw, name: str | bytes, shown: str
) -> None:
    _fill(raw)
    with exploring(redis_url, [harm]) as explored:
        page = explored.get(key_path(name))
    assert page.status_code == 200
    assert shown in page.text


def test_megabytes_are_told_not_sent(redis_url: str, raw: Raw) -> None:
    raw("SET", "harm:note:huge", b"x" * (64 << 20))
    raw("SET", "harm:note:large", b"x" * 900_000)
    for n in range(300):
        raw("HSET", "harm:wide:heavy", f"f{n}", "z" * 200_000)
    with exploring(redis_url, [harm]) as explored:
        pages = {
            name: explored.get(key_path(f"harm:{name}")) for name in ("note:huge", "note:large", "wide:heavy")
        }
        dump = explored.get("/key/raw?name=harm:note:huge")
    assert {page.status_code for page in pages.values()} == {200}
    assert "Too large to be shown" in pages["note:huge"].text
    assert "64.0 MiB" in pages["note:huge"].text
    assert "the first 20,000 of 900,000 characters" in pages["note:large"].text
    assert "of 300 entries" in pages["wide:heavy"].text
    assert max(len(page.content) for page in [*pages.values(), dump]) < 400_000


def test_no_page_reads_entries_that_are_megabytes_long(redis_url: str, raw: Raw) -> None:
    raw("HSET", "harm:wide:fat", "f", b"x" * (32 << 20))
    raw("RPUSH", "harm:row:fat", *[b"x" * (8 << 20)] * 4)
    raw("SET", "harm:pointer:fat", "to:fat")
    raw("SET", "harm:note:fat", b"x" * (32 << 20))
    raw("HSET", "harm:letter:fat", "head", "h", "body", b"x" * (8 << 20), "foot", "f")
    paths = [
        key_path("harm:wide:fat"),
        key_path("harm:wide:fat", "f"),
        key_path("harm:row:fat"),
        key_path("harm:pointer:fat"),
        "/key/raw?name=harm:wide:fat",
        "/key/raw?name=harm:wide:fat&entry=f",
        "/key/raw?name=harm:row:fat",
    ]
    tables = [
        "/template/harm/Wide",
        "/template/harm/Row",
        "/template/harm/Note",
        "/template/harm/Note?cursor=0-0&format=csv",
        "/template/harm/Letters",
    ]
    with exploring(redis_url, [harm]) as explored:
        before = raw("INFO", "stats")["total_net_output_bytes"]
        pages = {path: explored.get(path) for path in paths}
        listed = [explored.surveyed().get(path) for path in tables]
        sent = raw("INFO", "stats")["total_net_output_bytes"] - before
    assert {page.status_code for page in pages.values()} == {200}
    assert [path for path, page in pages.items() if "oo large to be shown" not in page.text] == [paths[3]]
    assert {page.status_code for page in listed} == {200}
    assert ["too large for a row" in page.text for page in listed] == [False, False, True, True, True]
    assert sent < 1 << 20


def test_forms_and_comparisons_do_not_read_megabytes(redis_url: str, raw: Raw, tmp_path: Path) -> None:
    script = (
        "local a={} for i=1,1000 do a[2*i-1]='f'..(ARGV[1]*1000+i) a[2*i]='v'..i end "
        "redis.call('HSET',KEYS[1],unpack(a))"
    )
    for thousand in range(1000):
        raw("EVAL", script, "1", "harm:wide:million", str(thousand))
    raw("SET", "harm:note:fat", b"x" * (32 << 20))
    raw("HSET", "harm:letter:fat", "head", "h", "body", b"x" * (8 << 20), "foot", "f")
    raw("XADD", "harm:fat-stream", "*", "f", b"x" * (8 << 20))
    queries = [
        key_path(f"harm:{each}").partition("?")[2] for each in ("wide:million", "note:fat", "letter:fat")
    ]
    forms = ("/key/edit?", "/key/backlinks?", "/compare/key?")
    paths = [f"{form}{query}" for form in forms for query in queries]
    paths += [f"/key/edit?{query}&action=delete" for query in queries]
    paths += [
        f"/key/edit?{queries[0]}&entry=f777777",
        "/operations",
        "/changes?values=1",
        "/schema",
        "/compare",
    ]
    beside = [(redis_url, [harm.bind(prefix="elsewhere")])]
    with exploring(redis_url, [harm], beside=beside, write=True, undo=tmp_path / "undo") as explored:
        explored.surveyed()
        before = raw("INFO", "stats")["total_net_output_bytes"]
        pages = {path: explored.get(path) for path in paths}
        sent = raw("INFO", "stats")["total_net_output_bytes"] - before
    assert {path: page.status_code for path, page in pages.items() if page.status_code != 200} == {}
    assert "v777" in pages[f"/key/edit?{queries[0]}&entry=f777777"].text
    assert max(len(page.content) for page in pages.values()) < 200_000
    assert sent < 4 << 20


def test_a_record_is_shown_whole_or_not_at_all(redis_url: str, raw: Raw) -> None:
    raw("HSET", "harm:letter:long", "head", "h", "body", b"x" * 700_000, "foot", "f", "stray", b"y" * 100_000)
    raw("HSET", "harm:letter:huge", "head", "h", "body", b"x" * (3 << 20), "foot", "f")
    raw("HSET", "harm:letter:crowded", "head", "h", "body", "b", "foot", "f")
    for n in range(400):
        raw("HSET", "harm:letter:crowded", f"stray{n}", "z" * 100)
    with exploring(redis_url, [harm]) as explored:
        pages = [explored.get(key_path(f"harm:letter:{each}")).text for each in ("long", "huge", "crowded")]
    assert not any("Not as declared" in page for page in pages)
    assert "the first 20,000 of 700,000 characters" in pages[0]
    assert "Too large to be shown" in pages[1]
    assert '<span class="label">foot</span> <span class="v text">f</span>' in pages[2]


def test_a_reference_that_was_not_written_for_what_is_stored_leads_nowhere(redis_url: str, raw: Raw) -> None:
    raw("SET", "harm:pointer:1", "no colon in it")
    with exploring(redis_url, [harm]) as explored:
        page = explored.get(key_path("harm:pointer:1"))
    assert page.status_code == 200
    assert "no colon in it" in page.text


def test_a_million_members_are_shown_in_part_and_found_by_name(redis_url: str, raw: Raw) -> None:
    script = (
        "local a={} for i=1,1000 do a[2*i-1]='f'..(ARGV[1]*1000+i) a[2*i]='v'..i end "
        "redis.call('HSET',KEYS[1],unpack(a))"
    )
    for thousand in range(1000):
        raw("EVAL", script, "1", "harm:wide:million", str(thousand))
    with exploring(redis_url, [harm]) as explored:
        page = explored.get(key_path("harm:wide:million"))
        entry = explored.get(key_path("harm:wide:million", "f777777"))
        missing = explored.get(key_path("harm:wide:million", "nobody"))
    assert re.search(r"10\d of 1,000,000 entries, in the server&#39;s hash order", page.text)
    assert len(page.content) < 200_000
    assert "v777" in entry.text
    assert "There is no such entry." in missing.text


def test_a_query_that_is_nonsense_is_answered_with_a_page(redis_url: str) -> None:
    asked = {
        "/key": 400,
        "/key?name=": 400,
        "/key?name=%00%ff%fe": 404,
        "/search?q=%ff%00%3Cb%3E": 200,
        "/template/harm/Nope": 404,
        "/template/harm/Note?cursor=-1-zz": 200,
        "/template/harm/Note?cursor=99-99999999999999999999": 200,
        "/template/harm/Note?from=-5": 200,
        "/template/harm/Wide?wide=%00": 200,
        "/audit/none": 404,
        f"/key?name={'x' * 60_000}": 404,
    }
    with exploring(redis_url, [harm]) as explored:
        answers = {path[:60]: explored.get(path).status_code for path in asked}
    assert answers == {path[:60]: status for path, status in asked.items()}


class Slow(Codec[str]):
    """Text that is decoded once the test allows it, as a large value is after a long time."""

    expected = "text"
    python_type = str
    samples = ("a",)
    begun = threading.Event()
    allowed = threading.Event()

    def encode(self, value: str) -> bytes:
        return value.encode()

    def decode(self, data: bytes) -> str:
        self.begun.set()
        assert self.allowed.wait(20), "nothing else was served meanwhile"
        return data.decode()


slow = Keyspace("slow", "Values that take long.", prefix="slow")


class Heavy(Value[Annotated[str, Slow]], key="heavy:<heavy>", space=slow):
    """A value that takes long to decode."""

    heavy: Id


@pytest.mark.parametrize("reader", ["key page", "audit"])
def test_other_pages_are_served_while_a_value_is_decoded(redis_url: str, raw: Raw, reader: str) -> None:
    raw("SET", "slow:heavy:1", "a")
    Slow.begun.clear()
    Slow.allowed.clear()
    with exploring(redis_url, [slow]) as explored, ThreadPoolExecutor(1) as other:
        explored.surveyed()
        if reader == "audit":
            explored.explorer.db._loop.call_soon_threadsafe(explored.explorer.auditing.start)
            shown = None
        else:
            shown = other.submit(explored.get, key_path("slow:heavy:1"))
        assert Slow.begun.wait(20)
        try:
            assert explored.get("/search?q=x").status_code == 200
        finally:
            Slow.allowed.set()
        if shown is not None:
            assert shown.result().status_code == 200
        else:
            wait_until(lambda: explored.explorer.auditing.tally, "the audit")
