"""The files of `deploy/`: commands that parse, configurations that are valid, ports that fit together.

Docker is not needed: each command is run with `--show-config` on the file that the compose file mounts.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest
import yaml

from invoking import invoke_keywright
from keywright_discord.gateway.configuration import READER as GATEWAY
from keywright_meetup.service.configuration import READER as MEETUP
from keywright_openmod.service.configuration import READER as OPENMOD
from keywright_registry.service.configuration import READER as REGISTRY

ROOT = Path(__file__).parents[2]
DEPLOY = ROOT / "deploy"
COMPOSE: dict[str, Any] = yaml.safe_load((DEPLOY / "compose.yaml").read_text())
READERS = {"gateway": GATEWAY, "openmod": OPENMOD, "registry": REGISTRY, "meetup": MEETUP}
SECRETS = {
    "DISCORD_TOKEN": "MTIzNDU2Nzg5MDEyMzQ1Njc4.secret.secret",
    "KEYWRIGHT_REGISTRY_DATABASE": "postgresql://counts:secret@postgres/counts",
}
EVERY = pytest.mark.parametrize("service", READERS)


def variables(service: str) -> list[str]:
    lines = (DEPLOY / "config" / f"{service}.env.example").read_text().splitlines()
    return [line.partition("=")[0] for line in lines if line and not line.startswith("#")]


def unit(service: str) -> str:
    return (DEPLOY / "systemd" / f"keywright-{service}.service").read_text()


@EVERY
def test_the_command_accepts_its_file_and_its_secrets(service: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in READERS[service].variables:
        monkeypatch.delenv(name, raising=False)
    for name in variables(service):
        monkeypatch.setenv(name, SECRETS.get(name, "a long enough secret"))
    command = [
        str(DEPLOY / "config" / Path(part).name) if part.startswith("/") else part
        for part in COMPOSE["services"][service]["command"]
    ]
    done = invoke_keywright(*command, "--show-config")
    assert done.exit_code == 0, done.stderr
    assert "redis://redis:6379/0" in done.stdout
    assert "secret@" not in done.stdout


@EVERY
def test_secrets_are_in_the_environment_and_not_in_files(service: str) -> None:
    reader = READERS[service]
    known = {*reader.variables, "KEYWRIGHT_SEAL_KEYS"}
    assert set(variables(service)) <= known
    given = tomllib.loads((DEPLOY / "config" / f"{service}.toml").read_text())
    for secret in reader.secrets:
        table, _, name = secret.rpartition(".")
        assert name not in (given.get(table, {}) if table else given)
    lines = (DEPLOY / "config" / f"{service}.env.example").read_text().splitlines()
    assert [line for line in lines if not line.startswith("#") and not line.endswith("=")] == []


@EVERY
def test_the_probe_and_the_published_port_are_those_that_it_listens_on(service: str) -> None:
    given = tomllib.loads((DEPLOY / "config" / f"{service}.toml").read_text())
    addresses = [
        table["address"] for table in given.values() if isinstance(table, dict) and "address" in table
    ]
    ports = {address.rpartition(":")[2] for address in addresses}
    described = COMPOSE["services"][service]
    probe = " ".join(described["healthcheck"]["test"])
    assert re.findall(r"127\.0\.0\.1:(\d+)/ready", probe)[0] in ports
    for published in described.get("ports", ()):
        host, outside, inside = published.split(":")
        assert (host, outside in ports, inside in ports) == ("127.0.0.1", True, True)
    assert all(address.startswith("0.0.0.0:") for address in addresses), "in a container loopback is its own"


def test_of_open_mod_only_the_public_log_is_published() -> None:
    given = tomllib.loads((DEPLOY / "config" / "openmod.toml").read_text())
    pages, health = (given[part]["address"].rpartition(":")[2] for part in ("public_log", "health"))
    assert COMPOSE["services"]["openmod"]["ports"] == [f"127.0.0.1:{pages}:{pages}"]
    assert pages != health


@EVERY
def test_what_a_service_mounts_and_waits_for_exists(service: str) -> None:
    described = COMPOSE["services"][service]
    for mounted in described["volumes"]:
        source, target, mode = mounted.split(":")
        assert (DEPLOY / source).is_file()
        assert (target in described["command"], mode) == (True, "ro")
    (environment,) = described["env_file"]
    assert (DEPLOY / f"{environment}.example").is_file()
    assert set(described["depends_on"]) <= set(COMPOSE["services"])
    for name in described["depends_on"]:
        profiles = COMPOSE["services"][name].get("profiles", described["profiles"])
        assert set(described["profiles"]) <= set(profiles)


@EVERY
def test_the_unit_runs_the_same_command(service: str) -> None:
    line = re.search(r"^ExecStart=/opt/keywright/bin/keywright (.*)$", unit(service), re.MULTILINE)
    assert line is not None
    assert line[1].split() == COMPOSE["services"][service]["command"]
    assert f"EnvironmentFile=/etc/keywright/{service}.env" in unit(service)
    assert "RestartPreventExitStatus=2" in unit(service)


@EVERY
@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="systemd is not installed")
def test_systemd_accepts_the_unit(service: str, tmp_path: Path) -> None:
    installed = Path(sys.executable).parent / "keywright"
    copy = tmp_path / f"keywright-{service}.service"
    copy.write_text(unit(service).replace("/opt/keywright/bin/keywright", str(installed)))
    done = subprocess.run(
        ["systemd-analyze", "verify", "--man=no", str(copy)],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    complaints = [line for line in done.stderr.splitlines() if copy.name in line]
    assert (done.returncode, complaints) == (0, [])


def test_the_image_installs_every_system_with_extras_that_exist() -> None:
    text = (DEPLOY / "Dockerfile").read_text()
    systems = {path.parent.name for path in ROOT.glob("systems/*/pyproject.toml")}
    assert set(re.findall(r"systems/(\w+)", text)) >= systems
    for name in systems:
        assert f"keywright_{name}-" in text
    for name, extras in re.findall(r"/wheels/keywright(\w*)-\*\.whl\)\[([\w,]+)\]", text):
        folder = ROOT / "systems" / name.strip("_") if name else ROOT
        declared = tomllib.loads((folder / "pyproject.toml").read_text())["project"]["optional-dependencies"]
        assert set(extras.split(",")) <= set(declared)
    for source in re.findall(r"(?m)^COPY (?!--)(.*) \S+$", text):
        for each in source.split():
            assert (ROOT / each).exists()


def test_every_image_has_a_version() -> None:
    for name, described in COMPOSE["services"].items():
        if name not in READERS:
            assert re.search(r":\d", described["image"]), name


def test_the_compose_file_is_what_the_page_says() -> None:
    page = (DEPLOY / "README.md").read_text()
    for service in READERS:
        assert f"config/{service}.env.example" in page
        assert f"`keywright {' '.join(COMPOSE['services'][service]['command'][:2])}`" in page
