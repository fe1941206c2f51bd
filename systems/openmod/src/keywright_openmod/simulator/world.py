"""What is on the simulated Reddit: people, subreddits, posts, comments and moderation logs."""

from __future__ import annotations

import random
import time
import uuid
from collections.abc import Callable
from dataclasses import dataclass, field

from keywright.errors import UsageError

__all__ = ["LogEntry", "Submission", "Subreddit", "User", "World", "base36"]

_DIGITS = "0123456789abcdefghijklmnopqrstuvwxyz"
_FIRST_NUMBER = 36**5


@dataclass
class User:
    id: str
    name: str
    employee: bool = False
    deleted: bool = False
    suspended: bool = False


@dataclass
class Subreddit:
    id: str
    name: str
    moderators: set[str] = field(default_factory=set)
    closed: bool = False
    """Whether nobody may post here."""


@dataclass
class Submission:
    """A post (t3), or a comment (t1) below one."""

    id: str
    author: User
    subreddit: Subreddit
    body: str
    created: float
    title: str = ""
    link: str | None = None
    """Where a link post leads."""
    below: str | None = None
    """The post that a comment is below."""
    edited: float | None = None
    deleted: bool = False
    removed: bool = False

    @property
    def is_post(self) -> bool:
        return self.below is None

    @property
    def permalink(self) -> str:
        post = (self.below or self.id).removeprefix("t3_")
        tail = "" if self.is_post else f"{self.id.removeprefix('t1_')}/"
        return f"/r/{self.subreddit.name}/comments/{post}/_/{tail}"


@dataclass(frozen=True)
class LogEntry:
    """An entry of a moderation log."""

    id: str
    action: str
    moderator: User
    subreddit: Subreddit
    target: Submission | User
    created: float


class World:
    """Everything there is. What the methods do is what people on Reddit do."""

    def __init__(self, *, clock: Callable[[], float] = time.time) -> None:
        self._clock = clock
        self._number = _FIRST_NUMBER
        self.users: dict[str, User] = {}
        self.subreddits: dict[str, Subreddit] = {}
        self.submissions: dict[str, Submission] = {}
        self.log: list[LogEntry] = []

    def join(self, name: str, *, employee: bool = False) -> User:
        """Someone makes an account."""
        user = User(self._fullname("t2"), name, employee)
        self.users[user.id] = user
        return user

    def found(self, name: str, *moderators: User) -> Subreddit:
        """Someone founds a subreddit."""
        made = Subreddit(self._fullname("t5"), name, {each.id for each in moderators})
        self.subreddits[name.lower()] = made
        return made

    def subreddit(self, name: str) -> Subreddit:
        found = self.subreddits.get(name.lower())
        if found is None:
            raise UsageError(f"there is no r/{name}. Found it first.")
        return found

    def user_named(self, name: str) -> User | None:
        """The account of this name, in any case, also of one that is suspended."""
        named = (each for each in self.users.values() if each.name.lower() == name.lower())
        return next((each for each in named if not each.deleted), None)

    def post(
        self, author: User, subreddit: str, title: str, body: str = "", *, link: str | None = None
    ) -> Submission:
        made = Submission(
            self._fullname("t3"), author, self.subreddit(subreddit), body, self._clock(), title, link
        )
        self.submissions[made.id] = made
        return made

    def comment(self, author: User, post: Submission, body: str) -> Submission:
        made = Submission(
            self._fullname("t1"), author, post.subreddit, body, self._clock(), below=post.below or post.id
        )
        self.submissions[made.id] = made
        return made

    def edit(self, submission: Submission, body: str) -> None:
        submission.body = body
        submission.edited = self._clock()

    def delete(self, submission: Submission) -> None:
        """Its author deletes it."""
        submission.deleted = True

    def delete_account(self, user: User) -> None:
        """What the person wrote stays, and shows no author any more."""
        user.deleted = True

    def suspend(self, user: User) -> None:
        user.suspended = True

    def moderate(self, moderator: User, action: str, target: Submission | User, subreddit: str) -> LogEntry:
        """A moderator acts, and it is logged."""
        if isinstance(target, Submission):
            target.removed = action.startswith(("remove", "spam"))
        entry = LogEntry(
            f"ModAction_{uuid.uuid4()}", action, moderator, self.subreddit(subreddit), target, self._clock()
        )
        self.log.append(entry)
        return entry

    def posts_in(self, subreddit: str) -> list[Submission]:
        """The posts that are to be seen, oldest first."""
        wanted = subreddit.lower()
        return [
            each
            for each in self.submissions.values()
            if each.is_post and each.subreddit.name.lower() == wanted and not each.deleted
        ]

    def everyday(self, chance: random.Random, subreddit: str) -> None:
        """One thing that happens on an ordinary day: mostly writing, sometimes moderation or regret."""
        here = self.subreddit(subreddit)
        moderators = [self.users[each] for each in sorted(here.moderators)]
        people = [each for each in self.users.values() if each.id not in here.moderators and not each.deleted]
        alive = [each for each in self.submissions.values() if each.subreddit is here and not each.deleted]
        step = chance.random()
        if step < 0.5 or not alive:
            self.post(chance.choice(people), subreddit, f"Thought {self._number}", "What do you think?")
        elif step < 0.7:
            self.comment(chance.choice(people), chance.choice(alive), "I disagree.")
        elif step < 0.8:
            self.edit(chance.choice(alive), "Edited: I changed my mind.")
        elif step < 0.95 and moderators:
            target = chance.choice(alive)
            action = chance.choice(["remove", "spam", "approve"]) + ("link" if target.is_post else "comment")
            self.moderate(chance.choice(moderators), action, target, subreddit)
        else:
            self.delete(chance.choice(alive))

    def _fullname(self, kind: str) -> str:
        self._number += 1
        return f"{kind}_{base36(self._number)}"


def base36(number: int) -> str:
    digits = ""
    while number:
        number, digit = divmod(number, 36)
        digits = _DIGITS[digit] + digits
    return digits or "0"
