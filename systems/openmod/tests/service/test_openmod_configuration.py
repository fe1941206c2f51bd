"""The configuration of Open Mod's service: a file, the environment, and invalid settings."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

import pytest

from keywright.errors import UsageError
from keywright_openmod.actions import LinkAction
from keywright_openmod.service.configuration import VARIABLES, ConfigurationError, installation, load

ENOUGH = {
    "OPENMOD_SUBREDDIT": "r/mysub",
    "OPENMOD_TARGET_SUBREDDIT": "mysub_log",
    "REDDIT_CLIENT_ID": "id",
    "REDDIT_CLIENT_SECRET": "very-secret",
    "REDDIT_USERNAME": "bot",
    "REDDIT_PASSWORD": "very-secret-too",
}

FILE = """
subreddit = "mysub"
watch = ["log"]
[reddit]
client_id = "id"
client_secret = "very-secret"
refresh_token = "very-secret-too"
[settings]
targetSubredit = "mysub_log"
moderationActions = ["removelink"]
excludedModerators = "Bob, alice"
[schedule]
poll = "2m"
backfill = "24h"
"""


def test_environment_variables_are_sufficient() -> None:
    found = load(environment=ENOUGH)
    assert (found.subreddit, found.installation.target_subreddit) == ("mysub", "mysub_log")
    assert (found.poll, found.backfill) == (timedelta(seconds=10), timedelta())
    assert found.watch == ("log", "posts", "comments", "edits")


def test_environment_variables_override_the_file(tmp_path: Path) -> None:
    path = tmp_path / "openmod.toml"
    path.write_text(FILE)
    found = load(path, {"OPENMOD_POLL": "5s", "OPENMOD_WATCH": "log, posts"})
    assert (found.poll, found.backfill) == (timedelta(seconds=5), timedelta(days=1))
    assert found.watch == ("log", "posts")
    assert found.installation.moderation_actions == {LinkAction.REMOVE_LINK}
    assert found.installation.excluded_moderators == {"bob", "alice"}


@pytest.mark.parametrize("name", ["my sub", "r/my:sub", "https://www.reddit.com/r/mysub"])
def test_an_invalid_subreddit_is_refused(name: str) -> None:
    with pytest.raises(UsageError, match="subreddit must be the name of a subreddit"):
        load(environment=ENOUGH | {"OPENMOD_SUBREDDIT": name})


def test_credentials_are_never_shown() -> None:
    assert "very-secret" not in repr(load(environment=ENOUGH))


@pytest.mark.parametrize("missing", ENOUGH)
def test_a_missing_setting_is_an_error_that_names_it(missing: str) -> None:
    given = {name: value for name, value in ENOUGH.items() if name != missing}
    with pytest.raises(UsageError) as refused:
        load(environment=given)
    assert refused.value.exit_code == 2
    assert f"Set {missing}" in str(refused.value)
    assert "very-secret" not in str(refused.value)


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("subredit = 'x'", "The nearest is subreddit"),
        ("schedule = 3", "is a table"),
        ("watch = ['everything']", "'everything' is not a feed"),
        ("watch = 3", "watch"),
        ("[schedule]\npol = '1s'", "The nearest is schedule.poll"),
        ("[schedule]\npoll = 'soon'", "not a duration"),
        ("[settings]\nmoderationActions = ['sing']", "'sing'"),
        ("[settings]\nexcludedUser = 'ann'", "The nearest is settings.excludedUsers"),
        ("subreddit = ", "is not TOML"),
    ],
)
def test_an_invalid_configuration_is_refused(tmp_path: Path, line: str, said: str) -> None:
    path = tmp_path / "openmod.toml"
    path.write_text(line)
    given = {name: value for name, value in ENOUGH.items() if "SUBREDDIT" not in name or "[" in line}
    with pytest.raises(UsageError, match=said.replace("[", r"\[")):
        load(path, given | {"OPENMOD_TARGET_SUBREDDIT": "mysub_log"})


def test_the_public_log_is_off_unless_its_address_is_set() -> None:
    assert load(None, ENOUGH).public_log.address is None
    assert load(None, ENOUGH, {"public_log.address": ":8091"}).public_log.address == ":8091"


@pytest.mark.parametrize(
    ("variables", "said"),
    [
        ({"OPENMOD_LOG_ADDRESS": "log.example.org"}, "public_log.address: cannot be 'log.example.org'"),
        (
            {"OPENMOD_LOG_ADDRESS": ":8091", "OPENMOD_HEALTH_ADDRESS": "0.0.0.0:8091"},
            "has the port of health",
        ),
        ({"OPENMOD_LOG_URL": "log.example.org"}, "public_log.url: is not an origin"),
        ({"OPENMOD_LOG_URL": "https://example.org/log"}, "public_log.url: is not an origin"),
    ],
)
def test_an_invalid_address_of_the_public_log_is_refused(variables: dict[str, str], said: str) -> None:
    with pytest.raises(ConfigurationError, match=said):
        load(None, ENOUGH | variables)


def test_a_missing_file_is_an_error_that_names_it(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match=r"none\.toml"):
        load(tmp_path / "none.toml", ENOUGH)


def test_settings_can_be_read_without_credentials(tmp_path: Path) -> None:
    path = tmp_path / "openmod.toml"
    path.write_text("[settings]\ntargetSubredit = 'mysub_log'\n")
    found = installation(path, {})
    assert found is not None
    assert found.target_subreddit == "mysub_log"
    assert installation(None, {}) is None


@pytest.mark.parametrize("variable", VARIABLES)
def test_the_documentation_names_every_variable_and_its_setting(variable: str) -> None:
    document = (Path(__file__).parents[2] / "docs" / "guide.md").read_text()
    rows = [line for line in document.splitlines() if line.startswith("| ") and variable in line]
    assert any(VARIABLES[variable][0] in row for row in rows)
