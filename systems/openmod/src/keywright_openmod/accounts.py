"""Special accounts: names that Reddit shows in moderation logs, but that cannot be looked up.

docs/resolutions.md#special-accounts lists them.
"""

from __future__ import annotations

from keywright_openmod.platform import Account

__all__ = [
    "DELETED",
    "UNAVAILABLE",
    "account_named",
    "is_nobody",
    "is_special",
    "special_account",
    "special_named",
]

_NAMES = {
    "reddit": "t2_reddit",
    "Reddit Legal": "t2_redditlegal",
    "Anti-Evil Operations": "t2_antieviloperations",
    "[ redacted ]": "t2_redacted",
    "[ deleted ]": "t2_deleted",
    "[ unavailable ]": "t2_unavailable",
}
# Only this team acts under a redacted name.
_SHOWN = {"t2_redacted": "Anti-Evil Operations"}
_NOBODY = ("t2_deleted", "t2_unavailable")

_BY_ID = {
    user: Account(user, _SHOWN.get(user, name), is_admin=user not in _NOBODY) for name, user in _NAMES.items()
}
_BY_NAME = {name.casefold(): _BY_ID[user] for name, user in _NAMES.items()}

DELETED = _BY_ID["t2_deleted"]
UNAVAILABLE = _BY_ID["t2_unavailable"]


def special_account(user: str) -> Account | None:
    """Return the special account with this synthetic id."""
    return _BY_ID.get(user)


def special_named(name: str) -> Account | None:
    """Return the special account with this name, as the moderation log spells it."""
    return _BY_NAME.get(name.casefold())


def account_named(name: str) -> Account:
    """Return an account of which only the name is known: a special account, or one without an id."""
    return special_named(name) or Account("", name)


def is_nobody(user: str) -> bool:
    """Return whether this id stands for an account that is not known, so that nothing leads to it."""
    return user in _NOBODY


def is_special(user: str) -> bool:
    """Return whether this id is synthetic, so that it must not be looked up, cached or enrolled."""
    return user in _BY_ID
