"""Credentials inside Discord's documents are stored as they came, and shown to nobody."""

from __future__ import annotations

import pytest

from keywright import Value, connect
from keywright.tools.describe.inspection import Hidden, inspect
from keywright_discord.drc import bind, schema


@pytest.mark.parametrize(
    "key", [schema.Webhook("7"), schema.Interaction("7")], ids=lambda key: type(key).__name__
)
def test_a_token_is_kept_but_not_shown(key: Value[dict[str, str]], redis_url: str) -> None:
    with connect(redis_url, *bind("bot")) as db:
        db.run(key.set({"id": "7", "token": "sesame"}))
        found = db.run(inspect(key))
        assert found is not None
        assert found.value == {"id": "7", "token": Hidden.SECRET}
        assert db.run(key.get()) == {"id": "7", "token": "sesame"}
