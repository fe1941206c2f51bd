"""The content of the simulated Reddit: accounts, subreddits, posts, comments and moderation logs."""

from __future__ import annotations

import random
import time
import uuid
from collections.abc import Callable
from dataclasses import dataclass, field

from keywright.errors import UsageError
from keywright_openmod.platform import base36

__all__ = ["LogEntry", "RedditWorld", "SimulatedSubmission", "SimulatedSubreddit", "SimulatedUser"]

_FIRST_NUMBER = 36**5


@dataclass
class SimulatedUser:
    id: str
    name: str
    employee: bool = False
    deleted: bool = False
    suspended: bool = False


@dataclass
class SimulatedSubreddit:
    id: str
    name: str
    moderators: set[str] = field(default_factory=set)
    closed: bool = False
    """Whether posts are refused."""


@dataclass
class SimulatedSubmission:
    """A post (t3), or a comment (t1) below one."""

    id: str
    author: SimulatedUser
    subreddit: SimulatedSubreddit
    body: str
    created: float
    title: str = ""
    link: str | None = None
    """The URL of a link post."""
    below: str | None = None
    """The post of a comment."""
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
    moderator: SimulatedUser
    subreddit: SimulatedSubreddit
    target: SimulatedSubmission | SimulatedUser
    created: float


class RedditWorld:
    """All content. The methods are the actions of people on Reddit."""

    def __init__(self, *, clock: Callable[[], float] = time.time) -> None:
        self._clock = clock
        self.number = _FIRST_NUMBER
        """The number of the newest id."""
        self.users: dict[str, SimulatedUser] = {}
        self.subreddits: dict[str, SimulatedSubreddit] = {}
        self.submissions: dict[str, SimulatedSubmission] = {}
        self.edited: dict[str, SimulatedSubmission] = {}
        """Edited submissions, the last edited one last. Times of two edits may be equal."""
        self.log: list[LogEntry] = []

    def join(self, name: str, *, employee: bool = False) -> SimulatedUser:
        """Create an account."""
        user = SimulatedUser(self._fullname("t2"), name, employee)
        self.users[user.id] = user
        return user

    def found(self, name: str, *moderators: SimulatedUser) -> SimulatedSubreddit:
        """Create a subreddit with these moderators."""
        made = SimulatedSubreddit(self._fullname("t5"), name, {each.id for each in moderators})
        self.subreddits[name.lower()] = made
        return made

    def subreddit(self, name: str) -> SimulatedSubreddit:
        found = self.subreddits.get(name.lower())
        if found is None:
            raise UsageError(f"r/{name} does not exist. Create it first, with found().")
        return found

    def user_named(self, name: str) -> SimulatedUser | None:
        """Return the account with this name, in any case, even if it is suspended."""
        named = (each for each in self.users.values() if each.name.lower() == name.lower())
        return next((each for each in named if not each.deleted), None)

    def post(
        self, author: SimulatedUser, subreddit: str, title: str, body: str = "", *, link: str | None = None
    ) -> SimulatedSubmission:
        made = SimulatedSubmission(
            self._fullname("t3"), author, self.subreddit(subreddit), body, self._clock(), title, link
        )
        self.submissions[made.id] = made
        return made

    def comment(self, author: SimulatedUser, post: SimulatedSubmission, body: str) -> SimulatedSubmission:
        made = SimulatedSubmission(
            self._fullname("t1"), author, post.subreddit, body, self._clock(), below=post.below or post.id
        )
        self.submissions[made.id] = made
        return made

    def edit(self, submission: SimulatedSubmission, body: str) -> None:
        submission.body = body
        submission.edited = self._clock()
        self.edited.pop(submission.id, None)
        self.edited[submission.id] = submission

    def delete(self, submission: SimulatedSubmission) -> None:
        """Delete a submission as its author."""
        submission.deleted = True

    def delete_account(self, user: SimulatedUser) -> None:
        """Delete an account. Its submissions stay, without an author."""
        user.deleted = True

    def suspend(self, user: SimulatedUser) -> None:
        user.suspended = True

    def moderate(
        self,
        moderator: SimulatedUser,
        action: str,
        target: SimulatedSubmission | SimulatedUser,
        subreddit: str,
    ) -> LogEntry:
        """Perform an action of a moderator, and log it."""
        if isinstance(target, SimulatedSubmission):
            target.removed = action.startswith(("remove", "spam"))
        entry = LogEntry(
            f"ModAction_{uuid.uuid4()}", action, moderator, self.subreddit(subreddit), target, self._clock()
        )
        self.log.append(entry)
        return entry

    def posts_in(self, subreddit: str) -> list[SimulatedSubmission]:
        """Return the posts that are not deleted, oldest first."""
        wanted = subreddit.lower()
        return [
            each
            for each in self.submissions.values()
            if each.is_post and each.subreddit.name.lower() == wanted and not each.deleted
        ]

    def everyday(self, chance: random.Random, subreddit: str) -> None:
        """Perform one random action: mostly writing, sometimes moderation, an edit or a deletion."""
        here = self.subreddit(subreddit)
        moderators = [self.users[each] for each in sorted(here.moderators)]
        people = [each for each in self.users.values() if each.id not in here.moderators and not each.deleted]
        alive = [each for each in self.submissions.values() if each.subreddit is here and not each.deleted]
        step = chance.random()
        if step < 0.5 or not alive:
            self.post(chance.choice(people), subreddit, f"Thought {self.number}", "What do you think?")
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
        self.number += 1
        return f"{kind}_{base36(self.number)}"
