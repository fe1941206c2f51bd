"""The texts on key pages for Python and redis-cli do what they say, for names and entries of any bytes."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest

import garden
import odd_names
from exploring import Explored, exploring
from keywright.testing.runs import Raw

CLI = shutil.which("redis-cli") or shutil.which("valkey-cli")
TESTS = Path(__file__).parent.parent


STRANGE = b"odd:blob:" + bytes(set(range(256)) - set(b"{}:"))
SPACES = [garden.garden, odd_names.odd]


def document(explored: Explored, name: str | bytes, entry: str | None = None) -> Any:
    more = "" if entry is None else f"&entry={quote(entry)}"
    return explored.get(f"/key?name={quote(name)}{more}", Accept="application/json").json()


def test_python_reads_what_the_page_shows(redis_url: str, raw: Raw) -> None:
    raw("SET", STRANGE, "rose")
    raw("HSET", "odd:fields:a \"'b", "f '\"\\", "p")
    raw("HSET", "g:v1:record:b", "width", "3")
    raw("SADD", "g:v1:set:b", "p")
    raw("ZADD", "g:v1:sorted:b", 5, "p")
    raw("RPUSH", "g:v1:list:b", "p", "q")
    raw("XADD", "g:v1:stream:b", "5-1", "plant", "p", "litres", "1")
    raw("SET", "g:v1:counter:p", "7")
    names: list[tuple[str | bytes, str | None, str]] = [
        (STRANGE, None, "rose"),
        ("odd:fields:a \"'b", "f '\"\\", "p"),
        ("g:v1:record:b", None, "Bed(plant=None, width=3, length=None)"),
        ("g:v1:set:b", None, "{'p'}"),
        ("g:v1:set:b", "p", "True"),
        ("g:v1:sorted:b", None, "[('p', 5)]"),
        ("g:v1:list:b", None, "['p', 'q']"),
        ("g:v1:stream:b", None, "[Entry(id='5-1', value=Watered(plant='p', litres=1))]"),
        ("g:v1:counter:p", None, "7"),
    ]
    with exploring(redis_url, SPACES, garden.SAMPLE.bindings) as explored:
        texts = [document(explored, name, entry)["python"] for name, entry, _ in names]
    # One process for all: each text is a program of its own.
    program = "\n".join(f"exec({text!r}, {{}})" for text in texts)
    done = subprocess.run(
        [sys.executable, "-c", program],
        env={**os.environ, "REDIS_URL": redis_url, "PYTHONPATH": str(TESTS)},
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert done.stdout.splitlines() == [said for _, _, said in names], done.stderr


def test_another_prefix_is_bound_in_python(redis_url: str, raw: Raw) -> None:
    raw("SET", "x'y:v1:plant:p", "rose")
    with exploring(redis_url, [garden.garden], [garden.garden.bind(prefix="x'y")]) as explored:
        text = document(explored, "x'y:v1:plant:p")["python"]
    assert 'Plant.declaration.space.bind(prefix="x\'y")' in text


@pytest.mark.skipif(CLI is None, reason="there is no redis-cli on PATH")
def test_redis_cli_reads_what_the_page_shows(redis_url: str, raw: Raw) -> None:
    raw("SET", STRANGE, "rose")
    raw("HSET", "odd:fields:a \"'b", "f '\"\\", "p")
    raw("ZADD", "g:v1:sorted:b", 5, "p")
    raw("XADD", "g:v1:stream:b", "5-1", "plant", "p", "litres", "1")
    with exploring(redis_url, SPACES, garden.SAMPLE.bindings) as explored:
        texts = [
            document(explored, STRANGE)["redis_cli"],
            document(explored, "odd:fields:a \"'b", "f '\"\\")["redis_cli"],
            document(explored, "g:v1:sorted:b")["redis_cli"],
            document(explored, "g:v1:stream:b")["redis_cli"],
        ]
    assert CLI is not None
    socket, password = redis_url.removeprefix("unix://").rpartition("@")[::2][::-1]
    done = subprocess.run(
        [CLI, "-s", socket, "-a", password.removeprefix(":"), "--no-auth-warning"],
        input="\n".join(texts).encode() + b"\n",
        capture_output=True,
        check=True,
        timeout=30,
    )
    said = done.stdout.decode().splitlines()
    assert said == [
        *("string", "-1", "rose"),
        *("hash", "-1", "p"),
        *("zset", "-1", "p", "5"),
        *("stream", "-1", "5-1", "plant", "p", "litres", "1"),
    ]


def test_hostile_names_stay_text_on_the_page(redis_url: str, raw: Raw) -> None:
    name = "odd:blob:</pre><script>alert(1)</script>\u202e"
    raw("SET", name, "x")
    with exploring(redis_url, SPACES, garden.SAMPLE.bindings) as explored:
        page = explored.get(f"/key?name={quote(name)}").text
    assert "<script>alert" not in page
    # A copy button has the exact name, which is not shown.
    assert "\u202e" not in re.sub(r'data-copy="[^"]*"', "", page)
