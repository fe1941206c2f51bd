"""A person's browser on the pages of the bot and at the simulated Meetup."""

from __future__ import annotations

import re

import httpx

__all__ = ["link_accounts"]

PAGE_SECONDS = 30.0


def link_accounts(link: str, member: int, *, scope: str = "basic") -> httpx.Response:
    """Open a link, consent at Meetup as a member, and confirm both accounts. Return the last page."""
    with httpx.Client(follow_redirects=True, timeout=PAGE_SECONDS) as browser:
        start = browser.get(link)
        consent = browser.post(start.url, data=_hidden(start) | {"scope": scope})
        last = browser.post(consent.url, data={"answer": "allow", "member": str(member)})
        return browser.post(f"{start.url}/confirm", data=_hidden(last) | {"answer": "yes"})


def _hidden(page: httpx.Response) -> dict[str, str]:
    """Return the hidden fields of the form of a page, as a browser sends them."""
    return dict(re.findall(r'<input type="hidden" name="(\w+)" value="([^"]+)">', page.text))
