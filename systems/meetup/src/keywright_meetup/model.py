"""The Meetup bot as a model of the tools."""

from __future__ import annotations

from keywright.tools import Model
from keywright_meetup import schema

__all__ = ["meetup"]

meetup = Model("meetup", (schema.meetup,))
