"""The keyspace of the applications in this folder, with a value of each sort that frameworks answer with."""

from __future__ import annotations

from dataclasses import dataclass

import msgspec
import pydantic

from keywright import Counter, Id, Keyspace, Value

guestbook = Keyspace("guestbook", "Guests of a web site.", prefix="guestbook")


class GuestProfile(pydantic.BaseModel):
    """A model of Pydantic: body and response of FastAPI as it is."""

    name: str
    email: str | None = None


@dataclass
class GuestTheme:
    """A dataclass: Flask, FastAPI and Django write it as JSON."""

    colour: str
    large_text: bool = False


class GuestBadge(msgspec.Struct):
    """A Struct: the fastest to read and write."""

    title: str
    points: int = 0


class Profile(Value[GuestProfile], key="guest:<guest>:profile", space=guestbook):
    """The profile of a guest."""

    guest: Id


class Theme(Value[GuestTheme], key="guest:<guest>:theme", space=guestbook):
    """How a guest sees the site."""

    guest: Id


class Badge(Value[GuestBadge], key="guest:<guest>:badge", space=guestbook):
    """The badge that a guest has earned."""

    guest: Id


class Visits(Counter, key="guest:<guest>:visits", space=guestbook):
    """How often a guest was here."""

    guest: Id
