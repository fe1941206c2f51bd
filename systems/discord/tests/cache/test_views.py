"""Typed views of documents, as stored and hydrated."""

from __future__ import annotations

import pytest

from keywright.errors import UsageError
from keywright.testing import Run
from keywright_discord import views
from keywright_discord.drc.reader import DrcReader
from keywright_discord.drc.store import DrcCache
from keywright_discord.views import view

from ..discord_sample import (
    ANN,
    ANSWER,
    BEN,
    CAT,
    CHANNEL,
    FIRST,
    OPENING,
    THREAD,
    answer,
    event,
    guild,
    user,
)


def test_a_message_is_viewed_before_and_after_it_is_hydrated(run: Run) -> None:
    run(DrcCache().apply([*OPENING, event("MESSAGE_CREATE", answer())]))
    stored = run(DrcReader(hydrate=False).message(CHANNEL, ANSWER))
    hydrated = run(DrcReader().message(CHANNEL, ANSWER))
    assert stored is not None
    assert hydrated is not None
    plain = view(views.MessageView, stored)
    assert (plain.author, plain.mentions, plain.referenced_message, plain.thread) == (
        BEN,
        [ANN, CAT],
        FIRST,
        THREAD,
    )
    whole = view(views.MessageView, hydrated)
    assert isinstance(whole.author, views.UserView)
    assert whole.author.username == "user 12"
    assert isinstance(whole.mentions[0], views.UserView)
    assert whole.mentions[0].member is not None
    assert whole.mentions[0].member.roles == ["110"]
    assert isinstance(whole.referenced_message, views.MessageView)
    assert whole.referenced_message.content == "message 300"
    assert isinstance(whole.thread, views.ChannelView)


def test_unknown_fields_are_left_to_the_document() -> None:
    assert view(views.GuildView, guild(invented={"tomorrow": 1})).member_count == 3


def test_what_cjson_made_of_a_document_is_read_as_meant() -> None:
    found = view(
        views.MessageView, {"id": FIRST, "mentions": {}, "type": 19.0, "flags": None, "content": "null"}
    )
    assert (found.mentions, found.type, found.flags, found.content) == ([], 19, 0, "null")
    nested = view(views.MessageView, {"id": FIRST, "mentions": [{"id": 11, "member": {"roles": {}}}]})
    assert isinstance(nested.mentions[0], views.UserView)
    assert (nested.mentions[0].id, nested.mentions[0].member) == (ANN, views.MemberView())


@pytest.mark.parametrize(
    ("document", "reason"),
    [({"username": "a"}, "missing required field `id`"), (user(ANN, bot=[]), "at `$.bot`")],
)
def test_a_document_of_another_kind_is_refused(document: dict[str, object], reason: str) -> None:
    with pytest.raises(UsageError, match="the document does not fit UserView") as refused:
        view(views.UserView, document)
    assert reason in str(refused.value)


def test_no_view_has_a_token() -> None:
    assert not [kind for kind in views.View.__subclasses__() if "token" in kind.__struct_fields__]
