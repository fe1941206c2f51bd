"""Resources that only REST returns: stored normalised, listed, hydrated and dropped."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import msgspec
import pytest

from keywright.testing import Raw, Run
from keywright_discord.changes import Change
from keywright_discord.drc import rest, schema
from keywright_discord.drc.reader import DrcReader
from keywright_discord.drc.store import DrcCache
from keywright_discord.raw_json import PayloadError

from ..discord_sample import ANN, BEN, BOT, CAT, GUILD, Json, user

APPLICATION = "900"
stored = DrcReader(hydrate=False)
reader = DrcReader()


def store(run: Run, changes: Iterable[Change]) -> None:
    run(DrcCache().store(list(changes)))


def template(code: str = "code", **more: Any) -> Json:
    source = {"roles": [{"id": 0}], "channels": [{"id": 1, "user": {"id": "placeholder"}}]}
    return {
        "code": code,
        "creator": user(ANN),
        "source_guild_id": GUILD,
        "serialized_source_guild": source,
        **more,
    }


@pytest.mark.parametrize("encode", [msgspec.json.encode, dict], ids=["bytes", "dict"])
def test_commands_are_put_replaced_and_dropped(run: Run, encode: Any) -> None:
    store(run, rest.store_command(APPLICATION, encode({"id": "1", "name": "one"})))
    store(run, rest.store_command(APPLICATION, encode({"id": "2", "name": "two", "guild_id": GUILD})))
    assert set(run(stored.commands(APPLICATION))) == {"1", "2"}
    store(run, rest.drop_command(APPLICATION, "1"))
    assert run(stored.commands(APPLICATION)) == {"2": {"id": "2", "name": "two", "guild_id": GUILD}}
    store(run, rest.store_commands(APPLICATION, [encode({"id": "3"}), encode({"id": "4"})]))
    assert run(stored.commands(APPLICATION)) == {"3": {"id": "3"}, "4": {"id": "4"}}
    store(run, rest.store_commands(APPLICATION, []))
    assert run(stored.commands(APPLICATION)) == {}


def test_a_template_has_its_creator_as_an_id_and_its_source_as_it_was(run: Run) -> None:
    store(run, rest.store_template(template()))
    assert run(stored.template(GUILD, "code")) == {**template(), "creator": ANN}
    assert run(reader.template(GUILD, "code")) == template()
    store(run, rest.store_templates(GUILD, [template("new", creator=user(BEN))]))
    assert set(run(stored.templates(GUILD))) == {"new"}
    assert run(stored.user(BEN)) == user(BEN)
    store(run, rest.drop_template(GUILD, "new"))
    assert run(stored.templates(GUILD)) == {}


def test_a_webhook_has_its_user_as_an_id_and_keeps_its_token(run: Run) -> None:
    sent = {"id": "400", "type": 1, "user": user(ANN), "token": "in clear"}
    store(run, rest.store_webhook(sent))
    assert run(stored.webhook("400")) == {**sent, "user": ANN}
    assert run(reader.webhook("400")) == sent
    store(run, rest.drop_webhook("400"))
    assert run(stored.webhook("400")) is None


def test_rules_and_integrations_of_a_guild_are_replaced(run: Run) -> None:
    old, new = {"id": "1", "name": "old"}, {"id": "2", "name": "new"}
    for each in ([old], [new]):
        store(run, rest.store_automod_rules(GUILD, each))
        store(run, rest.store_integrations(GUILD, [{**each[0], "user": user(ANN)}]))
    assert run(stored.automod_rules(GUILD)) == {"2": new}
    assert run(stored.integrations(GUILD)) == {"2": {**new, "user": ANN}}
    assert run(reader.integration(GUILD, "2")) == {**new, "user": user(ANN)}


def test_a_list_of_integrations_that_may_be_cut_off_removes_none(run: Run) -> None:
    store(run, rest.store_integrations(GUILD, [{"id": "1"}]))
    store(run, rest.store_integrations(GUILD, [{"id": str(each)} for each in range(2, 52)]))
    assert len(run(stored.integrations(GUILD))) == 51


def test_an_application_has_its_people_as_ids(run: Run) -> None:
    team = {
        "id": "901",
        "members": [{"role": "admin", "user": user(BEN)}, {"role": "dev", "user": user(CAT)}],
    }
    sent = {"id": APPLICATION, "owner": user(ANN), "bot": user(BOT), "team": team}
    store(run, rest.store_application(sent))
    found = run(stored.application(APPLICATION))
    assert found is not None
    assert (found["owner"], found["bot"]) == (ANN, BOT)
    assert [each["user"] for each in found["team"]["members"]] == [BEN, CAT]
    assert run(reader.application(APPLICATION)) == sent
    store(run, rest.drop_application(APPLICATION))
    assert run(stored.application(APPLICATION)) is None


def test_an_invite_has_its_people_as_ids(run: Run) -> None:
    sent = {"code": "a:b", "guild": {"id": GUILD}, "inviter": user(ANN), "target_user": user(BEN)}
    store(run, rest.store_invite(sent))
    assert run(stored.invite("a:b")) == {**sent, "inviter": ANN, "target_user": BEN}
    assert run(reader.invite("a:b")) == sent
    store(run, rest.drop_invite("a:b"))
    assert run(stored.invite("a:b")) is None


def test_the_members_of_a_widget_are_nobodys_users(run: Run, raw: Raw) -> None:
    sent = {"id": GUILD, "members": [{"id": "0", "username": "anonymous"}]}
    store(run, rest.store_widget(GUILD, sent))
    assert run(stored.widget(GUILD)) == sent
    assert raw.names() == {b"keywright:v1json:widget:100"}
    store(run, rest.drop_widget(GUILD))
    assert raw.names() == set()


def test_a_welcome_screen_is_stored_as_it_is(run: Run) -> None:
    sent = {"description": None, "welcome_channels": [{"channel_id": "200"}]}
    store(run, rest.store_welcome_screen(GUILD, sent))
    assert run(stored.welcome_screen(GUILD)) == sent
    store(run, rest.drop_welcome_screen(GUILD))
    assert run(schema.WelcomeScreen(GUILD).exists()) is False


@pytest.mark.parametrize(
    "malformed",
    [
        lambda: rest.store_webhook(b"[]"),
        lambda: rest.store_webhook({"name": "no id"}),
        lambda: rest.store_template({"source_guild_id": GUILD}),
        lambda: rest.store_template({"code": "c"}),
        lambda: rest.store_command("x", {"id": "1"}),
        lambda: rest.store_invite({"code": ""}),
        lambda: rest.drop_invite(""),
        lambda: rest.drop_widget("01"),
    ],
)
def test_a_malformed_payload_changes_nothing(malformed: Any) -> None:
    with pytest.raises(PayloadError):
        malformed()
