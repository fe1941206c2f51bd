"""Credentials inside Discord's documents are stored as they came, and no tool shows them."""

from __future__ import annotations

import pytest

from keywright import Value
from keywright.testing import Raw, Run
from keywright_discord.drc import schema


@pytest.mark.parametrize(
    ("key", "hidden"),
    [(schema.Webhook("7"), ("token", "url")), (schema.Interaction("7"), ("token",))],
    ids=["Webhook", "Interaction"],
)
def test_a_token_is_stored_and_declared_as_hidden(
    key: Value[dict[str, str]], hidden: tuple[str, ...], run: Run, raw: Raw
) -> None:
    run(key.set({"id": "7", "token": "sesame"}))
    assert run(key.get()) == {"id": "7", "token": "sesame"}
    assert raw("GET", f"keywright:v1json:{bytes(key).decode()}") == b'{"id":"7","token":"sesame"}'
    assert key.hides == hidden
