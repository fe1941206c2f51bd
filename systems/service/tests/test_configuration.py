"""Configuration: a file, the environment over it, and secrets that no error and no repr shows."""

from __future__ import annotations

import tomllib
from datetime import timedelta
from pathlib import Path
from typing import Any

import msgspec
import pytest

from keywright.errors import UsageError
from keywright_service.configuration import (
    ConfigurationError,
    Part,
    RedisPart,
    ServerPart,
    SettingsReader,
    Variables,
    duration,
    host_and_port,
    names,
    take_secrets,
)
from keywright_service.configuration_listing import listed


class Schedule(Part, frozen=True, kw_only=True):
    minutes: int = 15


class Sample(msgspec.Struct, kw_only=True):
    token: str = ""
    groups: list[str] = []
    redis: RedisPart = RedisPart()
    schedule: Schedule = Schedule()


VARIABLES: Variables = {
    "SAMPLE_TOKEN": ("token", str),
    "SAMPLE_GROUPS": ("groups", names),
    "SAMPLE_MINUTES": ("schedule.minutes", int),
    "REDIS_URL": ("redis.url", str),
}
READER = SettingsReader(Sample, VARIABLES, "docs/sample.md", secrets=("token",), prefix="SAMPLE_")


def given(folder: Path, text: str, **environment: str) -> dict[str, Any]:
    (folder / "sample.toml").write_text(text)
    return READER.given(folder / "sample.toml", environment)


def test_the_environment_wins_over_the_file(tmp_path: Path) -> None:
    text = "groups = ['a']\n[schedule]\nminutes = 5\n[redis]\nprefix = 'p'\n"
    found = given(tmp_path, text, SAMPLE_MINUTES=" 7 ", SAMPLE_GROUPS="b, c,", REDIS_URL="redis://here")
    assert READER.convert(found, Sample, "the configuration") == Sample(
        groups=["b", "c"], redis=RedisPart(url="redis://here", prefix="p"), schedule=Schedule(minutes=7)
    )


def test_a_flag_wins_over_the_environment(tmp_path: Path) -> None:
    (tmp_path / "sample.toml").write_text("groups = ['a']\n[schedule]\nminutes = 5\n")
    flags = {"schedule.minutes": "9", "groups": "x,y", "redis.prefix": "p:q", "redis.url": "redis://there"}
    environment = {"SAMPLE_MINUTES": "7", "REDIS_URL": "redis://here"}
    found = READER.given(tmp_path / "sample.toml", environment, flags)
    assert READER.convert(found, Sample, "the configuration") == Sample(
        groups=["x", "y"],
        redis=RedisPart(url="redis://there", prefix="p:q"),
        schedule=Schedule(minutes=9),
    )


@pytest.mark.parametrize(
    ("flag", "said"),
    [
        ("schedule.minuts", "schedule.minuts: is not a setting. The nearest is schedule.minutes;"),
        ("schedule", "schedule: is a table."),
        ("tokn", "tokn: is not a setting. The nearest is token;"),
    ],
)
def test_a_flag_for_an_unknown_setting_is_refused(flag: str, said: str) -> None:
    with pytest.raises(ConfigurationError) as refused:
        READER.given(None, {}, {flag: "1"})
    assert said in str(refused.value)


@pytest.mark.parametrize(
    ("environment", "said"),
    [
        (
            {"SAMPLE_TOKN": "x"},
            "is not a variable of this service. The nearest is SAMPLE_TOKEN;",
        ),
        ({"SAMPLE_COLOUR": "x"}, "SAMPLE_COLOUR: is not a variable of this service."),
        ({"REDIS_ULR": "x"}, "REDIS_ULR: is not a variable of this service. The nearest is REDIS_URL;"),
    ],
)
def test_a_misspelt_variable_is_refused_with_the_nearest(environment: dict[str, str], said: str) -> None:
    with pytest.raises(ConfigurationError) as refused:
        READER.given(None, environment)
    assert said in str(refused.value)


@pytest.mark.parametrize(
    "environment",
    [
        {"PATH": "/bin", "DISCORD_TOKEN": "x"},
        {"REDIS_URL": "redis://here", "REDIS_URI": "that of another program"},
        {"SAMPLE_SERVICE_HOST": "10.0.0.1", "SAMPLE_PORT_80_TCP_ADDR": "10.0.0.1", "SAMPLE_PORT": "tcp://x"},
    ],
    ids=["others", "beside the right one", "Kubernetes"],
)
def test_variables_of_other_programs_are_ignored(environment: dict[str, str]) -> None:
    assert "token" not in READER.given(None, environment)


def test_the_listing_has_every_setting_and_where_it_was_given(tmp_path: Path) -> None:
    (tmp_path / "sample.toml").write_text("token = 'secret'\ngroups = ['a', 'ü\"']\n")
    environment = {"REDIS_URL": "redis://user:pass@word@here/1"}
    settings = READER.settings(tmp_path / "sample.toml", environment, {"schedule.minutes": "9"})
    text = "\n".join(listed(READER, settings))
    assert text.splitlines()[1:] == [
        f'token = "***"  # {tmp_path}/sample.toml',
        f'groups = ["a", "ü\\""]  # {tmp_path}/sample.toml',
        "",
        "[redis]",
        'url = "redis://…@here/1"  # REDIS_URL',
        "# prefix is not set",
        "",
        "[schedule]",
        "minutes = 9  # a flag",
    ]
    assert tomllib.loads(text)["schedule"] == {"minutes": 9}


def test_the_listing_of_nothing_is_the_defaults() -> None:
    assert list(listed(READER, READER.settings(None, {})))[1:3] == [
        "# token is not set",
        "groups = []  # default",
    ]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("tokn = 'x'", "tokn: is not a setting. The nearest is token; see docs/sample.md."),
        ("[schedule]\nminuts = 3", "schedule.minuts: is not a setting. The nearest is schedule.minutes;"),
        ("redis = 'redis://here'", r"redis: is a table. Write it as [redis]."),
        ("token = ", "is not TOML"),
    ],
)
def test_what_cannot_be_understood_is_named_with_the_remedy(tmp_path: Path, text: str, said: str) -> None:
    with pytest.raises(ConfigurationError) as refused:
        given(tmp_path, text)
    assert said in str(refused.value)


def test_a_value_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match=r"^SAMPLE_MINUTES: cannot be read .*See docs/sample\.md\.$"):
        READER.given(None, {"SAMPLE_MINUTES": "many"})
    with pytest.raises(ConfigurationError, match=r"the configuration: .*schedule\.minutes"):
        READER.convert(given(tmp_path, "[schedule]\nminutes = 'x'"), Sample, "the configuration")
    with pytest.raises(ConfigurationError, match=r"none\.toml: cannot be read"):
        READER.given(tmp_path / "none.toml", {})


@pytest.mark.parametrize("part", [ServerPart, RedisPart])
@pytest.mark.parametrize("password", ["hunter2", "a@b", "sl/ash", "it's", 'sa"id', "b'o\"th", "back\\slash"])
def test_a_password_in_an_address_is_not_shown(part: type[ServerPart], password: str) -> None:
    shown = repr(part(url=f"redis://bot:{password}@127.0.0.1:6379/0"))
    assert password not in shown
    assert "127.0.0.1:6379/0" in shown


def test_secrets_are_removed_from_what_is_converted() -> None:
    found = {"token": "hush", "reddit": {"password": " ", "client_id": "id"}}
    secrets = take_secrets(found, "token", "reddit.password", "reddit.refresh_token", "other.token")
    assert found == {"reddit": {"client_id": "id"}}
    assert {name: secret.reveal() for name, secret in secrets.items()} == {"token": "hush"}
    assert "hush" not in repr(secrets)


def test_a_secret_that_is_not_text_is_refused_without_being_shown() -> None:
    with pytest.raises(ConfigurationError, match=r"^reddit\.password: is not text\. Write it in quotes\.$"):
        take_secrets({"reddit": {"password": 12345}}, "reddit.password")


@pytest.mark.parametrize(
    ("text", "seconds"), [("2m", 120), ("90s", 90), ("1h30m", 5400), ("500ms", 0.5), ("1.5s", 1.5)]
)
def test_durations(text: str, seconds: float) -> None:
    assert duration(text) == timedelta(seconds=seconds)


@pytest.mark.parametrize(
    "text", ["", "0s", "-1s", "2", "m", "1d", "1s 2s", "0.0000001ms", "99999999999h", "9" * 400 + "h"]
)
def test_what_is_not_a_duration_is_an_error(text: str) -> None:
    with pytest.raises(UsageError, match="is not a duration"):
        duration(text)


def test_an_address_without_a_host_is_loopback() -> None:
    assert host_and_port("health.address", ":8080") == ("127.0.0.1", 8080)
    assert host_and_port("health.address", "0.0.0.0:80") == ("0.0.0.0", 80)
    assert host_and_port("health.address", "[::1]:80") == ("::1", 80)
    for wrong in ("", "localhost", "localhost:http", ":99999", ":" + "9" * 5000):
        with pytest.raises(UsageError, match=r"health\.address: .*host:port"):
            host_and_port("health.address", wrong)
