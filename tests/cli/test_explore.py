"""`keywright explore` as a process."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path

import httpx
import pytest
import redis

from exploring import filled
from invoking import Invoke
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
            page = httpx.get(f"{address}/map", timeout=20).text
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
        page = httpx.get(f"{address_of(process)}/map", timeout=20).text
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=30)
    for space in ("drc", "spectacles", "openmod", "registry", "meetup"):
        assert re.search(rf'<h2 id="space-\d+">{space} ', page)


def test_the_models_are_shown_that_the_keys_are_of(redis_url: str) -> None:
    filled(redis_url, "meetup")
    with started("--port", "0", "--url", redis_url) as process:
        page = httpx.get(f"{address_of(process)}/map", timeout=20).text
        process.send_signal(signal.SIGTERM)
        _, said = process.communicate(timeout=30)
    assert said == "no MODEL is given, and most keys are of meetup\n"
    assert re.findall(r'<h2 id="space-\d+">(\w+) ', page) == ["meetup"]


def test_a_model_is_inferred_where_most_keys_are_of_none(redis_url: str) -> None:
    with redis.Redis.from_url(redis_url) as client:
        client.mset({f"parcel:{n}:weight": n for n in range(30)})
        for n in range(30):
            client.hset(
                f"parcel:{n}", mapping={"sent": 1_795_000_000 + n, "weight": "1.50", "kind": "letter"}
            )
    with started("--port", "0", "--url", redis_url) as process:
        address = address_of(process)
        page = httpx.get(f"{address}/", timeout=20).text
        parcel = httpx.get(f"{address}/key?name=parcel:7", timeout=20).text
        process.send_signal(signal.SIGTERM)
        _, said = process.communicate(timeout=30)
    assert "no MODEL is given, so one is inferred from the server" in said
    assert "/declaration.py" in page
    assert '<span class="v time">2026-11-18 11:06:47+00:00</span>' in parcel


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


NO_MODELS = """
import sys
from keywright.cli import app, explore
sys.modules["keywright.cli.explore"].model_names = lambda: []  # as where none is installed
sys.exit(app())
"""


@contextmanager
def started_without_models(*arguments: str) -> Iterator[subprocess.Popen[str]]:
    process = subprocess.Popen(
        [sys.executable, "-c", NO_MODELS, "explore", "--port", "0", *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        yield process
    finally:
        process.kill()
        process.communicate()


def test_without_any_model_an_inferred_one_is_shown_and_can_be_saved(redis_url: str) -> None:
    filled(redis_url, "meetup")
    with started_without_models("--url", redis_url) as process:
        saved = httpx.get(f"{address_of(process)}/declaration.py", timeout=20)
        process.send_signal(signal.SIGTERM)
        _, said = process.communicate(timeout=30)
    assert "no MODEL is given, so one is inferred from the server" in said
    assert "class MeetupEvent(" in saved.text


def test_without_a_model_one_is_inferred_for_each_database(redis_url: str) -> None:
    with redis.Redis.from_url(redis_url) as first, redis.Redis.from_url(f"{redis_url}?db=2") as third:
        first.mset({f"user:{number}:name": "x" for number in range(41)})
        third.mset({f"visits:{number}": number for number in range(43)})
    with started_without_models("--url", redis_url) as process:
        address = address_of(process)
        with httpx.Client(base_url=address, timeout=20) as browser:

            def shown(count: int) -> str:
                def page() -> str | None:
                    text = browser.get("/map").text
                    return text if f">{count}</td>" in text else None

                return wait_until(page, "the survey")

            before = shown(41)
            assert "user:&lt;user&gt;:name" in before
            assert 'href="/database/2">database 2' in before
            chosen = browser.get("/database/2")
            assert (chosen.status_code, chosen.headers["location"]) == (303, "/")
            after = shown(43)
            assert "visits:&lt;visit&gt;" in after
            assert "user:&lt;user&gt;:name" not in after
            assert browser.get("/key?name=visits:7").status_code == 200
            assert browser.get("/database/9").status_code == 404
        process.send_signal(signal.SIGTERM)
        _, said = process.communicate(timeout=30)
    assert "keys are in databases 0, 2" in said
    assert "no MODEL is given, so one is inferred from the server" in said
    assert process.returncode == 0


@pytest.mark.parametrize("option", [("--prefix", "eu"), ("--write",)])
def test_an_inferred_model_takes_no_prefix_and_no_repairs(
    option: tuple[str, ...], invoke: Invoke, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(import_module("keywright.cli.explore"), "model_names", list)
    done = invoke("explore", "--url", "redis://localhost", *option)
    assert done.exit_code == 2
    assert f"{option[0]} needs a MODEL, and none is installed" in done.stderr


def test_the_keyspaces_of_a_model_are_shown_by_database(redis_url: str) -> None:
    with redis.Redis.from_url(f"{redis_url}?db=2") as third:
        third.set("user:a", 5, ex=600)
    model = "numbered_spaces:people,numbered_spaces:pages"
    path = os.pathsep.join([str(Path(__file__).parent.parent), os.environ.get("PYTHONPATH", "")])
    with (
        started(model, "--port", "0", "--url", redis_url, PYTHONPATH=path) as process,
        httpx.Client(base_url=address_of(process), timeout=20) as browser,
    ):
        assert browser.get("/key?name=user:a").status_code == 404
        browser.get("/database/2")
        assert browser.get("/key?name=user:a").status_code == 200
