"""Keys that no template matches: what is stored is decoded by guess, and shown only where that is allowed."""

from __future__ import annotations

import asyncio
import gzip
import os
import pickle
import re
import zlib
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from browsing import Chromium, assert_fits
from exploring import exploring, key_path, serious_findings
from keywright import aconnect
from keywright.explorer.key_reader import Facts
from keywright.explorer.presentation import Presenter
from keywright.explorer.undeclared import MOST_ENTRIES, undeclared
from keywright.testing.runs import Raw
from keywright.tools.describe.plain import plain
from keywright.tools.infer.guess import guess
from keywright_meetup.schema import meetup

SHOTS = os.environ.get("KEYWRIGHT_SHOTS")


class Tempting:
    """Its pickle removes the working directory if it is loaded."""

    def __reduce__(self) -> Any:
        return os.rmdir, (os.getcwd(),)


@pytest.mark.parametrize(
    ("data", "form", "value"),
    [
        (b"plain text", "", "plain text"),
        (b"42", "a number", "42"),
        (b'{"a": [1, null]}', "JSON", {"a": [1, None]}),
        (b'{"a": ', "", '{"a": '),
        (msgspec.msgpack.encode({"a": [1]}), "MessagePack", {"a": [1]}),
        (zlib.compress(b'{"a": 1}'), "JSON, compressed with zlib", {"a": 1}),
        (gzip.compress(zlib.compress(b"[1]")), "JSON, compressed with zlib, compressed with gzip", [1]),
        (b'a:1:{s:1:"k";i:1;}', "serialised by PHP", 'a:1:{s:1:"k";i:1;}'),
        (b"\xac\xed\x00\x05sr\x00\x01A", "serialised by Java", b"\xac\xed\x00\x05sr\x00\x01A"),
        (b"\x08\x96\x01\x12\x03abc", "perhaps a message of protobuf", b"\x08\x96\x01\x12\x03abc"),
        (b"\xff\xfe\x00", "", b"\xff\xfe\x00"),
        (b"[" * 100 + b"]" * 100, "JSON, nested in more than 64 levels", b"[" * 100 + b"]" * 100),
        (b"[%d]" % 2**70, "JSON", [str(2**70)]),
    ],
    ids=lambda each: "" if not isinstance(each, str) else each[:30] or "text",
)
def test_bytes_are_recognised(data: bytes, form: str, value: Any) -> None:
    assert guess(data) == (form, value)


def test_a_number_of_the_size_of_a_time_is_shown_as_one() -> None:
    assert str(guess(b"1700000000").value) == "2023-11-14 22:13:20+00:00"


def test_a_pickle_is_listed_and_never_loaded() -> None:
    form, held = guess(pickle.dumps(["secret plan", 7, Tempting()]))
    assert form.startswith("a pickle of Python, which is not loaded")
    assert held[:2] == ["secret plan", 7]
    assert "rmdir" in held
    assert Path.cwd().exists()


def test_what_unpacks_to_too_much_stays_packed() -> None:
    form, value = guess(zlib.compress(bytes(1 << 22)))
    assert "too large to be unpacked" in form
    assert isinstance(value, bytes)


@given(
    st.binary(max_size=60)
    | st.binary(max_size=40).map(zlib.compress)
    | st.recursive(
        st.none() | st.integers(-(2**63), 2**64 - 1) | st.floats() | st.text() | st.binary(),
        lambda inner: st.lists(inner) | st.dictionaries(st.text() | st.integers(0, 9) | st.binary(), inner),
        max_leaves=8,
    ).map(msgspec.msgpack.encode)
)
def test_any_bytes_can_be_shown(data: bytes) -> None:
    value = guess(data).value
    assert Presenter().part(value).sort
    assert msgspec.json.encode(plain(value))


def test_every_type_is_shown_entry_by_entry_and_only_with_permission(
    redis_url: str, raw: Raw, chromium: Chromium
) -> None:
    raw("SET", "other:text", '{"user": "<b>anneliese</b>"}')
    raw(
        "HSET",
        "other:hash",
        "at",
        "1700000000",
        "<i>x</i>",
        zlib.compress(b'{"city": "Bern"}'),
        "\x1b",
        b"\xff\x00",
    )
    raw("SADD", "other:set", "one", "two")
    raw("ZADD", "other:ranking", "5", "ann", "9", "ben")
    raw("RPUSH", "other:list", *[f"item {number}" for number in range(300)])
    raw("XADD", "other:log", "1-0", "kind", "sale", "body", '{"cents": 5}')
    raw("SET", "other:large", "x" * (1 << 21))
    raw("PFADD", "other:estimate", "a")

    async def look(page: Any) -> list[str]:
        trouble = []
        for name in ("hash", "text"):
            await page.goto(explored.base + key_path(f"other:{name}"))
            for width in (1440, 390):
                await page.set_viewport_size({"width": width, "height": 844})
                await assert_fits(page)
                if SHOTS:
                    await page.screenshot(path=Path(SHOTS) / f"undeclared-{name}-{width}.png", full_page=True)
            trouble += await serious_findings(page)
        return trouble

    def document(name: str) -> Any:
        return explored.get(key_path(f"other:{name}"), Accept="application/json").json()

    names = ("text", "hash", "set", "ranking", "list", "log", "large", "estimate")
    with exploring(f"{redis_url}?protocol=3", [meetup], show_unknown=True) as explored:
        text, fields, members, ranking, items, log, large, estimate = map(document, names)
        page = explored.get(key_path("other:hash")).text
        named = explored.get(key_path("x" * 900)).text
        statuses = {explored.get(key_path(f"other:{name}")).status_code for name in names}
        assert chromium.visit(look) == []
    assert statuses == {200}
    assert "x" * 900 in re.findall(r"<pre[^>]*>([^<]*)</pre>", named)
    assert text["stored"] == [{"entry": "", "looks_like": "JSON", "value": {"user": "<b>anneliese</b>"}}]
    found = {each["entry"]: each for each in fields["stored"]}
    assert found["at"]["value"] == "2023-11-14T22:13:20+00:00"
    assert found["<i>x</i>"]["value"] == {"city": "Bern"}
    assert found["\\x1b"]["value"] == {"base64": "/wA="}
    assert "&lt;i&gt;x&lt;/i&gt;" in page
    assert "<i>x</i>" not in page
    assert "a guess" in page
    assert {each["value"] for each in members["stored"]} == {"one", "two"}
    assert [(each["entry"], each["value"]) for each in ranking["stored"]] == [("ann", "5"), ("ben", "9")]
    assert (len(items["stored"]), items["truncated"]) == (MOST_ENTRIES, True)
    assert log["stored"][1] == {"entry": "1-0 body", "looks_like": "JSON", "value": {"cents": 5}}
    assert large["truncated"]
    assert estimate["stored"][0]["looks_like"] == "a HyperLogLog"
    with exploring(redis_url, [meetup]) as explored:
        hidden = document("text")
        page = explored.get(key_path("other:text")).text
    assert hidden["stored"] is None
    assert "--show-unknown" in hidden["problem"]
    assert "anneliese" not in page


def test_a_type_of_a_module_is_named_and_not_read(redis_url: str) -> None:
    async def read() -> str | None:
        async with aconnect(redis_url) as db:
            return (await undeclared(db, b"x", Facts("ReJSON-RL", -1, 100, "raw", 1))).problem

    assert "a type of a server module" in (asyncio.run(read()) or "")
