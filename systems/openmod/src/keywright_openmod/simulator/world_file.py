"""The world of the simulated Reddit in a file, so that a simulator that was killed continues with it."""

from __future__ import annotations

import os
from pathlib import Path

import msgspec

from keywright.errors import UsageError
from keywright_openmod.simulator.world import (
    LogEntry,
    RedditWorld,
    SimulatedSubmission,
    SimulatedSubreddit,
    SimulatedUser,
)

__all__ = ["read_world", "write_world"]


class _Submission(msgspec.Struct, frozen=True, kw_only=True):
    """A submission with ids in place of its author and its subreddit."""

    id: str
    author: str
    subreddit: str
    body: str
    created: float
    title: str
    link: str | None
    below: str | None
    edited: float | None
    deleted: bool
    removed: bool


class _LogEntry(msgspec.Struct, frozen=True, kw_only=True):
    id: str
    action: str
    moderator: str
    subreddit: str
    target: str
    created: float


class _World(msgspec.Struct, frozen=True, kw_only=True):
    number: int
    users: list[SimulatedUser]
    subreddits: list[SimulatedSubreddit]
    submissions: list[_Submission]
    edited: list[str]
    log: list[_LogEntry]


def write_world(world: RedditWorld, path: Path) -> None:
    """Replace the file: a reader, also after a crash, finds the world before or after a change."""
    saved = _World(
        number=world.number,
        users=list(world.users.values()),
        subreddits=list(world.subreddits.values()),
        submissions=[_saved(each) for each in world.submissions.values()],
        edited=list(world.edited),
        log=[
            _LogEntry(
                id=each.id,
                action=each.action,
                moderator=each.moderator.id,
                subreddit=each.subreddit.name,
                target=each.target.id,
                created=each.created,
            )
            for each in world.log
        ],
    )
    new = path.with_name(f"{path.name}.new")
    new.write_bytes(msgspec.json.encode(saved))
    os.replace(new, path)


def read_world(path: Path) -> RedditWorld | None:
    """Return the world of a file, or None if it does not exist. Raise UsageError if it has something else."""
    if not path.exists():
        return None
    try:
        saved = msgspec.json.decode(path.read_bytes(), type=_World)
        return _world(saved)
    except (OSError, msgspec.DecodeError, KeyError) as error:
        raise UsageError(
            f"{path} is not the world of a simulator: {error}. Delete it to begin with a new one."
        ) from error


def _saved(each: SimulatedSubmission) -> _Submission:
    return _Submission(
        id=each.id,
        author=each.author.id,
        subreddit=each.subreddit.name,
        body=each.body,
        created=each.created,
        title=each.title,
        link=each.link,
        below=each.below,
        edited=each.edited,
        deleted=each.deleted,
        removed=each.removed,
    )


def _world(saved: _World) -> RedditWorld:
    world = RedditWorld()
    world.number = saved.number
    world.users = {each.id: each for each in saved.users}
    world.subreddits = {each.name.lower(): each for each in saved.subreddits}
    for each in saved.submissions:
        members = msgspec.structs.asdict(each)
        members |= {"author": world.users[each.author], "subreddit": world.subreddits[each.subreddit.lower()]}
        world.submissions[each.id] = SimulatedSubmission(**members)
    world.edited = {name: world.submissions[name] for name in saved.edited}
    things: dict[str, SimulatedUser | SimulatedSubmission] = {**world.users, **world.submissions}
    world.log = [
        LogEntry(
            each.id,
            each.action,
            world.users[each.moderator],
            world.subreddits[each.subreddit.lower()],
            things[each.target],
            each.created,
        )
        for each in saved.log
    ]
    return world
