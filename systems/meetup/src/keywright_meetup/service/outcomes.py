"""The texts of the linking pages, in plain words: the outcome, and what the person can do."""

from __future__ import annotations

from typing import NamedTuple

__all__ = ["NOTICES", "OUTCOMES", "PROBLEMS", "LinkOutcome"]


class LinkOutcome(NamedTuple):
    title: str
    text: str
    remedy: str = ""
    good: bool = False
    status: int = 200


_END_THE_OTHER = (
    "If the other account is yours too, end that link: use /unlink on Discord, as the account that has it, "
    "or ask an organizer. Then use /link for a new one."
)

OUTCOMES = {
    "linked": LinkOutcome(
        "Your accounts are linked",
        "From now on you get into the channels of the events that you sign up for on Meetup. "
        "That happens within a quarter of an hour.",
        "You can close this page.",
        good=True,
    ),
    "already": LinkOutcome(
        "Your accounts are linked",
        "These two accounts were linked before, and still are.",
        "You can close this page.",
        good=True,
    ),
    "declined": LinkOutcome(
        "Nothing was linked",
        "You did not confirm the two accounts, so both are as they were.",
        "You can close this page. If you change your mind, use /link on Discord for a new link.",
    ),
    "authorized": LinkOutcome(
        "The bot is authorized",
        "It follows the events of its groups on Meetup as you from now on.",
        "You can close this page.",
        good=True,
    ),
    "meetup-taken": LinkOutcome(
        "This Meetup account is taken",
        "It is linked to another Discord account, and an account can have one link only. "
        "Nothing was changed.",
        _END_THE_OTHER,
        status=409,
    ),
    "discord-taken": LinkOutcome(
        "Your Discord account is taken",
        "It is linked to another Meetup account, and an account can have one link only. Nothing was changed.",
        _END_THE_OTHER,
        status=409,
    ),
}

PROBLEMS = {
    "expired": LinkOutcome(
        "This link does not work any more",
        "A link works once, and only for ten minutes.",
        "Go back to Discord and use /link for a new one.",
    ),
    "stray": LinkOutcome(
        "This page is not for this browser",
        "It was opened in another browser than the one you started in, it was opened twice, "
        "or your browser keeps no cookies. Nothing was changed.",
        "Open the link from Discord once more, and stay in one browser until you are done.",
    ),
    "foreign": LinkOutcome(
        "This form is not from this page",
        "It was sent by another site, in another browser than the one you started in, "
        "or your browser keeps no cookies. Nothing was changed.",
        "If you asked the bot on Discord for a link, open it from there, and stay in one browser.",
    ),
    "unauthorized": LinkOutcome(
        "The bot was not authorized",
        "You said no at Meetup, the address was used before or is older than an hour, "
        "or Meetup does not answer. The tokens of the bot are as they were.",
        "Start again with keywright meetup authorize. The log of the bot has the reason.",
    ),
    "unnamed": LinkOutcome(
        "We cannot see who you are on Discord",
        "Discord does not answer us, and without a name nobody can check whom the link is for. "
        "Nothing was changed.",
        "Wait a minute, then open the link from Discord once more.",
    ),
    "unknown": LinkOutcome(
        "This page does not exist",
        "Perhaps a part of the address was lost.",
        "Go back to Discord and open the link from there.",
    ),
    "trouble": LinkOutcome(
        "Something went wrong on our side",
        "We cannot tell whether your accounts are linked.",
        "Wait a minute, then use /link on Discord again. If it stays so, tell an organizer.",
    ),
}

NOTICES = {
    "unnamed": "Discord did not say who you are, so nothing was linked. You can try again here.",
    "denied": "You said no at Meetup, so nothing was linked. If you change your mind, start again here.",
    "failed": "Meetup did not confirm who you are, so nothing was linked. You can try again here.",
}
