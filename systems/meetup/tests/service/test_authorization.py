"""An organizer authorizes the bot: first, and again when its tokens are revoked or lost."""

from __future__ import annotations

from urllib.parse import parse_qs, urlsplit

import httpx
import pytest
from typer.testing import CliRunner, Result

from keywright import Secret, connect
from keywright.testing import Raw, wait_until
from keywright_meetup import tokens
from keywright_meetup.commands.meetup import meetup
from keywright_meetup.errors import RefusedChangeError
from keywright_meetup.service.token_refresh import TokenRefresher
from keywright_service.errors import PlatformRefusedError

from ..meetup_bots import RunningBot, Surroundings

NO_TOKENS = {"MEETUP_ACCESS_TOKEN": "", "MEETUP_REFRESH_TOKEN": ""}


def invoked(around: Surroundings, *arguments: str, stdin: str = "", **environment: str) -> Result:
    variables = around.environment(**NO_TOKENS | environment)
    return CliRunner().invoke(meetup, ["authorize", *arguments], env=variables, input=stdin)


def without_tokens(around: Surroundings, health_token: str = "") -> RunningBot:
    return RunningBot(
        around, MEETUP_ACCESS_TOKEN="", MEETUP_REFRESH_TOKEN="", MEETUP_HEALTH_TOKEN=health_token
    )


def consented(around: Surroundings, address: str, answer: str = "allow") -> str:
    """Return the address that Meetup sends the browser of an organizer to."""
    around.meetup.oauth.signed_in = around.meetup.world.join("Olga Organizer")
    return str(httpx.post(address, data={"answer": answer}).headers["Location"])


def test_an_organizer_authorizes_a_bot_that_has_no_tokens(around: Surroundings, raw: Raw) -> None:
    around.announce()
    with without_tokens(around) as bot:
        assert httpx.get(f"{bot.url}/health").json()["authorization_needed"] is True
        printed = invoked(around, PAGES_URL=bot.url)
        assert printed.exit_code == 0
        done = httpx.get(consented(around, printed.stdout.strip()))
        assert done.headers["Location"] == "/link/outcome/authorized"
        page = httpx.get(f"{bot.url}/link/outcome/authorized")
        assert "The bot is authorized" in page.text
        assert httpx.get(f"{bot.url}/health").json()["authorization_needed"] is False
    holder = around.meetup.oauth.holder(raw("GET", "meetup_access_token").decode())
    assert holder is not None
    assert around.meetup.world.members[holder] == "Olga Organizer"
    assert around.meetup.oauth.refreshable(raw("GET", "meetup_refresh_token").decode())


def test_an_authorization_works_once_and_only_if_the_command_began_it(around: Surroundings, raw: Raw) -> None:
    with without_tokens(around) as bot:
        back = consented(around, invoked(around, PAGES_URL=bot.url).stdout.strip())
        assert httpx.get(back).status_code == 303
        stored = raw("GET", "meetup_refresh_token")
        again = httpx.get(back)
        state = parse_qs(urlsplit(back).query)["state"][0].split(".")
        forged = httpx.get(f"{bot.url}/link/redirect?code=x&state={state[0]}x.organizer.{state[2]}")
        assert (again.status_code, forged.status_code) == (400, 400)
        assert "The bot was not authorized" in again.text
        assert raw("GET", "meetup_refresh_token") == stored


def test_an_organizer_who_says_no_changes_nothing(around: Surroundings, raw: Raw) -> None:
    with without_tokens(around) as bot:
        back = consented(around, invoked(around, PAGES_URL=bot.url).stdout.strip(), "deny")
        assert httpx.get(back).status_code == 400
    assert raw("EXISTS", "meetup_refresh_token") == 0


def test_the_command_finishes_an_authorization_where_the_pages_cannot_be_reached(
    around: Surroundings, raw: Raw
) -> None:
    raw("SET", "meetup_access_token", "revoked")
    raw("SET", "meetup_refresh_token", "revoked")
    back = consented(around, invoked(around).stdout.strip())
    done = invoked(around, "--finish", stdin=f"{back}\n")
    assert done.exit_code == 0, done.output
    assert done.stdout.startswith("Authorized by Olga Organizer (Meetup member ")
    assert around.meetup.oauth.refreshable(raw("GET", "meetup_refresh_token").decode())
    again = invoked(around, "--finish", stdin=back)
    assert isinstance(again.exception, RefusedChangeError)
    assert again.exception.exit_code == 1


def test_new_tokens_of_the_configuration_take_the_place_of_dead_ones(around: Surroundings, raw: Raw) -> None:
    """They were ignored while the database had others."""
    around.announce()
    raw("SET", "meetup_access_token", "revoked")
    raw("SET", "meetup_refresh_token", "revoked")
    with RunningBot(around) as bot:
        wait_until(lambda: len(around.discord.guild.made_roles) == 2, "a sync with the new tokens")
        assert httpx.get(f"{bot.url}/health").json()["authorization_needed"] is False
    assert around.meetup.oauth.refreshable(raw("GET", "meetup_refresh_token").decode())


def test_dead_tokens_are_reported_with_the_command_that_helps(around: Surroundings) -> None:
    with connect(around.redis_url) as db:
        with RunningBot(around):
            wait_until(lambda: around.meetup.oauth.refreshes == 1, "tokens that are refreshed")
        around.meetup.oauth.revoke()
        with without_tokens(around, health_token="a-long-random-token") as bot:

            def sync_trouble() -> str:
                headers = {"Authorization": "Bearer a-long-random-token"}
                health = httpx.get(f"{bot.url}/health", headers=headers).json()
                (found,) = (each["trouble"] for each in health["tasks"] if each["name"] == "sync")
                return str(found or "")

            assert "Run keywright meetup authorize" in wait_until(sync_trouble, "trouble that is reported")
            assert httpx.get(f"{bot.url}/health").json()["authorization_needed"] is True
            db.run(tokens.store_organizer(*_granted(around), around.clock()))
            assert httpx.get(f"{bot.url}/health").json()["authorization_needed"] is False


def _granted(around: Surroundings) -> tuple[Secret[str], Secret[str]]:
    access, refresh = around.meetup.oauth.grant(around.meetup.world.join("Another organizer"))
    return Secret(access), Secret(refresh)


@pytest.mark.anyio
@pytest.mark.parametrize("configured", [True, False], ids=["configured", "not configured"])
async def test_a_lost_refresh_token_is_taken_from_the_configuration_or_asked_for(
    around: Surroundings, raw: Raw, configured: bool
) -> None:
    async with around.opened() as opened:
        raw("DEL", "meetup_refresh_token")
        _, refresh = _granted(around)
        refresher = TokenRefresher(
            opened.db, opened.oauth, around.clock, configured=refresh if configured else None
        )
        assert await refresher.needs_authorization() is not configured
        if configured:
            assert await refresher.refresh_now()
            assert around.meetup.oauth.refreshable(raw("GET", "meetup_refresh_token").decode())
        else:
            with pytest.raises(RefusedChangeError, match="keywright meetup authorize"):
                await refresher.refresh_now()


@pytest.mark.anyio
async def test_configured_tokens_are_kept_where_meetup_does_not_rotate_them(
    around: Surroundings, raw: Raw
) -> None:
    around.meetup.oauth.rotate = False
    async with around.opened() as opened:
        raw("SET", "meetup_refresh_token", "revoked")
        _, refresh = _granted(around)
        refresher = TokenRefresher(opened.db, opened.oauth, around.clock, configured=refresh)
        assert await refresher.refresh_now()
    assert raw("GET", "meetup_refresh_token") == refresh.reveal().encode()


@pytest.mark.anyio
async def test_an_outage_is_not_taken_for_dead_tokens(around: Surroundings) -> None:
    async with around.opened() as opened:
        refresher = opened.refresher
        around.meetup.faults.fail("/oauth2/access", 403, times=9)  # a proxy, say
        with pytest.raises(PlatformRefusedError):
            await refresher.refresh_now()
        assert await refresher.needs_authorization() is False
