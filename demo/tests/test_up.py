"""`keywright up` as a process: live data of every model, and nothing left behind however it ends."""

from __future__ import annotations

import os
import re
import signal
import socket
import urllib.error
import urllib.request
from pathlib import Path

import pytest

from invoking import Invoke
from keywright import check, connect
from keywright.testing import RedisServer, wait_until
from keywright_demo import names
from keywright_demo.explorer import bindings_of
from keywright_demo.options import MODELS
from keywright_discord.drc.schema import Guild
from keywright_discord.spectacles.schema import Guilds, spectacles
from keywright_meetup.schema import meetup
from keywright_openmod.schema import openmod
from keywright_registry.schema import registry

from .running_up import PATIENCE, RunningUp, running_up, started

SMALL = ("--only", "spectacles", "--no-explorer")


def opened(address: str) -> str:
    with urllib.request.urlopen(address, timeout=10) as answer:
        assert answer.status == 200
        return str(answer.read().decode())


def surveyed_keys(page: str) -> int:
    found = re.search(r'class="figure">([\d,]+)</span> keys', page)
    assert found is not None, page
    return int(found[1].replace(",", ""))


def assert_every_model_has_data(url: str) -> None:
    with connect(url, *bindings_of(MODELS)) as db:

        def stored() -> bool:
            counts = [sum(1 for _ in db.names(space)) for space in (spectacles, registry, openmod, meetup)]
            return len(list(db.scan(Guild))) >= 30 and all(counts)

        wait_until(stored, "keys of every model", seconds=PATIENCE)


def test_the_models_of_one_server_share_no_name() -> None:
    found = check(*bindings_of([*MODELS, "bookshop"]))
    assert [finding for finding in found if finding.severity == "error"] == []


def test_every_model_has_live_data_and_ctrl_c_leaves_nothing_behind(tmp_path: Path) -> None:
    with running_up(tmp_path, "--port", "0") as up:
        address = up.printed(r"Keywright is up: (http://\S+)")[1]
        log = up.printed(r"(http://\S+) +the public moderation log of Open Mod")[1]
        tour = up.printed(r"Begin here: (http://\S+/tour) ")[1]
        assert "Moderation log of <bdi>r/mysub</bdi>" in opened(log)
        folder = up.folder()
        up.printed(r"[1-9][\d,]* handled · [\d,]+ keys · [\d.]+ MB · 12 processes up\n")
        assert_every_model_has_data(f"unix://{folder / 'redis.sock'}")
        wait_until(lambda: surveyed_keys(opened(address)) > 1000, "a map of more than a thousand keys")
        assert "writes allowed" in opened(tour)
        assert "Break it</button>" in opened(tour)
        assert "sample-discord:v1json:guilds:" in opened(f"{address}/map")
        up.signal(signal.SIGINT)
        assert up.ended() == 0, up.output
        assert "DOWN" not in up.output
        assert up.left_nothing(folder)
        served = re.findall(r"^ +http://\S+ +(.+)$", up.output, re.MULTILINE)
        assert [each.split(":")[0] for each in served] == [
            "the simulated Discord",
            "what the gateway receives and publishes, for Prometheus",
            "the repositories of the container registry, as JSON",
            "the public moderation log of Open Mod",
            "the simulated Reddit",
            "the Meetup bot",
            "the simulated Meetup",
        ]


def test_a_killed_supervisor_leaves_nothing_behind(tmp_path: Path) -> None:
    with running_up(tmp_path, *SMALL) as up:
        up.printed(r"2 processes up\n")
        folder = up.folder()
        up.signal(signal.SIGKILL)
        up.ended()
        wait_until(lambda: up.left_nothing(folder), "the end of all processes, and of the folder")


def test_closing_the_terminal_stops_everything(tmp_path: Path) -> None:
    terminal, inside = os.openpty()
    with open(inside, "wb") as printed:
        process = started(printed, SMALL, {"TERM": "xterm", "COLUMNS": "200"})
    try:
        up, shown = RunningUp(process, tmp_path / "output"), b""
        while b"2 processes up" not in shown:
            shown += os.read(terminal, 4096)
        folder = up.folder()
        os.close(terminal)
        up.signal(signal.SIGHUP)
        up.ended()
        assert up.left_nothing(folder)
    finally:
        process.kill()
        process.wait()


def test_a_process_that_dies_is_reported_with_its_log_and_fails_the_run(tmp_path: Path) -> None:
    with running_up(tmp_path, *SMALL, "--logs", str(tmp_path / "logs")) as up:
        up.printed(r"2 processes up\n")
        os.kill(up.child("spectacles_feeder"), signal.SIGKILL)
        up.printed(r"the spectacles feeder ended with exit code -9\. Its log ends with:\n    ready\n")
        up.printed(r"1 process up · DOWN: spectacles feeder")
        up.signal(signal.SIGTERM)
        assert up.ended() == 1
    assert (tmp_path / "logs" / "spectacles-feeder.log").read_text() == "ready\n"


def test_everything_stops_if_the_embedded_redis_dies(tmp_path: Path) -> None:
    with running_up(tmp_path, *SMALL) as up:
        up.printed(r"2 processes up\n")
        folder = up.folder()
        os.kill(up.child("redis"), signal.SIGKILL)
        up.printed(r"the Redis server ended\.")
        assert up.ended() == 1
        assert up.left_nothing(folder)


def test_a_real_server_with_keys_is_refused_and_not_changed(
    tmp_path: Path, redis_url: str, keywright_server: RedisServer
) -> None:
    keywright_server.call("SET", "precious", "1")
    with running_up(tmp_path, *SMALL, "--url", redis_url) as up:
        assert up.ended() == 2
        assert "has 1 key, and" in up.output
        assert "--yes" in up.output
    assert keywright_server.call("DBSIZE") == 1


def test_with_yes_samples_are_written_beside_the_keys_of_a_real_server_and_stay_there(
    tmp_path: Path, redis_url: str, keywright_server: RedisServer
) -> None:
    keywright_server.call("SET", "precious", "1")
    with running_up(tmp_path, *SMALL, "--yes", "--url", redis_url) as up:
        up.printed(r"1 process up\n")
        up.signal(signal.SIGTERM)
        assert up.ended() == 0
        assert "Stopped; the samples on real servers stay there." in up.output
    written = keywright_server.call("KEYS", "*")
    assert isinstance(written, list)
    assert len(written) > 1
    prefix = names.SPECTACLES.encode()
    assert all(isinstance(name, bytes) and name.startswith((prefix, b"precious")) for name in written)
    assert keywright_server.call("GET", "precious") == b"1"


def test_on_a_real_server_the_explorer_is_read_only_and_has_no_tour(
    tmp_path: Path, redis_url: str, keywright_server: RedisServer
) -> None:
    with running_up(tmp_path, "--only", "spectacles", "--port", "0", "--url", redis_url) as up:
        address = up.printed(r"Begin here: (http://\S+)  every model with its keys, read-only")[1]
        start = opened(address)
        with pytest.raises(urllib.error.HTTPError, match="404"):
            opened(f"{address}/tour")
        up.signal(signal.SIGTERM)
        assert up.ended() == 0
    assert "read-only</span>" in start
    assert 'href="/tour"' not in start
    assert keywright_server.call("KEYS", f"{names.TOUR}:*") == []


def test_the_server_of_redis_url_is_not_written_to(
    tmp_path: Path, redis_url: str, keywright_server: RedisServer
) -> None:
    with running_up(tmp_path, *SMALL, REDIS_URL=redis_url) as up:
        url = up.printed(r"Redis is at (unix://\S+)")[1]
        up.printed(r"2 processes up\n")
        with connect(url, *bindings_of(["spectacles"])) as db:
            assert db.run(Guilds().size())
        up.signal(signal.SIGTERM)
        assert up.ended() == 0
    assert keywright_server.call("DBSIZE") == 0


def test_it_stops_after_its_duration(tmp_path: Path) -> None:
    with running_up(tmp_path, *SMALL, "--duration", "0.1") as up:
        assert up.ended() == 0
        assert "Stopped; nothing is left behind." in up.output


def test_a_folder_for_logs_that_cannot_be_written_is_refused(invoke: Invoke, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("no folder")
    result = invoke("up", *SMALL, "--logs", str(tmp_path / "file" / "logs"))
    assert result.exit_code == 2
    assert "Name another folder." in result.output


def test_a_port_in_use_is_refused_before_anything_starts(invoke: Invoke) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        result = invoke("up", "--port", str(taken.getsockname()[1]))
    assert result.exit_code == 2
    assert "Choose another --port" in result.output


@pytest.mark.parametrize("option", ["--only", "--without"])
def test_an_unknown_model_is_refused_with_the_list_of_models(invoke: Invoke, option: str) -> None:
    result = invoke("up", option, "drc,reddit")
    assert result.exit_code == 2
    assert "'reddit'" in result.output
    assert "openmod" in result.output


def test_omitting_every_model_is_refused(invoke: Invoke) -> None:
    result = invoke("up", "--without", ",".join(MODELS))
    assert result.exit_code == 2
    assert "no model is left" in result.output
