"""The authorization of the bot by an organizer, from which its tokens come, also once others are revoked.

An operator starts it with a command, and opens the address that it prints. Meetup sends the browser back to
the pages of the bot, or the operator passes that address to the command. The state of the flow is stored, so
it works once, for an hour, and only if the command made it.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from datetime import datetime
from urllib.parse import parse_qs, urlsplit

from keywright import AsyncDatabase
from keywright.errors import VariableError
from keywright_meetup import account_links, tokens
from keywright_meetup.errors import RefusedChangeError
from keywright_meetup.schema import new_id
from keywright_meetup.service.meetup_api import MeetupApi, Member
from keywright_meetup.service.oauth import Flow, OAuthClient

__all__ = ["OrganizerAuthorization"]

log = logging.getLogger("keywright.meetup")

AGAIN = "Run keywright meetup authorize again."


class OrganizerAuthorization:
    def __init__(
        self, db: AsyncDatabase, oauth: OAuthClient, meetup: MeetupApi, clock: Callable[[], datetime]
    ) -> None:
        self._db = db
        self._oauth = oauth
        self._meetup = meetup
        self._clock = clock

    async def begin(self) -> str:
        """Return the address at Meetup that an organizer opens."""
        flow = Flow.new(new_id(), "organizer")
        await self._db.run(account_links.keep_csrf(flow.linking, flow.state))
        return self._oauth.authorization(flow)

    async def finish(self, address: str) -> Member:
        """Store the tokens for the answer of Meetup, which is in the address it sends the browser to.

        Return the organizer. Raise RefusedChangeError if the address is none of ours or was used before, if
        they said no, or if Meetup grants no refresh token, without which the tokens would expire soon.
        """
        given = parse_qs(urlsplit(address).query)
        flow, code = Flow.of(given.get("state", [""])[0]), given.get("code", [""])[0]
        if flow is None or flow.purpose != "organizer" or not await self._redeemed(flow):
            reason = "is not of an authorization that is under way"
            raise RefusedChangeError("the address", reason, AGAIN)
        if not code:
            reason = f"has no code, but {given.get('error', ['no error'])[0]!r}"
            raise RefusedChangeError("the answer of Meetup", reason, AGAIN)
        granted = await self._oauth.exchange(flow, code)
        if granted.refresh_token is None:
            remedy = "Check the client's settings at Meetup."
            raise RefusedChangeError("the answer of Meetup", "has no refresh token", remedy)
        member = await self._meetup.self_member(granted.access_token)
        due = self._clock() + tokens.REFRESH_EVERY
        await self._db.run(tokens.store_organizer(granted.access_token, granted.refresh_token, due))
        log.info("authorized by Meetup member %d", member.id)
        return member

    async def _redeemed(self, flow: Flow) -> bool:
        try:
            return await self._db.run(account_links.redeem_csrf(flow.linking, flow.state))
        except VariableError:
            return False
