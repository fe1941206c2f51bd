"""Every service has the same options, endpoints and precedence, and its guide names every setting."""

from __future__ import annotations

import tomllib
from pathlib import Path

import msgspec
import pytest

from invoking import invoke_keywright
from keywright_discord.gateway.configuration import READER as GATEWAY
from keywright_meetup.service.configuration import READER as MEETUP
from keywright_openmod.service.configuration import READER as OPENMOD
from keywright_registry.service.configuration import READER as REGISTRY
from keywright_service.configuration import SettingsReader
from keywright_service.configuration_listing import listed

ROOT = Path(__file__).parents[2]
SERVICES = {
    ("gateway", "run"): GATEWAY,
    ("meetup", "serve"): MEETUP,
    ("openmod", "serve"): OPENMOD,
    ("registry", "serve"): REGISTRY,
}
EVERY = pytest.mark.parametrize(("command", "reader"), SERVICES.items(), ids=[group for group, _ in SERVICES])


@EVERY
def test_every_service_has_the_same_options(command: tuple[str, str], reader: SettingsReader) -> None:
    shown = invoke_keywright(*command, "--help").stdout
    options = ("--url", "--embedded", "--config", "--set", "--show-config", "--log-level", "--log-format")
    assert [option for option in options if option not in shown] == []


@EVERY
def test_the_configuration_of_every_service_can_be_shown(
    command: tuple[str, str], reader: SettingsReader
) -> None:
    secret = reader.secrets[0]
    done = invoke_keywright(
        *command, "--set", f"{secret}=hunter2-is-the-secret", "--set", "log.level=warn", "--show-config"
    )
    shown = tomllib.loads(done.stdout)
    assert shown["log"] == {"level": "warn", "format": "text"}
    assert 'level = "warn"  # a flag' in done.stdout
    assert "hunter2" not in done.stdout + done.stderr


@EVERY
def test_the_guide_names_every_setting_and_variable(command: tuple[str, str], reader: SettingsReader) -> None:
    guide = (ROOT / reader.document).read_text()
    assert [name for name in reader.variables if name not in guide] == []
    lines = list(listed(reader, ()))
    settings, table = [], ""
    for line in lines[1:]:
        if line.startswith("["):
            table = f"{line.strip('[]')}."
        elif line:
            settings.append(table + line.removeprefix("# ").split(" ")[0])
    assert len(settings) > 8
    assert [name for name in settings if name not in guide] == []


@EVERY
def test_every_secret_is_a_setting(command: tuple[str, str], reader: SettingsReader) -> None:
    names = {field.name for field in msgspec.structs.fields(reader.shape)}
    assert {secret.partition(".")[0] for secret in reader.secrets} <= names


@EVERY
def test_a_misspelt_variable_is_refused_by_every_service(
    command: tuple[str, str], reader: SettingsReader, monkeypatch: pytest.MonkeyPatch
) -> None:
    name = next(iter(reader.variables))
    monkeypatch.delenv(name, raising=False)
    misspelt = name[:-2] + name[-1] + name[-2]
    monkeypatch.setenv(misspelt, "x")
    done = invoke_keywright(*command)
    assert (done.exit_code, f"The nearest is {name}" in done.stderr) == (2, True)
