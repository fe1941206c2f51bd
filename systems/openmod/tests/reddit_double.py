"""An in-memory Reddit for tests, and processes that die before or after any command."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import AsyncIterator, Callable, Sequence
from datetime import UTC, datetime
from typing import Any, TypeVar, cast

import msgspec

from keywright import AsyncDatabase, Call, Context, Key
from keywright.operations import Reply, Rounds, Wire
from keywright_openmod.platform import Account, Comment, Post, Thing
from keywright_service.errors import PlatformRefusedError, PlatformTroubleError

T = TypeVar("T")

CREATED = datetime(2024, 1, 1, 12, tzinfo=UTC)
ME = Account("t2_openmod", "openmod-app", is_app=True)


class Death(BaseException):
    """The process died: it sends no further command."""


class Fate:
    """Counts the steps of a process, Redis commands and platform requests, and ends it at one of them."""

    def __init__(self, steps: int | None = None) -> None:
        self.steps = steps
        self.taken = 0

    @property
    def dead(self) -> bool:
        return self.steps is not None and self.taken >= self.steps

    def step(self) -> None:
        if self.dead:
            raise Death
        self.taken += 1


class PublicPost(msgspec.Struct):
    """A post that the program made."""

    subreddit: str
    title: str
    body: str
    edits: int = 0


class Reddit:
    """The accounts, submissions and public posts that all processes see."""

    def __init__(self) -> None:
        self.accounts: dict[str, Account] = {ME.id: ME}
        self.things: dict[str, Thing] = {}
        self.public: dict[str, PublicPost] = {}
        self.troubled = 0
        self.calm = 0
        self.uneditable: set[str] = set()
        self.asked: list[str] = []
        self._numbers = itertools.count(1)

    def join(self, name: str, *, is_admin: bool = False) -> Account:
        account = Account(f"t2_{name.lower().replace('_', '0').replace('-', '1')}", name, is_admin)
        self.accounts[account.id] = account
        return account

    def write_post(self, author: Account, text: str, *, at: datetime = CREATED) -> Post:
        number = next(self._numbers)
        post = Post(
            id=f"t3_p{number}",
            author=author.id,
            title=f"title {text}",
            url=f"https://example.org/{number}",
            body=f"body {text}",
            permalink=f"/r/cats/comments/p{number}/slug/",
            created_at=at,
        )
        self.things[post.id] = post
        return post

    def write_comment(self, author: Account, text: str, *, at: datetime = CREATED) -> Comment:
        number = next(self._numbers)
        comment = Comment(
            id=f"t1_c{number}",
            author=author.id,
            body=f"body {text}",
            permalink=f"/r/cats/comments/p1/slug/c{number}/",
            created_at=at,
        )
        self.things[comment.id] = comment
        return comment

    def rewrite(self, thing: str, text: str) -> None:
        self.things[thing] = msgspec.structs.replace(self.things[thing], body=f"body {text}")

    def delete_account(self, user: str) -> None:
        """Delete an account; its submissions stay without an author."""
        self.accounts.pop(user, None)
        for thing, found in self.things.items():
            if found.author == user:
                self.things[thing] = msgspec.structs.replace(found, author=None)

    def in_trouble(self) -> bool:
        """Return whether this request fails: the next `calm` ones succeed, then `troubled` ones fail."""
        if self.calm > 0:
            self.calm -= 1
            return False
        if self.troubled > 0:
            self.troubled -= 1
            return True
        return False

    def session(self, fate: Fate | None = None) -> Session:
        return Session(self, fate or Fate())


class Session:
    """The platform of one process: requests may fail, and the process may die at them."""

    def __init__(self, reddit: Reddit, fate: Fate) -> None:
        self._reddit = reddit
        self._fate = fate

    async def me(self) -> Account:
        return await self._answer("me", lambda: ME)

    async def account(self, user: str) -> Account | None:
        return await self._answer(f"account {user}", lambda: self._reddit.accounts.get(user))

    async def account_named(self, name: str) -> Account | None:
        found = (a for a in self._reddit.accounts.values() if a.name.lower() == name.lower())
        return await self._answer(f"account_named {name}", lambda: next(found, None))

    async def thing(self, thing: str) -> Thing | None:
        return await self._answer(f"thing {thing}", lambda: self._reddit.things.get(thing))

    async def find_submission(self, subreddit: str, marker: str) -> str | None:
        posts = self._reddit.public.items()
        found = (p for p, made in posts if made.subreddit == subreddit and marker in made.body)
        return await self._answer("find_submission", lambda: next(found, None))

    async def submit(self, subreddit: str, title: str, body: str) -> str:
        return await self._answer("submit", lambda: self._made(PublicPost(subreddit, title, body)))

    async def edit(self, post: str, body: str) -> bool:
        return await self._answer(f"edit {post}", lambda: self._edited(post, body))

    def _made(self, made: PublicPost) -> str:
        post = f"t3_x{len(self._reddit.public) + 1}"
        self._reddit.public[post] = made
        return post

    def _edited(self, post: str, body: str) -> bool:
        if post in self._reddit.uneditable:
            raise PlatformRefusedError("Reddit", f"edit {post}", "forbidden", "Approve the app there.")
        found = self._reddit.public.get(post)
        if found is None:
            return False
        self._reddit.public[post] = PublicPost(found.subreddit, found.title, body, found.edits + 1)
        return True

    async def _answer(self, asked: str, answer: Callable[[], T]) -> T:
        """Answer a request. The process may die before it, or before it receives the reply."""
        self._fate.step()
        self._reddit.asked.append(asked)
        if self._reddit.in_trouble():
            raise PlatformTroubleError("Reddit", asked, "HTTP 503")
        answered = answer()
        await asyncio.sleep(0)
        self._fate.step()
        return answered


class Exchange(Call[list[Reply]]):
    """One round trip with these commands."""

    def __init__(self, wires: Sequence[Wire]) -> None:
        self._wires = wires

    def rounds(self, context: Context) -> Rounds[list[Reply]]:
        replies = yield self._wires
        return list(replies)


class MortalDatabase:
    """The database of a process that dies: commands after its death are not sent."""

    def __init__(self, database: AsyncDatabase, fate: Fate) -> None:
        self._database = database
        self._fate = fate
        self.context = database.context

    async def run(self, call: Call[T]) -> T:
        rounds = call.rounds(self.context)
        try:
            wires = next(rounds)
            while True:
                wires = rounds.send(await self._sent(wires))
        except StopIteration as stop:
            return cast("T", stop.value)

    def scan(self, kind: type[Key], **variables: object) -> AsyncIterator[Any]:
        return self._database.scan(kind, **variables)

    async def _sent(self, wires: Sequence[Wire]) -> list[Reply]:
        alive = 0
        for _ in wires:
            if self._fate.dead:
                break
            self._fate.step()
            alive += 1
        replies = await self._database.run(Exchange(wires[:alive])) if alive else []
        if alive < len(wires):
            raise Death
        return replies


def mortal(database: AsyncDatabase, fate: Fate) -> AsyncDatabase:
    """Return a database for a program, which uses only what MortalDatabase has."""
    return cast("AsyncDatabase", MortalDatabase(database, fate))
