"""The bot's configuration: file and environment, and the messages about mistakes."""

from __future__ import annotations

from datetime import time, timedelta
from pathlib import Path
from typing import get_type_hints

import pytest

from keywright_meetup.service.configuration import PARTS, SECRETS, VARIABLES, ConfigurationError, load

WHOLE = """
discord_token = "Bot t0ken"
client_secret = "s3cret"

[discord]
guild = 1234567890123456789
campaign_category = "1234567890123456790"

[meetup]
groups = ["rpg-zurich"]

[oauth]
client_id = "us"

[pages]
public_url = "https://bot.example.org/"
address = ":9000"

[schedule]
expiry_at = "06:15"
"""


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "bot.toml"
    path.write_text(WHOLE)
    return path


def test_a_file_is_read_and_the_rest_has_defaults(file: Path) -> None:
    chosen = load(file, {})
    assert chosen.discord_token.reveal() == "t0ken"
    assert chosen.discord.guild == 1234567890123456789
    assert chosen.layout.categories == {"campaign": 1234567890123456790}
    assert chosen.listening == ("127.0.0.1", 9000)
    assert (chosen.sync_every, chosen.expiry_at) == (timedelta(minutes=15), time(6, 15))
    assert chosen.provider.scheme == "https"
    assert chosen.provider.offer_rsvp is False


def test_variables_win_over_the_file(file: Path) -> None:
    environment = {"DISCORD_GUILD": "5", "MEETUP_GROUPS": "a, b", "PAGES_ADDRESS": "[::1]:80"}
    chosen = load(file, environment)
    assert (chosen.discord.guild, chosen.meetup.groups) == (5, ["a", "b"])
    assert chosen.listening == ("::1", 80)


def test_no_secret_is_shown(file: Path) -> None:
    shown = repr(load(file, {"MEETUP_ACCESS_TOKEN": "acc3ss"}))
    assert not {secret for secret in ("t0ken", "s3cret", "acc3ss") if secret in shown}


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (("guild =", "gild ="), "discord.gild: is not a setting. The nearest is discord.guild"),
        (("[schedule]", "[scedule]"), "scedule: is not a setting. The nearest is schedule"),
        (('discord_token = "Bot t0ken"', ""), "Set DISCORD_TOKEN"),
        (('client_secret = "s3cret"', ""), "Set MEETUP_CLIENT_SECRET"),
        (('client_secret = "s3cret"', "client_secret = 5"), "client_secret: is not text"),
        (('groups = ["rpg-zurich"]', "groups = []"), "meetup.groups: is empty"),
        (('"https://bot.example.org/"', '"bot.example.org"'), "pages.public_url"),
        (('"https://bot.example.org/"', '"https://example.org/bot"'), "pages.public_url: has a path"),
        (('"https://bot.example.org/"', '"https://bot.example.org:x"'), "pages.public_url"),
        (('":9000"', '"here"'), "pages.address"),
        (("[schedule]", "[schedule]\nsync_minutes = nan"), "schedule.sync_minutes"),
        (("[schedule]", "[schedule]\nclean_minutes = inf"), "schedule.clean_minutes"),
        (("[schedule]", "[schedule]\nclean_minutes = 0"), "schedule.clean_minutes"),
        (('"06:15"', '"noon"'), "Write it as 18:30"),
        (("guild = 1234567890123456789", 'guild = "x"'), "[discord]"),
        (("[oauth]", "[oauth"), "is not TOML"),
    ],
)
def test_a_mistake_is_named_with_its_remedy(file: Path, change: tuple[str, str], says: str) -> None:
    file.write_text(WHOLE.replace(*change))
    with pytest.raises(ConfigurationError) as refused:
        load(file, {})
    assert says in str(refused.value)
    assert "s3cret" not in str(refused.value)


def test_a_token_that_cannot_be_sent_is_refused_and_not_quoted(file: Path) -> None:
    with pytest.raises(ConfigurationError, match=r"^discord_token: has characters") as refused:
        load(file, {"DISCORD_TOKEN": "t0k\nen"})
    assert "t0k" not in str(refused.value)


def test_a_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match=r"none\.toml"):
        load(tmp_path / "none.toml", {})


def test_a_number_that_is_none_is_refused(file: Path) -> None:
    with pytest.raises(ConfigurationError, match="DISCORD_GUILD: cannot be read"):
        load(file, {"DISCORD_GUILD": "five"})


def test_every_setting_and_variable_is_documented() -> None:
    documented = (Path(__file__).parents[2] / "docs" / "guide.md").read_text()
    settings = {f"{part}.{name}" for part, shape in PARTS.items() for name in get_type_hints(shape)}
    wanted = {*VARIABLES, *SECRETS, *settings}
    assert {name for name in wanted if f"`{name}`" not in documented} == set()
