"""`keywright explore` as a process."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx

from exploring import filled
from keywright.testing.conditions import wait_until


@contextmanager
def started(*arguments: str, **environment: str) -> Iterator[subprocess.Popen[str]]:
    process = subprocess.Popen(
        [sys.executable, "-m", "keywright", "explore", *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, **environment},
    )
    try:
        yield process
    finally:
        process.kill()
        process.communicate()


def refused(*arguments: str, **environment: str) -> tuple[int, str]:
    with started(*arguments, **environment) as process:
        _, said = process.communicate(timeout=60)
        return process.returncode, said


def address_of(process: subprocess.Popen[str]) -> str:
    assert process.stdout is not None
    line = process.stdout.readline()
    assert line.startswith("exploring at http://127.0.0.1:"), line
    return line.split()[-1]


def test_it_says_where_it_is_shows_the_map_and_ends_on_a_signal(redis_url: str) -> None:
    filled(redis_url, "meetup")
    with started("meetup", "drc", "--port", "0", "--url", redis_url) as process:
        address = address_of(process)

        def surveyed() -> str | None:
            page = httpx.get(address, timeout=20).text
            return page if ">40</td>" in page else None

        page = wait_until(surveyed, "the survey")
        process.send_signal(signal.SIGTERM)
        _, said = process.communicate(timeout=30)
    assert "MeetupEvent" in page
    assert "keywright:v1json:guilds" in page
    assert (process.returncode, said) == (0, "")


def test_it_shows_all_models_when_none_is_named(tmp_path: Path) -> None:
    server = ("--port", "0", "--embedded", str(tmp_path))
    code, said = refused(*server)
    assert code == 2, "names of the message streams may be those of any other model"
    assert "of spectacles-streams" in said
    with started(*server, "--unproved") as process:
        page = httpx.get(address_of(process), timeout=20).text
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=30)
    for space in ("drc", "spectacles", "openmod", "registry", "meetup"):
        assert f"<h2>{space}</h2>" in page


def test_it_refuses_to_be_open_to_everybody(redis_url: str) -> None:
    code, said = refused("meetup", "--host", "0.0.0.0", "--url", redis_url)
    assert code == 2
    assert "KEYWRIGHT_EXPLORER_TOKEN" in said


def test_a_public_address_needs_a_token(redis_url: str) -> None:
    code, said = refused("meetup", "--public-url", "https://keys.example.org", "--url", redis_url)
    assert code == 2
    assert "https://keys.example.org can be reached from outside" in said


def test_it_refuses_a_port_that_is_taken(redis_url: str) -> None:
    with started("meetup", "--port", "0", "--url", redis_url) as first:
        port = address_of(first).rpartition(":")[2]
        code, said = refused("meetup", "--port", port, "--url", redis_url)
    assert code == 2
    assert "cannot be listened on" in said


def test_it_says_when_the_server_cannot_be_reached() -> None:
    code, said = refused("meetup", "--port", "0", "--url", "redis://127.0.0.1:1")
    assert code == 3
    assert "cannot be reached" in said


def test_a_token_may_come_from_the_environment(redis_url: str) -> None:
    token = "a-token-of-the-environment"
    with started("meetup", "--port", "0", "--url", redis_url, KEYWRIGHT_EXPLORER_TOKEN=token) as process:
        address = address_of(process)
        without = httpx.get(address, timeout=20).status_code
        with_it = httpx.get(address, headers={"Authorization": f"Bearer {token}"}, timeout=20).status_code
    assert (without, with_it) == (401, 200)
