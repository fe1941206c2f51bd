"""What the forms of the linking pages carry: marks against CSRF, and consents.

Both are made with the client's secret, which all bots share, so nothing is stored for them. A consent is
encrypted: only the bots can read its tokens or change whom it links, and one that is not confirmed leaves
nothing behind.
"""

from __future__ import annotations

import base64
import hmac
from datetime import timedelta

import msgspec
from cryptography.fernet import Fernet, InvalidToken

from keywright import Secret
from keywright_meetup.schema import DiscordId, MeetupId, Tokens

__all__ = ["Consent", "Forms"]

CONSENT_LIFE = timedelta(minutes=10)


class Consent(msgspec.Struct, frozen=True):
    """Meetup's answer, until the person confirms whom it links: in which browser, and for which link."""

    browser: str
    linking: str
    discord_user: DiscordId
    meetup_user: MeetupId
    access_token: str | None = None
    refresh_token: str | None = None

    def __repr__(self) -> str:
        return f"<Consent of {self.meetup_user}>"

    @property
    def tokens(self) -> Tokens | None:
        """The tokens to keep, if the person lets the bot manage RSVPs."""
        if self.access_token is None or self.refresh_token is None:
            return None
        return Tokens(Secret(self.access_token), Secret(self.refresh_token))


class Forms:
    """Makes and checks what forms carry."""

    def __init__(self, secret: Secret[str]) -> None:
        self._key = secret.reveal().encode()
        self._fernet = Fernet(base64.urlsafe_b64encode(hmac.digest(self._key, b"consent", "sha256")))

    def mark(self, browser: str, linking: str) -> str:
        """Return the mark of the forms of a link in a browser, which its cookie names."""
        return hmac.digest(self._key, f"form {browser} {linking}".encode(), "sha256").hex()

    def is_marked(self, mark: str, browser: str, linking: str) -> bool:
        return hmac.compare_digest(mark.encode(), self.mark(browser, linking).encode())

    def seal(self, consent: Consent) -> str:
        return self._fernet.encrypt(msgspec.json.encode(consent)).decode()

    def open(self, text: str, browser: str, linking: str) -> Consent | None:
        """Return a consent, if it was given in this browser for this link and not long ago."""
        try:
            data = self._fernet.decrypt(text.encode(), ttl=int(CONSENT_LIFE.total_seconds()))
        except InvalidToken:
            return None
        consent = msgspec.json.decode(data, type=Consent)
        return consent if (consent.browser, consent.linking) == (browser, linking) else None
